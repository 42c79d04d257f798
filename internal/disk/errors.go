package disk

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/fault"
)

// final lists the errors of the system that another try does not mend.
var final = []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.EISDIR, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG,
	unix.EINVAL, unix.ENXIO}

// OpenError returns why a path could not be read, without repeating the path. What is not
// there, or not allowed, is so for every process; want of descriptors or memory and faults
// of disks and networks pass, or are those of one machine.
func OpenError(path string, err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	kind := fault.BadInput
	var errno syscall.Errno
	if errors.As(err, &errno) && !slices.ContainsFunc(final, func(e error) bool { return errno == e }) {
		kind = fault.NoResources
	}
	return fault.New(kind, "open", path, err)
}

// WriteError returns what a failed write means and what to do about it; nil of nil.
func WriteError(op, dir string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.NoResources, op, dir, errors.New("the disk is full")).
			WithHint("free space, or set --data-dir to a larger disk")
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, op, dir, err)
}
