package scheduler

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// When a slot is free and no task waits, a second attempt is made at a task
// that is much slower than the others: judged by the rows it reads in a second,
// not by how long it has run, since its partition may be the largest.
const (
	slowRate   = 0.5                    // of the median of the tasks that are done
	speculated = 500 * time.Millisecond // that a task runs at least before it is compared
	attempts   = 2                      // of a task at a time
)

// copySlow makes second attempts at slow tasks on idle executors.
func (t *Tasks) copySlow(now plan.Time) {
	median := t.usualRate()
	if median == 0 {
		return
	}
	for i := range t.tasks {
		k := &t.tasks[i]
		if k.done || k.running() == 0 || len(k.attempts) >= attempts {
			continue
		}
		a := k.attempts[slices.IndexFunc(k.attempts, func(a attempt) bool { return !a.hung })]
		if !plantedSlow(a.slow(median)) {
			continue
		}
		if id := t.idle(k, a.on); id != "" {
			t.give(i, id, true, now)
		}
	}
}

// usualRate returns how many rows tasks like these read in a second; 0 is unknown, or not
// applicable: other tasks wait for the slots, or a task is bound to the holder of its split
// or must avoid some executor.
func (t *Tasks) usualRate() float64 {
	n := len(t.rates)
	if len(t.pending) > 0 || n == 0 || 2*n < len(t.tasks) || t.req.Splits != nil || t.req.Avoid != nil {
		return 0
	}
	return slices.Sorted(slices.Values(t.rates))[n/2]
}

// slow reports whether an attempt is much slower than usual.
func (a *attempt) slow(usual float64) bool {
	return a.busy >= speculated && float64(a.rows)/a.busy.Seconds() <= slowRate*usual
}

// idle returns an executor with a free slot that does not run the slow attempt and
// has not failed with the task.
func (t *Tasks) idle(k *task, but plan.ExecutorID) plan.ExecutorID {
	for id := range t.ex.All() {
		if slices.Contains(k.failedOn, id) || !plantedOther(id != but) {
			continue
		}
		if t.ex.Present(id) && t.taken(id) < t.ex.SlotsOf(id) {
			return id
		}
	}
	return ""
}
