package disk

import (
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// filling reports which files are on a full disk, in tests.
var filling atomic.Pointer[func(path string) bool]

// mostFits is how many bytes a write to a full disk can write.
const mostFits = 4 << 10

// Fill makes writes to the files that match fail with a full disk, half-way or earlier,
// until stop. It is for tests, one at a time.
func Fill(match func(path string) bool) (stop func()) {
	filling.Store(&match)
	return func() { filling.Store(nil) }
}

// room returns how much of p can be written to a file, and why no more.
func room(path string, p []byte) ([]byte, error) {
	if full := filling.Load(); full != nil && (*full)(path) {
		return p[:min(len(p)/2, mostFits)], &fs.PathError{Op: "write", Path: path, Err: unix.ENOSPC}
	}
	return p, nil
}
