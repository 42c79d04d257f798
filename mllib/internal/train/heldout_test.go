package train

import (
	"testing"
)

func TestPatience(t *testing.T) {
	var h heldState
	for i, loss := range []float64{3, 2, 2.5, 1, 1.5, 1.2} {
		if h.observe(loss, []float64{float64(i)}, 3) {
			t.Fatalf("it stops at %d", i)
		}
	}
	if !h.observe(1, []float64{6}, 3) || h.Point[0] != 3 || h.Least != 1 {
		t.Errorf("it goes on, or keeps another point: %+v", h)
	}
}
