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
	}{{1, 2, 5, 0.5, "kept"}, {2, 2, 1, 0.5, "kept"}, {0.5, 2, 1, 0.5, "kept"}, {3, 2, 1, 0.625, "raised"},
		{3, 2, 9, 1, "kept"}, {0.4, 2, 1, 0.8, "lowered"}, {0, 2, 20, 0.3, "kept"}} {
		why := ""
		for range c.turns {
			why = a.Observe(c.spread, c.norm)
		}
		if a.Ratio != c.want || !strings.HasPrefix(why, c.says) {
			t.Errorf("spread %v, norm %v: ratio %v, %s; want %v, %s", c.spread, c.norm, a.Ratio, why, c.want, c.says)
		}
	}
}

// TestARatioBelowTheLeastIsNotRaisedForIt: the least is no target.
func TestARatioBelowTheLeastIsNotRaisedForIt(t *testing.T) {
	if a := (Adaptive{Ratio: 0.2, Min: 0.3}); !strings.HasPrefix(a.Observe(0, 1), "kept") || a.Ratio != 0.2 {
		t.Error(a.Ratio)
	}
}

// TestPolicies: each is known by its name, and two are never cut.
func TestPolicies(t *testing.T) {
	for _, p := range []Policy{BSP, ABSP, Deadline, Steal, Adapting} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
		if want := p == BSP || p == Steal; p.Whole() != want {
			t.Errorf("%v is whole: %v", p, p.Whole())
		}
	}
	if _, err := ParsePolicy("none"); err == nil ||
		err.Error() != `"none" is not one of bsp, absp, deadline, steal, adaptive` {
		t.Error(err)
	}
}
