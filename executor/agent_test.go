package executor

import (
	"fmt"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

func start(step uint32, digest plan.Digest, split uint32) Event {
	return Event{Message: &wire.ToExecutor{Body: &wire.ToExecutor_StartStep{StartStep: &wire.StartStep{Job: "j",
		Step:        step,
		ParamDigest: digest[:], Tasks: []*wire.Assignment{{Split: split, Attempt: 1, Epoch: 1}}}}}}
}

func starts(cmds []Command) (splits []uint32) {
	for _, c := range cmds {
		if c.Start != nil {
			splits = append(splits, c.Start.Step.Tasks[0].Split)
		}
	}
	return splits
}

// TestAStepWaitsForItsParameter, which may come by another way, and after it;
// one that is stopped meanwhile has folded nothing.
func TestAStepWaitsForItsParameter(t *testing.T) {
	digest := plan.DigestOf([]byte("w"))
	w := &wire.Parameter{Digest: digest[:], Data: []byte("w")}
	param := Event{Message: &wire.ToExecutor{Body: &wire.ToExecutor_Parameter{Parameter: w}}}
	stop := Event{Message: &wire.ToExecutor{Body: &wire.ToExecutor_StopStep{StopStep: &wire.StopStep{Job: "j", Step: 1,
		Epoch: 9, Skip: []uint32{4}}}}}
	a := NewAgent("e", 1)
	for split := range uint32(2) {
		if got := starts(a.Step(start(1, digest, split), 0)); len(got) > 0 {
			t.Fatalf("split %d is folded without a parameter", got)
		}
	}
	if got := starts(a.Step(param, 0)); len(got) != 2 || got[0] != 0 || got[1] != 1 {
		t.Fatalf("splits %d begin with the parameter", got)
	}
	a = NewAgent("e", 1)
	a.Step(start(1, digest, 3), 0)
	a.Step(start(1, digest, 4), 0)
	var rows, results int
	for _, c := range a.Step(stop, 0) {
		if r := c.Send.GetResult(); r != nil {
			results++
			rows += len(r.Coverage)
		}
	}
	if results != 2 || rows != 1 {
		t.Errorf("%d results with %d splits, want 2 with split 3", results, rows)
	}
	if got := starts(a.Step(param, 0)); len(got) > 0 {
		t.Errorf("splits %d begin after the stop", got)
	}
	a.Step(start(1, digest, 3), 0)
	a = NewAgent("e", 1)
	a.Step(start(1, digest, 3), 0)
	a.Step(start(2, plan.DigestOf([]byte("v")), 3), 0)
	if got := starts(a.Step(param, 0)); len(got) > 0 {
		t.Errorf("an older step's splits %d begin", got)
	}
}

// TestTasksAreDealtOutInTurn: no slot is without a task, but for one where there is none.
func TestTasksAreDealtOutInTurn(t *testing.T) {
	for want, c := range map[string][2]int{"[[]]": {0, 4}, "[[0]]": {1, 4}, "[[0] [1]]": {2, 4},
		"[[0 2 4] [1 3]]": {5, 2}, "[[0 1 2]]": {3, 1}} {
		if got := fmt.Sprint(SlotsOf(c[0], c[1])); got != want {
			t.Errorf("%d tasks on %d slots: %s, want %s", c[0], c[1], got, want)
		}
	}
}
