package fault

import (
	"errors"
	"slices"
	"syscall"
)

// passing are the errors of a system that is out of a resource, for now: descriptors,
// processes, memory, disk space; or of a program file that is still being written.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, syscall.ENOSPC,
	syscall.EDQUOT, syscall.ETXTBSY}

// Passing reports whether an error is temporary: a retry may succeed.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}
