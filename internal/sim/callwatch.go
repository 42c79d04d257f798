package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// watchedTry is an attempt of a task.
type watchedTry struct {
	on    plan.ExecutorID
	rows  int64
	moved int64
	busy  time.Duration
	at    plan.Time // when it last got on, or may have begun
	begun bool      // it has said something
	hung  bool      // it has gone without progress for the task timeout
}

// watchedTask is a task of an action.
type watchedTask struct {
	tries    []watchedTry
	done     bool
	lost     bool
	data     []byte
	failures int
	failedOn []plan.ExecutorID
}

// callWatch holds actions against what they promise: every task is done exactly
// once, somewhere, and in the end.
type callWatch struct {
	s     *Sim
	req   *plan.CallRequest
	id    uint64
	tasks []watchedTask
	rates []float64
	bad   bool // a task has failed too often
	moved bool // the event was for the action
	begun bool // it began it
}

// callData returns what a task of an action gives in the simulator.
func callData(call uint64, partition uint32) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, call), uint64(partition))
}

func (c *callWatch) before(ev driver.Event, now plan.Time) {
	c.moved, c.begun = false, ev.Call != nil
	switch {
	case ev.Call != nil:
		c.req, c.rates, c.moved = ev.Call, nil, true
		c.id++
		c.tasks = make([]watchedTask, len(ev.Call.Args))
	case ev.Lost != nil && c.req != nil && c.prepared(ev.Lost.Executor, true):
		c.moved = true
		for i := range c.tasks {
			c.drop(i, ev.Lost.Executor)
		}
	case ev.Message != nil && c.req != nil:
		if r := ev.Message.Body.GetTaskResult(); r != nil {
			c.result(ev.Message.From, r, now)
		}
		if p := ev.Message.Body.GetTaskProgress(); p != nil && p.Call == c.id {
			c.progress(ev.Message.From, p, now)
		}
	case ticks(ev) && c.req != nil:
		c.giveUp(now)
	}
}

func (c *callWatch) prepared(id plan.ExecutorID, was bool) bool {
	if was {
		return c.s.watch.place.was[id]
	}
	return c.s.watch.place.prepared[id]
}

// drop forgets an executor's attempt at a task.
func (c *callWatch) drop(i int, id plan.ExecutorID) bool {
	n := len(c.tasks[i].tries)
	c.tasks[i].tries = slices.DeleteFunc(c.tasks[i].tries, func(t watchedTry) bool { return t.on == id })
	return len(c.tasks[i].tries) < n
}

func (c *callWatch) progress(from plan.ExecutorID, p *wire.TaskProgress, now plan.Time) {
	for k := range c.tasks[p.Partition].tries {
		t := &c.tasks[p.Partition].tries[k]
		if t.on != from {
			continue
		}
		if !t.begun || t.rows != p.Rows || t.moved != p.Moved {
			t.begun, t.at = true, now
			c.waited(from, now)
		}
		t.rows, t.moved, t.busy, c.moved = p.Rows, p.Moved, time.Duration(p.BusyNs), true
	}
}

func (c *callWatch) result(from plan.ExecutorID, r *wire.TaskResult, now plan.Time) {
	if r.Call != c.id || int(r.Partition) >= len(c.tasks) {
		return
	}
	t, kind := &c.tasks[r.Partition], faultOf(r.Fault)
	counted := slices.ContainsFunc(t.tries, func(o watchedTry) bool { return o.on == from && o.hung })
	if !c.drop(int(r.Partition), from) {
		return
	}
	c.moved = true
	c.waited(from, now)
	switch {
	case t.done:
	case r.Fault == nil:
		t.done, t.data = true, r.Data
		if r.BusyNs > 0 {
			c.rates = append(c.rates, float64(r.Rows)/time.Duration(r.BusyNs).Seconds())
		}
	case kind == fault.LostInput || kind == fault.HolderLost:
		t.done, t.lost = true, true
	case counted: // when it was given up
	default:
		c.failed(t, from, kind)
	}
}

// exhausted reports whether a task has failed too often.
func (c *callWatch) exhausted() bool { return c.bad }

func (c *callWatch) after(ev driver.Event, cmds []driver.Command, now plan.Time) {
	if c.req == nil {
		return
	}
	done := false
	for _, x := range cmds {
		if x.Send != nil && x.Send.Body.GetRunTask() != nil {
			c.given(x.Send.To, x.Send.Body.GetRunTask(), now)
		}
		if x.CallDone != nil {
			c.done(x.CallDone)
			done = true
		}
	}
	if !done && !c.s.over {
		c.held()
		c.patient(now)
	}
	if done {
		c.req = nil
	}
}

// given holds an attempt against the rules: two at a time, on two executors, no
// more than one beyond the slots, away from where it failed.
func (c *callWatch) given(to plan.ExecutorID, r *wire.RunTask, now plan.Time) {
	t := &c.tasks[r.Partition]
	load := c.loads()[to]
	others := slices.ContainsFunc(c.s.order, func(n *node) bool {
		return c.prepared(n.id, false) && !slices.Contains(t.failedOn, n.id)
	})
	switch n := c.s.nodes[to]; {
	case !c.prepared(to, false):
		c.s.violate("call.place", "task %d is given to %s, which is not there", r.Partition, to)
	case t.done || t.lost:
		c.s.violate("call.once", "task %d, which is done, is given to %s", r.Partition, to)
	case slices.ContainsFunc(t.tries, func(o watchedTry) bool { return o.on == to }):
		c.s.violate("call.attempts", "task %d is given twice to %s", r.Partition, to)
	case t.running() >= 2:
		c.s.violate("call.attempts", "task %d is attempted %d times at once", r.Partition, t.running()+1)
	case t.running() == 1 && !c.slow(int(r.Partition)):
		c.s.violate("call.speculate", "task %d is attempted again, though it gets on", r.Partition)
	case load > n.slots:
		c.s.violate("call.load", "%s has %d tasks for %d slots and is given one more", to, load, n.slots)
	case slices.Contains(t.failedOn, to) && others && len(t.tries) > 0:
		c.s.violate("call.avoid-again", "the second attempt of task %d goes to %s, which failed with it", r.Partition,
			to)
	case slices.Contains(t.failedOn, to) && others:
		c.s.violate("call.avoid", "task %d goes back to %s, which failed with it", r.Partition, to)
	case c.begun && c.req.Pack >= 0 && len(t.failedOn) == 0 && !c.atHome(to, int(r.Partition)):
		c.s.violate("call.home", "task %d goes to %s, which does not hold its split", r.Partition, to)
	}
	t.tries = append(t.tries, watchedTry{on: to, at: now})
}

// atHome reports whether an executor holds the split that a task reads, or none
// does.
func (c *callWatch) atHome(id plan.ExecutorID, split int) bool {
	place := c.s.watch.place
	if len(place.failures) > 0 {
		return true
	}
	for id, ok := range place.alive {
		if ok && (!place.prepared[id] || place.out(id)) {
			return true // its home may be there
		}
	}
	if next := place.last[splitOf{c.req.Pack, split}]; next != "" && !place.ever[copyOf{next, c.req.Pack, split}] {
		return true // it is on its way
	}
	if place.ever[copyOf{id, c.req.Pack, split}] {
		return true
	}
	for k, ok := range place.holds {
		if _, ex := place.excluded[k.on]; ok && !ex && k.pack == c.req.Pack && k.split == split &&
			place.prepared[k.on] && !place.draining[k.on] && !place.drained[k.on] {
			return len(place.failures) > 0
		}
	}
	return true
}

// slow reports whether a running task deserves a second attempt.
func (c *callWatch) slow(i int) bool {
	if 2*len(c.rates) < len(c.tasks) || c.req.Pack >= 0 || len(c.rates) == 0 {
		return false
	}
	rates := slices.Sorted(slices.Values(c.rates))
	t := c.tasks[i].first()
	return t.busy >= 500*time.Millisecond && float64(t.rows)/t.busy.Seconds() <= 0.5*rates[len(rates)/2]
}

// held finds tasks that no executor runs although one could, and slow ones of
// which no second attempt is made.
func (c *callWatch) held() {
	if c.bad {
		c.s.violate("call.retry", "a task has failed too often, and the job goes on")
		return
	}
	if !c.moved {
		return
	}
	free := c.free()
	for i := range c.tasks {
		t := &c.tasks[i]
		switch {
		case !t.done && len(t.tries) > 0 && t.running() == 0 && c.roomFor(t) != "":
			c.s.violate("call.hung", "task %d hangs on %s, and %s has room", i, t.tries[0].on, c.roomFor(t))
			return
		case t.done || len(t.failedOn) > 0:
		case len(t.tries) == 0 && c.req.Pack < 0 && free[0] != "":
			c.s.violate("call.again", "no executor runs task %d, and %s has room", i, free[0])
			return
		case len(t.tries) == 1 && c.slow(i) && c.pending() == 0 &&
			(free[1] != "" && free[1] != t.tries[0].on || free[2] != "" && free[2] != t.tries[0].on):
			c.s.violate("call.speculate", "task %d is slow on %s, and %s is idle", i, t.tries[0].on, free[1])
			return
		}
	}
}

func (c *callWatch) pending() (n int) {
	for i := range c.tasks {
		if !c.tasks[i].done && c.tasks[i].running() == 0 {
			n++
		}
	}
	return n
}

// loads returns how many attempts each executor has, those that hang there too.
func (c *callWatch) loads() map[plan.ExecutorID]int {
	load := map[plan.ExecutorID]int{}
	for i := range c.tasks {
		for _, o := range c.tasks[i].tries {
			load[o.on]++
		}
	}
	return load
}

// free returns an executor with room for a task, and two with an idle slot.
func (c *callWatch) free() (out [3]plan.ExecutorID) {
	load := c.loads()
	for _, n := range c.s.order {
		if !c.prepared(n.id, false) {
			continue
		}
		if load[n.id] <= n.slots {
			out[0] = n.id
		}
		if load[n.id] < n.slots {
			out[1], out[2] = n.id, out[1]
		}
	}
	return out
}

// done holds what the session is given.
func (c *callWatch) done(out *plan.CallOutcome) {
	for i := range c.tasks {
		t := &c.tasks[i]
		switch {
		case !t.done:
			c.s.violate("call.complete", "the action is done, its task %d is not", i)
		case t.lost != (out.Lost[i] != nil):
			c.s.violate("call.complete", "task %d: lost is %v, reported %v", i, t.lost, out.Lost[i])
		case !t.lost && !slices.Equal(out.Data[i], callData(c.id, uint32(i))):
			c.s.violate("call.result", "the result of task %d is not its own", i)
		}
	}
}
