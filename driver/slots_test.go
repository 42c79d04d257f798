package driver

import (
	"math"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// TestSpansThatCannotBeAreLeftOut: whatever an executor tells of its slots, what is kept of it was within the step.
func TestSpansThatCannotBeAreLeftOut(t *testing.T) {
	t.Parallel()
	j := &Job{executors: scheduler.NewExecutors(), step: &step{coverage: make([]*plan.Coverage, 2), began: 5,
		sent:  map[plan.ExecutorID][]plan.Time{"a": {5}},
		spans: map[plan.ExecutorID][]plan.SlotSpan{}}}
	good := &wire.Span{Kind: uint32(plan.Folding), Split: 1, FromNs: 10, ToNs: 20, WorkedNs: 10}
	bad := []*wire.Span{{Slot: 9}, {Kind: 99}, {Split: -2}, {Split: 2}, {FromNs: 30, ToNs: 20},
		{FromNs: math.MaxUint64, ToNs: 20}, {ToNs: math.MaxUint64}, {ToNs: 20, WorkedNs: math.MaxUint64}}
	j.did("a", &wire.Result{TookNs: 100, Spans: append(bad, good)}, 125)
	folded := 0
	for _, p := range j.step.spans["a"] {
		if p.From < 0 || p.To < p.From || p.To > 120 || p.Worked < 0 || p.Worked > p.To-p.From {
			t.Errorf("%+v", p)
		}
		if p.Kind == plan.Folding {
			folded++
		}
	}
	if all := j.step.spans["a"]; folded != 1 || len(all) != 3 {
		t.Errorf("%+v", all)
	}
	j.did("a", &wire.Result{TookNs: math.MaxUint64, Spans: []*wire.Span{good}}, 125)
	if n := len(j.step.spans["a"]); n != 3 {
		t.Errorf("a run that has taken less than no time is told of: %d", n)
	}
}
