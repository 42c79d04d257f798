package disk

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
)

// TestWantIsNoFaultOfTheInput: a file that cannot be opened for want of descriptors or memory, or
// because of its disk or network, may be opened later, or elsewhere; one that is not there, or not
// allowed, may not.
func TestWantIsNoFaultOfTheInput(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.ESTALE,
		syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT, syscall.ENOBUFS} {
		err := OpenError("input.csv", &fs.PathError{Op: "open", Path: "input.csv", Err: errno})
		if !fault.Policy(fault.KindOf(err)).Retry {
			t.Errorf("%v is never tried again", err)
		}
	}
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.EISDIR, syscall.ENOTDIR,
		syscall.ENAMETOOLONG} {
		err := OpenError("input.csv", &fs.PathError{Op: "open", Path: "input.csv", Err: errno})
		if fault.KindOf(err) != fault.BadInput {
			t.Errorf("%v is %v", err, fault.KindOf(err))
		}
	}
}
