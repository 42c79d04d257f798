package life

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestLivesAreCleanAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestLivesAreCleanAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(400), "life",
		"driver crash", "driver started again", "journal refuses", "journal slow",
		"journal silent", "journal's disk full", "disk full",
		"directory taken", "result not kept", "no room for a process", "program gone", "program cannot run",
		"process dies early", "process is lost early",
		"process killed", "process exits without a word", "process fails", "process hangs", "process does not read",
		"process hangs up", "late word", "kill held up",
		"interrupt ignored", "cancel", "resumed", "submission refused", "prune", "executor dies",
		"executor registers again", "executor refused", "unfit", "drain",
		"leaving", "goodbye", "runner ends", "late word of a runner", "left alone", "hopeless",
		"too much taken")
}

func TestTheSameSeedIsTheSameLife(t *testing.T) {
	worldtest.Repeats(t, Simulate, 20)
}
