package scheduler

import (
	"cmp"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
)

// A task runs on the executor that holds its split, however busy, as long as the
// executor is connected, some of its slots make progress and the task has not
// failed. One that reads map outputs prefers the executors that hold them, and
// does not wait for that.

// looked is how many pending tasks are searched for one whose input an executor
// holds.
const looked = 64

// pick returns the index of a pending task for an executor: one whose input it
// holds, else the first that need not run elsewhere; −1 is none.
func (t *Tasks) pick(id plan.ExecutorID) int {
	first := -1
	for at, i := range t.pending {
		home := t.home(i)
		switch {
		case plantedHangs(t.tasks[i].attemptOf(id) != nil), home != id && t.waitsFor(home):
			continue
		case home == id:
			return at
		case t.avoids(i, id):
		case t.req.Holders != nil && slices.Contains(t.req.Holders[i], string(id)):
			return at
		case first < 0:
			first = at
		}
		if first >= 0 && at >= looked {
			break
		}
	}
	return first
}

// home returns the executor on which a task that has not failed must run; empty is any.
func (t *Tasks) home(i int) plan.ExecutorID {
	if t.tasks[i].failures > 0 {
		return ""
	}
	return plantedHome(cmp.Or(t.req.Prefer, t.holderOf(t.Partition(i))))
}

// holderOf returns the executor that holds a split of the tasks' pack; empty is none.
func (t *Tasks) holderOf(split int) plan.ExecutorID {
	if s := t.req.Splits; s != nil && split < len(s.splits) {
		return s.Owner(plan.SplitID(split))
	}
	return ""
}

// waitsFor reports whether an executor is worth waiting for: it is connected, and hung
// tasks do not have all of its slots.
func (t *Tasks) waitsFor(home plan.ExecutorID) bool {
	return t.ex.Present(home) && t.hung[home] < t.ex.SlotsOf(home)
}

// avoids reports whether a task is to run on another executor than this one.
func (t *Tasks) avoids(i int, id plan.ExecutorID) bool {
	bad := func(id plan.ExecutorID) bool {
		return t.req.Avoid != nil && slices.Contains(t.req.Avoid[i], string(id)) ||
			slices.Contains(t.tasks[i].failedOn, id)
	}
	return plantedAvoid(bad(id) && t.ex.any(func(other plan.ExecutorID) bool { return !bad(other) }))
}
