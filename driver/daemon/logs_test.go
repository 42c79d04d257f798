package daemon

import (
	"bytes"
	"fmt"
	"os"
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
		if err := appendLog(path, part, DefaultJobLog, false); err != nil {
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
	least := (logSegments - 2) * DefaultJobLog / logSegments
	if follow(); !bytes.HasSuffix(all, read) || len(read) < least || at != int64(len(all)) {
		t.Errorf("%d bytes are left, up to %d of %d", len(read), at, len(all))
	}
}

// TestALogKeepsAsMuchAsItMay of its end, whatever that is.
func TestALogKeepsAsMuchAsItMay(t *testing.T) {
	for _, most := range []int64{leastJobLog, 1 << 20} {
		path := filepath.Join(t.TempDir(), "log")
		part := bytes.Repeat([]byte{'x'}, 5000)
		for written := int64(0); written < 5*most; written += int64(len(part)) {
			if err := appendLog(path, part, most, false); err != nil {
				t.Fatal(err)
			}
			kept := int64(0)
			for _, f := range logFiles(path) {
				if info, err := os.Stat(f.path); err == nil {
					kept += info.Size()
				}
			}
			if kept > most+logSegments*int64(len(part)) || written > most && kept < most/2 {
				t.Fatalf("%d bytes of %d are kept, at most %d may be", kept, written, most)
			}
		}
	}
}
