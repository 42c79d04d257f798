package executor

import (
	"io"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// onlyStops is a connection that brings two stops, one after the other, and ends.
type onlyStops struct{ stops []*wire.StopStep }

func (c *onlyStops) Send(*wire.ToDriver) error { return nil }

func (c *onlyStops) Close() error { return nil }

func (c *onlyStops) Recv() (*wire.ToExecutor, error) {
	if len(c.stops) == 0 {
		return nil, io.EOF
	}
	s := c.stops[0]
	c.stops = c.stops[1:]
	return &wire.ToExecutor{Body: &wire.ToExecutor_StopStep{StopStep: s}}, nil
}

// TestAStopDoesNotWaitForTheLoop: the receiver stops the slots of the runs that it is for, and of no others. The
// first stop says which results are left out, as the agent has it, since slots may have left them out already.
func TestAStopDoesNotWaitForTheLoop(t *testing.T) {
	conn := &onlyStops{stops: []*wire.StopStep{{Job: "j", Step: 3, Epoch: 2, Skip: []uint32{1}},
		{Job: "j", Step: 3, Epoch: 2, Skip: []uint32{0}}}}
	e := New(t.Context(), Config{ID: "e", Slots: 1}, nil, conn)
	run := func(job string, step uint32, epoch uint64, leased bool) *liveRun {
		r := &liveRun{step: &wire.StartStep{Job: job, Step: step, Tasks: []*wire.Assignment{{Epoch: epoch}}},
			page: runner.NewPage(1, nil)}
		if leased {
			r.leasing = newLeasing()
		}
		return r
	}
	runs := []*liveRun{run("j", 3, 2, false), run("j", 3, 1, false), run("j", 3, 3, false), run("j", 4, 2, false),
		run("k", 3, 2, false), run("j", 3, 0, true)}
	for i, r := range runs {
		e.keep(i, r)
	}
	e.receive() // nobody runs the loop
	for i, r := range runs {
		if want := i < 2; r.page.Stopped() != want {
			t.Errorf("run %d is stopped: %v, want %v", i, r.page.Stopped(), want)
		}
	}
	if got := runs[0].skipped(); len(got) != 1 || !got[1] {
		t.Errorf("it leaves out %v", got)
	}
	if late := (&liveRun{}); late.skipped() != nil ||
		!slices.Equal(skippedBy(&wire.StopStep{Skip: []uint32{7}}), []plan.SplitID{7}) {
		t.Error("a run leaves out splits that nobody has named")
	}
}

// TestWhatComesWithPiecesIsThereBeforeThem: one that takes the second piece has the state that came with both, though
// the slot of the first has not gone on yet.
func TestWhatComesWithPiecesIsThereBeforeThem(t *testing.T) {
	l, there := newLeasing(), 0
	l.add(&LeaseRun{Leases: []*wire.Lease{{Id: 1}, {Id: 2}}, States: []*wire.Part{{}, {}}})
	for want := range uint32(2) {
		if got := l.next(func(all []*wire.Part) { there += len(all) }); got.GetId() != want+1 || there != 2 {
			t.Errorf("piece %d, and %d of 2 states", got.GetId(), there)
		}
	}
}
