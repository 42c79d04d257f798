package daemon

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// TestLogsAreBoundedAndReadFromAnywhere: readers that come back get what is
// new, once, and what is too old is gone.
func TestLogsAreBoundedAndReadFromAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var all, read []byte
	at := int64(0)
	follow := func() {
		var err error
		at, err = readLog(path, at, func(p []byte, _ int64) error { read = append(read, p...); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	follow()
	for i := range 60 {
		part := append(bytes.Repeat([]byte{'x'}, 1<<20), fmt.Sprintf("line %d\n", i)...)
		all = append(all, part...)
		if err := appendLog(path, part, false); err != nil {
			t.Fatal(err)
		}
		follow()
	}
	if !bytes.Equal(all, read) {
		t.Errorf("%d bytes written, %d read by one that follows", len(all), len(read))
	}
	if files := logFiles(path); len(files) > logSegments {
		t.Errorf("%d files", len(files))
	}
	if end := logEnd(path); end != int64(len(all)) {
		t.Errorf("the log ends at %d, %d bytes were written", end, len(all))
	}
	at, read = 0, nil
	if follow(); !bytes.HasSuffix(all, read) || len(read) < (logSegments-2)*logSegment || at != int64(len(all)) {
		t.Errorf("%d bytes are left, up to %d of %d", len(read), at, len(all))
	}
}
