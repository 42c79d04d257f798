package reassigned

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestRangesCountOnceAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestRangesCountOnceAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(400), "help", "message lost", "message twice, and late", "worker lost",
		"worker stands still", "range offered", "range done by a helper", "range taken back")
}

func TestTheSameSeedIsTheSameWorkers(t *testing.T) {
	worldtest.Repeats(t, Simulate, 20)
}
