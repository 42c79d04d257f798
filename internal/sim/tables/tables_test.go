package tables

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestTablesKeepTheirBoundsAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestTablesKeepTheirBoundsAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(400), "tables", "message lost", "message twice, and late", "client lost",
		"client taken for lost", "client joins", "shard lost", "shard lost before its snapshot was kept",
		"worker slow for a while", "worker goes on elsewhere, and stops here", "snapshot kept",
		"update waits for its bound", "read of the worker's own cache")
}

func TestTheSameSeedIsTheSameTable(t *testing.T) {
	worldtest.Repeats(t, Simulate, 20)
}
