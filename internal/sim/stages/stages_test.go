package stages

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/sim"
)

// TestSessionsAreCleanAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestSessionsAreCleanAndEveryFaultFires(t *testing.T) {
	seeds := 2000
	if testing.Short() {
		seeds = 200
	}
	faults := map[string]int{}
	for seed := range uint64(seeds) {
		r := Simulate(seed+1, sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s (again with: make sim SEEDS=1 FROM=%d)", seed+1, v, seed+1)
		}
		for k, n := range r.Faults {
			faults[k] += n
		}
	}
	for _, k := range []string{"executor dies", "output gone", "rows handed back", "copied", "dropped",
		"decided by a stage", "round lost", "gave up"} {
		if faults["stages: "+k] == 0 {
			t.Errorf("no %s fired", k)
		}
	}
}

func TestTheSameSeedIsTheSameSession(t *testing.T) {
	for seed := range uint64(50) {
		var a, b []string
		Simulate(seed+1, sim.Options{Trace: func(line string) { a = append(a, line) }})
		Simulate(seed+1, sim.Options{Trace: func(line string) { b = append(b, line) }})
		if !slices.Equal(a, b) {
			t.Errorf("seed %d: %d lines, and %d others", seed+1, len(a), len(b))
		}
	}
}
