package life

import (
	"regexp"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/sim"
)

// TestLivesAreCleanAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestLivesAreCleanAndEveryFaultFires(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 100
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
	for _, k := range []string{"driver crash", "driver started again", "journal refuses", "journal slow",
		"journal silent", "journal's disk full", "disk full",
		"directory taken", "result not kept", "no room for a process", "program gone", "program cannot run",
		"process dies early", "process is lost early",
		"process killed", "process exits without a word", "process fails", "process hangs", "process does not read",
		"process hangs up", "late word", "kill held up",
		"interrupt ignored", "cancel", "resumed", "submission refused", "prune", "executor dies",
		"executor registers again", "executor refused", "unfit", "drain",
		"leaving", "goodbye", "runner ends", "late word of a runner", "left alone", "hopeless"} {
		if faults["life: "+k] == 0 {
			t.Errorf("no %s fired", k)
		}
	}
}

// address is where something lies in memory, which is another place each time.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

func TestTheSameSeedIsTheSameLife(t *testing.T) {
	for seed := range uint64(20) {
		var a, b []string
		Simulate(seed+1, sim.Options{Trace: func(line string) { a = append(a, address.ReplaceAllString(line, "")) }})
		Simulate(seed+1, sim.Options{Trace: func(line string) { b = append(b, address.ReplaceAllString(line, "")) }})
		if !slices.Equal(a, b) {
			t.Errorf("seed %d: %d lines, and %d others", seed+1, len(a), len(b))
		}
	}
}
