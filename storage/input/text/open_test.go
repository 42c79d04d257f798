package text

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/storage/input/files"
)

// opened is how many files this process has open.
func opened(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here: ", err)
	}
	return len(fds)
}

// TestAFileThatCannotBeReadIsNotLeftOpen: a compressed file that is cut within the header that is passed over.
func TestAFileThatCannotBeReadIsNotLeftOpen(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for range 1 << 16 {
		_, _ = w.Write([]byte{byte(rand.Uint32())})
	}
	w.Close()
	path := filepath.Join(t.TempDir(), "cut.gz")
	if err := os.WriteFile(path, b.Bytes()[:b.Len()/2], 0o600); err != nil {
		t.Fatal(err)
	}
	rng := files.Range{File: files.File{Path: path, Size: int64(b.Len() / 2)}, Length: int64(b.Len() / 2), Skip: 60_000}
	before := opened(t)
	for range 20 {
		if r, err := Open(rng, Records{Newline: '\n'}); err == nil {
			r.Close()
			t.Fatal("half of a file is read as if it were all")
		}
	}
	if after := opened(t); after > before+2 {
		t.Errorf("%d files were open, now %d", before, after)
	}
}
