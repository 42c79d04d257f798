package disk

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/fault"
)

// final lists the system errors that a retry does not cure.
var final = []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.EISDIR, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG,
	unix.EINVAL, unix.ENXIO}

// OpenError returns why a path could not be read, without repeating the path. A missing
// file or permission fails on every machine; lack of descriptors or memory and faults of
// disks and networks are temporary, or of one machine.
func OpenError(path string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
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

// WriteError explains a failed write with what to do about it; nil for nil.
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
