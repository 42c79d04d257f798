package sim

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
)

func TestSeedsAreCleanAndEveryFaultFires(t *testing.T) {
	faults := map[string]int{}
	for seed := range uint64(seeds.Of(60)) {
		r := Simulate(seed+1, Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s (again with: make sim SEEDS=1 FROM=%d)", seed+1, v, seed+1)
		}
		if r.Steps < 50 && r.Ended == "" {
			t.Errorf("seed %d: %d steps", seed+1, r.Steps)
		}
		for k, n := range r.Faults {
			faults[k] += n
		}
	}
	for _, k := range []string{"crash", "return", "hang", "late join", "delay", "reorder", "duplicate", "loss",
		"connection lost", "slow disk", "damaged copy", "speed change", "partition", "job crash", "disk full",
		"clock skew", "exclusion", "readmission", "piece failed", "action",
		"slow task", "task failed", "input lost", "drain", "drained", "massacre", "stall", "slow link", "miscount",
		"foreign plan", "hung task", "given up", "bytes moved",
		"job crash before the first checkpoint"} {
		if faults[k] == 0 {
			t.Errorf("no %s fired", k)
		}
	}
}

func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	a, b := Simulate(7, Options{}), Simulate(7, Options{})
	if a.Virtual != b.Virtual || a.Steps != b.Steps || len(a.Faults) != len(b.Faults) {
		t.Errorf("%v and %v", a, b)
	}
}
