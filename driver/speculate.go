package driver

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// When a slot is free and no task waits, a second attempt is made of one that
// gets on much more slowly than the others: judged by the rows it reads in a
// second, not by how long it has run, since its partition may be the largest.
const (
	slowRate   = 0.5                    // of the median of the tasks that are done
	speculated = 500 * time.Millisecond // that a task runs at least before it is judged
	attempts   = 2                      // of a task at a time
)

// onTaskProgress notes how far a task has come.
func (j *Job) onTaskProgress(from plan.ExecutorID, p *wire.TaskProgress, now plan.Time) {
	c := j.call
	if c == nil || p.Call != c.id {
		return
	}
	i := c.req.task(int(p.Partition))
	if i < 0 {
		return
	}
	if a := c.tasks[i].attemptOf(from); a != nil {
		if !a.begun || a.moved != p.Moved && !mutant.On(mutant.BytesUncounted) || a.rows != p.Rows {
			a.begun, a.at, c.since = true, now, now
			c.waited(from, now)
		}
		a.rows, a.moved, a.busy = p.Rows, p.Moved, time.Duration(p.BusyNs)
		j.speculate(now)
	}
}

// speculate makes second attempts of slow tasks on executors that have nothing
// else to do.
func (j *Job) speculate(now plan.Time) {
	c := j.call
	if mutant.On(mutant.SpeculateNever) || len(c.pending) > 0 || len(c.rates) == 0 || 2*len(c.rates) < len(c.tasks) || c.req.Pack >= 0 || c.req.Avoid != nil {
		return
	}
	rates := slices.Sorted(slices.Values(c.rates))
	median := rates[len(rates)/2]
	if median == 0 {
		return // nobody counts what it reads
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		if t.done || t.running() == 0 || len(t.attempts) >= attempts {
			continue
		}
		a := t.attempts[slices.IndexFunc(t.attempts, func(a attempt) bool { return !a.hung })]
		if !mutant.On(mutant.SpeculateAll) && (a.busy < speculated || float64(a.rows)/a.busy.Seconds() > slowRate*median) {
			continue
		}
		if id := j.idle(i, a.on); id != "" {
			j.counters.Speculated++
			j.give(i, id, now)
		}
	}
}

// idle is an executor with a free slot, another one than that which is slow, and none
// that has failed with the task.
func (j *Job) idle(task int, but plan.ExecutorID) plan.ExecutorID {
	for _, id := range j.order {
		if slices.Contains(j.call.tasks[task].failedOn, id) {
			continue
		}
		if (id != but || mutant.On(mutant.SpeculateOnSame)) && j.prepared[id] && j.call.load[id] < j.slots[id] {
			return id
		}
	}
	return ""
}
