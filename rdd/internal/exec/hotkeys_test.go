package exec

import (
	"math"
	"testing"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// TestKeysThatEqualNothingTakeNoMoreSeats: what watches for hot keys has a few seats,
// whatever the keys are. A NaN, which Go's maps never find again, is one key.
func TestKeysThatEqualNothingTakeNoMoreSeats(t *testing.T) {
	var single HotKeys[float64]
	var within HotKeys[[2]float32]
	for range 24 {
		watchOne(&single, math.NaN())
		watchOne(&within, [2]float32{1, float32(math.NaN())})
	}
	if len(single.seats) > hotSeats || len(within.seats) > hotSeats {
		t.Fatalf("%d and %d seats are taken, of %d", len(single.seats), len(within.seats), hotSeats)
	}
	single.rows, within.rows = 24, 24
	if a, b := single.Hottest(), within.Hottest(); a.Rows != 24 || b.Rows != 24 {
		t.Errorf("of 24 rows with one key %d and %d are seen to have it", a.Rows, b.Rows)
	}
}

// watchOne has hot keys look at a key under its hash.
func watchOne[K comparable](h *HotKeys[K], key K) {
	c, _ := row.KeyCodecOf[K]()
	h.look(key, row.Hashes(row.HasherOf(c), []row.Pair[K, bool]{{Key: key}}, nil)[0])
}
