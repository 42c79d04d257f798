package scheduler

import (
	"iter"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
)

// Executors are the executors of a job, in the order in which they first
// joined, and which of them take part.
type Executors struct {
	order []plan.ExecutorID
	slots map[plan.ExecutorID]int
	there map[plan.ExecutorID]bool
}

// NewExecutors returns an empty set.
func NewExecutors() *Executors {
	return &Executors{slots: map[plan.ExecutorID]int{}, there: map[plan.ExecutorID]bool{}}
}

// Joined notes a new or returning executor, which does not take part yet.
func (e *Executors) Joined(id plan.ExecutorID, slots int) {
	if _, known := e.slots[id]; !known {
		e.order = append(e.order, id)
	}
	e.slots[id], e.there[id] = max(1, slots), false
}

// Prepared notes that an executor takes part from now on.
func (e *Executors) Prepared(id plan.ExecutorID) { e.there[id] = true }

// Lost notes that an executor does not take part any more.
func (e *Executors) Lost(id plan.ExecutorID) { e.there[id] = false }

// Present reports whether an executor takes part.
func (e *Executors) Present(id plan.ExecutorID) bool { return e.there[id] }

// SlotsOf returns how many tasks an executor runs at a time.
func (e *Executors) SlotsOf(id plan.ExecutorID) int { return e.slots[id] }

// All returns all executors that have joined.
func (e *Executors) All() iter.Seq[plan.ExecutorID] { return slices.Values(e.order) }

// Count returns how many take part.
func (e *Executors) Count() (n int) {
	for _, id := range e.order {
		if e.there[id] {
			n++
		}
	}
	return n
}

// Slots returns the number of slots of the executors that take part.
func (e *Executors) Slots() (n int) {
	for _, id := range e.order {
		if e.there[id] {
			n += e.slots[id]
		}
	}
	return n
}

// any reports whether an executor that takes part satisfies a condition.
func (e *Executors) any(is func(plan.ExecutorID) bool) bool {
	return slices.ContainsFunc(e.order, func(id plan.ExecutorID) bool { return e.there[id] && is(id) })
}
