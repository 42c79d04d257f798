package abss

import (
	"strings"
	"testing"
)

// TestAdaptiveFollowsTheNoise, within its bounds, and says why.
func TestAdaptiveFollowsTheNoise(t *testing.T) {
	a := Adaptive{Ratio: 0.5, Min: 0.3}
	for _, c := range []struct {
		spread, norm float64
		turns        int
		want         float64
		says         string
	}{{1, 2, 5, 0.5, "kept"}, {3, 2, 1, 0.625, "raised"}, {3, 2, 9, 1, "kept"}, {0.4, 2, 1, 0.8, "lowered"}, {0, 2, 20, 0.3, "kept"}} {
		why := ""
		for range c.turns {
			why = a.Observe(c.spread, c.norm)
		}
		if a.Ratio != c.want || !strings.HasPrefix(why, c.says) {
			t.Errorf("spread %v, norm %v: ratio %v, %s; want %v, %s", c.spread, c.norm, a.Ratio, why, c.want, c.says)
		}
	}
}
