package sim_test

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
)

// crowdOf describes executors with four splits each, half of which are slow.
func crowdOf(t *testing.T, executors int, policy abss.Policy) sim.CrowdConfig {
	t.Helper()
	law, err := pace.Parse("uneven", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	return sim.CrowdConfig{Executors: executors, Splits: 4 * executors, Rows: 20_000, Accumulator: 8000, Law: law,
		Clock: func() time.Duration { now++; return now },
		Job: driver.JobConfig{ID: "crowd", Fingerprint: plan.DigestOf([]byte("plan")), Executors: executors,
			Sync: abss.Config{Policy: policy}}.EnsureDefaults()}
}

func steps(t *testing.T, c sim.CrowdConfig) sim.CrowdStep {
	t.Helper()
	all, _, err := sim.Crowd(c, 4)
	if err != nil {
		t.Fatal(c.Job.Sync.Policy, err)
	}
	return all[len(all)-1]
}

// TestACrowdsSteps: each executor merges its own splits, so that the driver gets one part of each; along a tree it gets
// as many as a group has, whatever the number of executors. Each row is in the result once, which Crowd holds itself
// to.
func TestACrowdsSteps(t *testing.T) {
	for _, executors := range []int{16, 100} {
		flat := crowdOf(t, executors, abss.BSP)
		tree := flat
		tree.FanIn = 4
		a, b := steps(t, flat), steps(t, tree)
		if a.Parts != executors || b.Parts > 2*tree.FanIn || a.Received < int64(8000*executors) ||
			b.Received > int64(8000*2*tree.FanIn+300*executors) || a.Took < a.Ideal || b.Hops < 2 {
			t.Errorf("%d executors: flat %+v, by a tree %+v", executors, a, b)
		}
		if more := b.Took - a.Took; more > 5*time.Millisecond {
			t.Errorf("%d executors: a tree takes %v longer", executors, more)
		}
	}
}

// TestACrowdSteals: many executors without work help each of many that have some, and all of it is in the result.
func TestACrowdSteals(t *testing.T) {
	for _, fan := range []int{0, 4} {
		c := crowdOf(t, 120, abss.Steal)
		c.FanIn = fan
		if s := steps(t, c); s.Took > s.Ideal*6/5 {
			t.Errorf("stealing takes %v, Ideal %v", s.Took, s.Ideal)
		}
		c.Job.Sync.Policy = abss.ABSP
		if s := steps(t, c); s.Took > s.Ideal*6/5 {
			t.Errorf("cut steps take %v, Ideal %v", s.Took, s.Ideal)
		}
	}
}
