package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// worker is what a node's slots work on: real folds, or counting ones.
type worker interface {
	plan(*wire.Prepare) *executor.Planned
	fetch(*wire.Hold) *executor.Fetched
	// begin prepares a run and says how many rows each task's split has and
	// how many of them it folds.
	begin(*executor.Run) (rows func(task int) (split, limit int64), err error)
	// progress is what rows of each task count for in reports.
	progress(run *executor.Run, counts []int64) []int64
	// finish folds what the timeline says and merges it.
	finish(run *executor.Run, counts []int64, skip map[plan.SplitID]bool, busy time.Duration) *executor.Folded
	// beginLeased, rowsOf and finishLeased do the same for a leased run.
	beginLeased(*executor.Run) error
	rowsOf(run *executor.Run, l *wire.Lease) int64
	failed(run *executor.Run, l *wire.Lease) *executor.Folded // nil where it was folded
	addStates(run *executor.Run, states []*wire.Part)
	finishLeased(run *executor.Run, had []*wire.Lease, include []uint32, busy time.Duration) *executor.Folded
	act(*wire.RunTask) *wire.TaskResult
}

// node is one executor in virtual time: the real agent, and slots whose
// progress is computed.
type node struct {
	w       *World
	id      plan.ExecutorID
	agent   *executor.Agent
	slots   int
	work    worker
	spend   func(slot int, at plan.Time, rows int64) plan.Time
	fetchT  func(h *wire.Hold) plan.Time // how long getting a split takes
	send    func(*wire.ToDriver)
	runs    map[int]*run
	life    int // things scheduled in an earlier life do not happen
	up      bool
	hung    plan.Time   // until when nothing happens on it
	conn    int         // number of its connection to the driver
	joined  *driver.Job // that it is connected to
	clock   clock
	full    plan.Time                                    // until when its disk takes no more
	stalled plan.Time                                    // until when it hangs without that being noticed
	reports func(*run, *executor.Sample, *wire.Progress) // sees what is reported; may be nil
	foreign bool                                         // its program builds another plan
	link    plan.Time                                    // until when its link is busy
	acts    func(*wire.RunTask)                          // runs a task; nil does it at once
	loads   executor.Loads
	// until when messages to ("to") or from ("fr") it do not arrive
	cut map[string]plan.Time
}

// run is one run of a node.
type run struct {
	cmd     *executor.Run
	slots   []*slot
	tasks   int
	version int // finish events of an earlier version are void
	stopped bool
	leased  *leasedRun // in place of slots
	did     *executor.Timeline
}

// after schedules something for as long as the node lives; a hung node does
// it when it wakes.
func (n *node) after(at plan.Time, do func()) {
	life := n.life
	n.w.At(at, func() {
		switch {
		case !n.up || n.life != life:
		case n.hung > n.w.now:
			n.after(n.hung, do)
		default:
			do()
		}
	})
}

// hang freezes the node, its slots included, until a time.
func (n *node) hang(until plan.Time) {
	n.hung = until
	for _, id := range slices.Sorted(maps.Keys(n.runs)) {
		r := n.runs[id]
		if r.leased != nil {
			continue // what it has in hand ends when the node wakes
		}
		for _, s := range r.slots {
			s.advance(n.w.now)
			if s.left > 0 {
				s.at = until
			}
		}
		if !r.stopped {
			n.awaitFinish(r)
		}
	}
}

// crash loses everything that the node was doing.
func (n *node) crash() {
	n.up, n.hung = false, 0
	n.life++
	n.runs = map[int]*run{}
}

// step lets the agent see an event and carries out what it says.
func (n *node) step(ev executor.Event) {
	for _, c := range n.agent.Step(ev, n.clock.at(n.w.now)) {
		if p := c.Send.GetProgress(); p != nil && ev.Sampled != nil && n.reports != nil {
			n.reports(n.runs[ev.Sampled.Run], ev.Sampled, p)
		}
		switch {
		case c.Send != nil:
			n.send(c.Send)
		case c.Plan != nil:
			n.step(executor.Event{Planned: n.work.plan(c.Plan)})
		case c.Fetch != nil:
			n.fetch(c.Fetch)
		case c.Start != nil:
			n.start(c.Start)
		case c.Stop != nil:
			n.stop(c.Stop)
		case c.SampleAt != nil:
			n.sampleAt(c.SampleAt)
		case c.Lease != nil:
			n.lease(c.Lease)
		case c.Include != nil:
			n.endLeased(n.runs[c.Include.Run], c.Include.IDs)
		case c.Act != nil && n.acts != nil:
			n.acts(c.Act)
		case c.Act != nil:
			n.step(executor.Event{Acted: n.work.act(c.Act)})
		}
	}
}

func (n *node) fetch(h *wire.Hold) {
	if c, ok := n.work.(*countingWorker); ok {
		c.fetching(h)
	}
	began := n.w.now
	n.after(n.w.now+n.fetchT(h), func() {
		n.loads.Did(int(h.Node), int(h.Split), began, n.w.now)
		n.step(executor.Event{Fetched: n.work.fetch(h)})
	})
}

func (n *node) start(cmd *executor.Run) {
	if cmd.Step.Leased {
		n.startLeased(cmd)
		return
	}
	rows, err := n.work.begin(cmd)
	if err != nil {
		n.step(executor.Event{Folded: &executor.Folded{Run: cmd.ID, Err: err}})
		return
	}
	r := &run{cmd: cmd, tasks: len(cmd.Step.Tasks), did: executor.NewTimeline(int(cmd.Step.PackNode), n.slots, n.w.now)}
	for k, words := range executor.SlotsOf(r.tasks, n.slots) {
		spend := func(at plan.Time, rows int64) plan.Time { return n.spend(k, at, rows) }
		r.slots = append(r.slots, newSlot(words, rows, n.w.now, spend))
	}
	n.runs[cmd.ID] = r
	n.awaitFinish(r)
}

// awaitFinish schedules the moment at which the next task of the run has
// folded all its rows.
func (n *node) awaitFinish(r *run) {
	r.version++
	version, next := r.version, forever
	for _, s := range r.slots {
		if at, ok := s.nextFinish(); ok {
			next = min(next, at)
		}
	}
	if next == forever {
		n.ended(r)
		return
	}
	n.after(next, func() {
		if r.version != version || r.stopped {
			return
		}
		for _, s := range r.slots {
			s.advance(n.w.now)
		}
		n.step(executor.Event{Sampled: &executor.Sample{Run: r.cmd.ID, Counts: n.work.progress(r.cmd, r.counts())}})
		n.awaitFinish(r)
	})
}

func (r *run) counts() []int64 {
	out := make([]int64, r.tasks)
	for _, s := range r.slots {
		for _, t := range s.tasks {
			out[t.word] = t.done
		}
	}
	return out
}

// ended hands the run's result to the agent.
func (n *node) ended(r *run) { n.finish(r, nil) }

func (n *node) finish(r *run, skip map[plan.SplitID]bool) {
	if n.runs[r.cmd.ID] != r {
		return
	}
	delete(n.runs, r.cmd.ID)
	var busy time.Duration
	for k, s := range r.slots {
		busy += s.at - s.began
		r.did.Did(k, plan.Folding, s.split(r.cmd.Step), s.began, s.at)
	}
	n.step(executor.Event{Folded: r.did.Tell(n.work.finish(r.cmd, r.counts(), skip, busy), &n.loads, n.w.now)})
}

// stop ends a run's slots at the chunk in hand.
func (n *node) stop(c *executor.StopRun) {
	r := n.runs[c.Run]
	if r == nil || r.stopped {
		return
	}
	if r.leased != nil {
		n.endLeased(r, nil)
		return
	}
	r.stopped = true
	last := n.w.now
	for _, s := range r.slots {
		last = max(last, s.stop(n.w.now))
	}
	skip := map[plan.SplitID]bool{}
	for _, s := range c.Skip {
		skip[s] = true
	}
	n.after(last, func() { n.finish(r, skip) })
}

func (n *node) sampleAt(c *executor.SampleAt) {
	n.after(n.clock.world(c.At), func() {
		r := n.runs[c.Run]
		if r == nil || r.stopped {
			return
		}
		for _, s := range r.slots {
			s.advance(n.w.now)
		}
		n.step(executor.Event{Sampled: &executor.Sample{Run: c.Run, Counts: n.work.progress(r.cmd, r.counts()),
			Due: true}})
	})
}
