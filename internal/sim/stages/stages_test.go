package stages

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestSessionsAreCleanAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestSessionsAreCleanAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(800), "stages",
		"executor dies", "output gone", "rows handed back", "copied", "dropped",
		"decided by a stage", "round lost", "gave up")
}

func TestTheSameSeedIsTheSameSession(t *testing.T) {
	worldtest.Repeats(t, Simulate, 50)
}
