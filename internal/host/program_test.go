package host

import (
	"bytes"
	"os"
	"testing"
)

// TestProgramsAreToldApart by the identifier that go build gives them, and by nothing that
// another tool has put into its place.
func TestProgramsAreToldApart(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := buildID(bytes.NewReader(raw))
	if len(id) != 83 {
		t.Fatalf("the test's identifier is %q", id)
	}
	at := bytes.Index(raw, id)
	copy(raw[at:], bytes.Repeat([]byte("redacted"), 10))
	if id := buildID(bytes.NewReader(raw)); id != nil {
		t.Errorf("%q tells nothing apart", id)
	}
	if id := buildID(bytes.NewReader([]byte("#!/bin/sh"))); id != nil {
		t.Errorf("a script's identifier is %q", id)
	}
}
