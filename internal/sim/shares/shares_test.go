package shares

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/sim"
)

// TestSlotsAreSharedAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestSlotsAreSharedAndEveryFaultFires(t *testing.T) {
	seeds := 500
	if testing.Short() {
		seeds = 50
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
	for _, k := range []string{"job comes again", "job goes while it folds", "ended and never began",
		"two runs at a time", "looked late", "pause"} {
		if faults["shares: "+k] == 0 {
			t.Errorf("no %s fired", k)
		}
	}
}

func TestTheSameSeedIsTheSameExecutor(t *testing.T) {
	for seed := range uint64(10) {
		var a, b []string
		Simulate(seed+1, sim.Options{Trace: func(line string) { a = append(a, line) }})
		Simulate(seed+1, sim.Options{Trace: func(line string) { b = append(b, line) }})
		if !slices.Equal(a, b) {
			t.Errorf("seed %d: %d lines, and %d others", seed+1, len(a), len(b))
		}
	}
}
