package parquet

import (
	"context"
	"os/exec"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
)

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
