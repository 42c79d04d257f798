package sim

import (
	"container/heap"

	"github.com/volley-engine/volley/internal/plan"
)

// World is a queue of things that happen at virtual times. Things at one time
// happen in the order in which they were scheduled.
type World struct {
	now   plan.Time
	seq   uint64
	turns int // things that have happened at this time
	queue eventQueue
}

type event struct {
	at  plan.Time
	seq uint64
	do  func()
}

// Now returns the virtual time.
func (w *World) Now() plan.Time { return w.now }

// At schedules something; a time in the past is now.
func (w *World) At(t plan.Time, do func()) {
	w.seq++
	heap.Push(&w.queue, event{max(t, w.now), w.seq, do})
}

// Next lets the next thing happen; false where nothing is left.
func (w *World) Next() bool {
	if len(w.queue) == 0 {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	if w.turns++; e.at > w.now {
		w.turns = 0
	}
	w.now = e.at
	e.do()
	return true
}

// livelock is how many things may happen at one time.
const livelock = 100_000

// Stuck reports whether more has happened at this time than may, so that none would ever happen later.
func (w *World) Stuck() bool { return w.turns > livelock }

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *eventQueue) Push(x any) { *q = append(*q, x.(event)) }

func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}
