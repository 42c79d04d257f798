package worldtest

import (
	"regexp"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/sim"
)

// Simulate runs a seed of a world.
type Simulate func(seed uint64, o sim.Options) *sim.Result

// Clean fails unless no oracle finds anything in the first seeds of a world, and each of its faults has fired in them.
func Clean(t *testing.T, simulate Simulate, seeds int, world string, faults ...string) {
	t.Helper()
	fired := map[string]int{}
	for seed := range uint64(seeds) {
		r := simulate(seed+1, sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s (again with: make sim SEEDS=1 FROM=%d)", seed+1, v, seed+1)
		}
		for k, n := range r.Faults {
			fired[k] += n
		}
	}
	for _, k := range faults {
		if fired[world+": "+k] == 0 {
			t.Errorf("no %s fired", k)
		}
	}
}

// address is where something lies in memory, which is another place each time.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// Repeats fails unless each of the first seeds of a world tells the same twice.
func Repeats(t *testing.T, simulate Simulate, seeds int) {
	t.Helper()
	for seed := range uint64(seeds) {
		tell := func() (lines []string) {
			simulate(seed+1, sim.Options{Trace: func(line string) {
				lines = append(lines, address.ReplaceAllString(line, ""))
			}})
			return lines
		}
		if a, b := tell(), tell(); !slices.Equal(a, b) {
			t.Errorf("seed %d: %d lines, and %d others", seed+1, len(a), len(b))
		}
	}
}
