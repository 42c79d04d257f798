package daemon

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// sealedLog writes a log of a few parts, and returns what it has.
func sealedLog(t *testing.T, path string, parts int) (all []byte) {
	t.Helper()
	for n := range parts {
		part := fmt.Appendf(nil, "line %d of an executor\n", n)
		if err := appendLog(path, part, DefaultJobLog, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	return all
}

// TestADamagedLogIsRefused: whatever bit of it is flipped, wherever it is cut, and the same of its seals.
func TestADamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runner-a.log")
	sealedLog(t, path, 20)
	if err := checkSeals(path); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 400 {
		file := path + ".0"
		if n%2 == 0 {
			file += sealsSuffix
		}
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw, at := bytes.Clone(before), rng.IntN(len(before))
		if n%3 == 0 {
			raw = raw[:at]
		} else {
			raw[at] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkSeals(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s, damaged at %d: %v", file, at, err)
		}
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALogGoesOnAfterAKill: wherever the driver was killed while it wrote a part, what is there is refused as cut off
// until more is written, and is whole then.
func TestALogGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	part := []byte("a part that the driver does not write to its end\n")
	for written := range len(part) {
		path := filepath.Join(t.TempDir(), "runner-a.log")
		all := sealedLog(t, path, written%3)
		if err := addSeal(path+".0", int64(len(all)), part); err != nil {
			t.Fatal(err)
		}
		all = append(all, part[:written]...)
		if err := os.WriteFile(path+".0", all, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkSeals(path); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%d bytes are written: %v", written, err)
		}
		for range 2 {
			if err := appendLog(path, []byte("more\n"), DefaultJobLog, true); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(path + ".0")
		if want := string(all) + "more\nmore\n"; err != nil || string(raw) != want {
			t.Errorf("%q, not %q, %v", raw, want, err)
		}
		if err := checkSeals(path); err != nil {
			t.Errorf("%d bytes were written: %v", written, err)
		}
	}
}

// TestADamagedAuditLogIsNamed: whatever bit of it or of its seals is flipped, wherever one is cut, the driver that
// starts says so, puts it aside and goes on.
func TestADamagedAuditLogIsNamed(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 1))
	for n := range 200 {
		dir := t.TempDir()
		a := newAuditLog(dir, hclog.NewNullLogger())
		for k := range 5 {
			a.did(auditLine{Who: "ann", Call: "Submit", Subject: fmt.Sprint("job-", k)})
		}
		if again := newAuditLog(dir, hclog.NewNullLogger()); again.size != a.size {
			t.Fatal("a sound one is put aside")
		}
		file := a.path
		if n%2 == 0 {
			file += sealsSuffix
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := rng.IntN(len(raw))
		if n%3 == 0 {
			raw = raw[:at]
		} else {
			raw[at] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		newAuditLog(dir, hclog.NewNullLogger()).did(auditLine{Who: "ann", Call: "Cancel", Subject: "job-9"})
		said, err := os.ReadFile(a.path)
		if err != nil || !strings.Contains(string(said), a.path+".1") || !strings.Contains(string(said), "job-9") {
			t.Errorf("%s, damaged at %d: %s, %v", file, at, said, err)
		}
		if err := checkSealed(a.path); err != nil {
			t.Error(err)
		}
	}
}
