package fault

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// TestWhatPasses: by the system's own errors, however they are wrapped.
func TestWhatPasses(t *testing.T) {
	wrapped := func(e error) error {
		return New(NoResources, "start", "a process", &fs.PathError{Op: "fork/exec", Path: "/bin/true", Err: e})
	}
	for _, e := range []error{syscall.EMFILE, syscall.EAGAIN, wrapped(syscall.ENOSPC), wrapped(syscall.ENOMEM),
		errors.Join(errors.New("x"), syscall.ENFILE)} {
		if !Passing(e) {
			t.Errorf("%v does not pass", e)
		}
	}
	for _, e := range []error{nil, errors.New("too many open files"), fs.ErrNotExist, wrapped(syscall.ENOEXEC),
		wrapped(syscall.EACCES), os.ErrDeadlineExceeded} {
		if Passing(e) {
			t.Errorf("%v passes", e)
		}
	}
}
