package storage

import (
	"context"
	"io/fs"
	"os/exec"
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
		err := openError("input.csv", &fs.PathError{Op: "open", Path: "input.csv", Err: errno})
		if !fault.Policy(fault.KindOf(err)).Retry {
			t.Errorf("%v is never tried again", err)
		}
	}
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.EISDIR, syscall.ENOTDIR,
		syscall.ENAMETOOLONG} {
		err := openError("input.csv", &fs.PathError{Op: "open", Path: "input.csv", Err: errno})
		if fault.KindOf(err) != fault.BadInput {
			t.Errorf("%v is %v", err, fault.KindOf(err))
		}
	}
}

// exitOf is how a shell ends that runs a script.
func exitOf(script string) error { return exec.Command("/bin/sh", "-c", script).Run() }

// TestADecoderThatWasKilledSaysNothingOfTheFile: the system kills for want of memory, and so do
// people.
func TestADecoderThatWasKilledSaysNothingOfTheFile(t *testing.T) {
	err := decodeOutcome(context.Background(), "input.parquet", nil, exitOf("kill -9 $$"), "")
	if !fault.Policy(fault.KindOf(err)).Retry {
		t.Errorf("never tried again: %v", err)
	}
}

// TestADecoderThatPanicsSaysThatTheFileIsMalformed.
func TestADecoderThatPanicsSaysThatTheFileIsMalformed(t *testing.T) {
	err := decodeOutcome(context.Background(), "input.parquet", nil, exitOf("exit 2"), "panic: index out of range\n")
	if fault.KindOf(err) != fault.BadInput {
		t.Errorf("%v", err)
	}
}

// TestADecoderThatStandsStillSaysNothingOfTheFile: it may be paused, or wait for a disk. (One that
// loops uses its processor, and is known by that.)
func TestADecoderThatStandsStillSaysNothingOfTheFile(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStalled)
	err := decodeOutcome(ctx, "input.parquet", context.Canceled, exitOf("kill -9 $$"), "")
	if !fault.Policy(fault.KindOf(err)).Retry {
		t.Errorf("never tried again: %v", err)
	}
}
