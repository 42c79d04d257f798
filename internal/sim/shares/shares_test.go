package shares

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestSlotsAreSharedAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestSlotsAreSharedAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(400), "shares", "job comes again", "job goes while it folds",
		"ended and never began", "two runs at a time", "looked late", "pause")
}

func TestTheSameSeedIsTheSameExecutor(t *testing.T) {
	worldtest.Repeats(t, Simulate, 10)
}
