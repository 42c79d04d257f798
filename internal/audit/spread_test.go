package audit

import "testing"

// TestWorkersBeyondTheirSlackAreFound, ahead or behind; where there is no slack nothing is bounded.
func TestWorkersBeyondTheirSlackAreFound(t *testing.T) {
	for _, c := range []struct {
		values map[string]float64
		broken int
	}{
		{map[string]float64{"slack": 2, "clocks_ahead": 2, "clocks_stale": 1, "objective": 9}, 0},
		{map[string]float64{"slack": 2, "clocks_ahead": 3, "clocks_stale": 1}, 1},
		{map[string]float64{"slack": 0, "clocks_ahead": 1, "clocks_stale": 1}, 2},
		{map[string]float64{"clocks_ahead": 99, "clocks_stale": 50}, 0},
		{nil, 0},
	} {
		v := &verifier{r: &Report{}}
		if v.spread(c.values, 3, 7); len(v.r.Violations) != c.broken {
			t.Errorf("%v: %v", c.values, v.r.Violations)
		}
	}
}
