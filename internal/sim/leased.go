package sim

import (
	"time"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// leasedRun is the timeline of a leased run: slots take the next piece of its
// queue when they have folded the one in hand.
type leasedRun struct {
	queue []*wire.Lease
	idle  []int // slots
	had   []*wire.Lease
	took  map[uint32]plan.Time
}

func (n *node) startLeased(cmd *executor.Run) {
	if err := n.work.beginLeased(cmd); err != nil {
		n.step(executor.Event{Folded: &executor.Folded{Run: cmd.ID, Err: err}})
		return
	}
	r := &run{cmd: cmd, leased: &leasedRun{took: map[uint32]plan.Time{}},
		did: executor.NewTimeline(int(cmd.Step.PackNode), n.slots, n.w.now)}
	for k := range n.slots {
		r.leased.idle = append(r.leased.idle, k)
	}
	n.runs[cmd.ID] = r
}

// lease gives a run more to fold.
func (n *node) lease(c *executor.LeaseRun) {
	r := n.runs[c.Run]
	if r == nil || r.stopped {
		return
	}
	n.work.addStates(r.cmd, c.States)
	r.leased.queue = append(r.leased.queue, c.Leases...)
	n.foldLeases(r)
}

// foldLeases sets idle slots to work.
func (n *node) foldLeases(r *run) {
	q := r.leased
	for len(q.idle) > 0 && len(q.queue) > 0 {
		slot, l := q.idle[0], q.queue[0]
		q.idle, q.queue = q.idle[1:], q.queue[1:]
		end := n.spend(slot, n.w.now, n.work.rowsOf(r.cmd, l))
		began := n.w.now
		q.took[l.Id] = end - began
		n.after(end, func() {
			if n.runs[r.cmd.ID] != r || r.stopped {
				return
			}
			r.did.Did(slot, executor.KindOf(l), int(l.Task.Split), began, n.w.now)
			if f := n.work.failed(r.cmd, l); f != nil {
				r.stopped = true
				delete(n.runs, r.cmd.ID)
				n.step(executor.Event{Folded: f})
				return
			}
			q.had = append(q.had, l)
			q.idle = append(q.idle, slot)
			n.step(executor.Event{Pieces: &executor.PiecesFolded{Run: r.cmd.ID, IDs: []uint32{l.Id}}})
			n.foldLeases(r)
		})
	}
}

// endLeased ends a run with what is to be included.
func (n *node) endLeased(r *run, include []uint32) {
	if r == nil || r.stopped {
		return
	}
	r.stopped = true
	delete(n.runs, r.cmd.ID)
	var busy time.Duration
	for _, id := range include {
		busy += r.leased.took[id]
	}
	out := n.work.finishLeased(r.cmd, r.leased.had, include, busy)
	n.step(executor.Event{Folded: r.did.Tell(out, &n.loads, n.w.now)})
}
