package fault

import (
	"errors"
	"slices"
	"syscall"
)

// passing are the errors of a system that has none of something left, for now: descriptors,
// processes, memory, room on a disk; or of a program that is still being written.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, syscall.ENOSPC,
	syscall.EDQUOT, syscall.ETXTBSY}

// Passing reports whether an error is one of the moment: the same may go well later.
func Passing(err error) bool {
	return slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}
