package reassigned

import (
	"time"

	"github.com/volley-engine/volley/tables/reassign"
)

// worker is a worker, as its shell runs it: one thing at a time.
type worker struct {
	id               reassign.Worker
	helpers, helpees []reassign.Worker
	life             int
	machine          *reassign.Machine
	clock            int
	item             int // from the front
	each             time.Duration
	still            time.Duration // it stands still until then
	busy             bool          // its next item is on its way
	waits            bool          // for others, before its next clock
	jobs             []job         // ranges that the machine wants done
	counted          []int         // how often each item of the clock counts
	refused          map[reassign.Task]bool
}

// job is a range to be done, for another or again for itself.
type job struct {
	reassign.Task
	own  bool
	left int
}

// begin begins a life at a clock.
func (k *worker) begin(w *world, clock int) {
	k.life++
	k.machine = reassign.New(k.id, k.life, w.o, k.helpers, k.helpees)
	k.jobs, k.busy, k.waits = nil, false, false
	k.refused = map[reassign.Task]bool{}
	w.tell("worker %d begins life %d at clock %d", k.id, k.life, clock)
	k.clock = clock
	k.beginClock(w)
	k.tick(w, k.life)
}

func (k *worker) beginClock(w *world) {
	k.item, k.waits = 0, false
	k.counted = make([]int, 20+int(k.id)*7%30)
	k.do(w, k.machine.Begin(k.clock, len(k.counted), w.now))
}

// over reports whether the worker has done all clocks.
func (k *worker) over(w *world) bool { return k.clock == w.clocks }

// tick lets the worker look for what waits, as it does between items.
func (k *worker) tick(w *world, life int) {
	if life == k.life {
		k.do(w, k.machine.Check(k.item, w.now))
		w.after(5*time.Millisecond, func() { k.tick(w, life) })
	}
}

// do carries out what the machine decides.
func (k *worker) do(w *world, all []reassign.Command) {
	for _, c := range all {
		switch {
		case c.Send != nil:
			k.sent(w, c.Send)
			w.post(c.Send)
		case c.Help != nil:
			k.mayHelp(w, *c.Help)
			k.jobs = append(k.jobs, job{*c.Help, false, c.Help.Len()})
		case c.Own != nil:
			k.jobs = append(k.jobs, job{*c.Own, true, c.Own.Len()})
		case c.Take != nil:
			w.fired("range done by a helper")
			k.count(w, c.Take.Range)
		case c.Fail != nil:
			w.violate("help.wait", "worker %d has waited for %v for %d", k.id, c.Fail.Waited, c.Fail.Helper)
		case c.Finish:
			k.finish(w)
		}
	}
	k.go1(w)
}

// go1 has the worker do its next item, if it does none.
func (k *worker) go1(w *world) {
	if k.busy || len(k.jobs) == 0 && (k.waits || k.over(w) || k.item >= k.machine.Limit()) {
		return
	}
	k.busy = true
	life := k.life
	w.after(max(k.each, k.still-w.now), func() {
		if life == k.life {
			k.busy = false
			k.step(w)
		}
	})
}

// begun returns how many of its items are done or in hand.
func (k *worker) begun() int {
	if k.busy && len(k.jobs) == 0 {
		return k.item + 1
	}
	return k.item
}

// step ends an item: of a range that was wanted, or of its own.
func (k *worker) step(w *world) {
	if len(k.jobs) > 0 {
		j := &k.jobs[0]
		if j.left--; j.left == 0 {
			done := *j
			k.jobs = k.jobs[1:]
			k.ended(w, done)
			return
		}
	} else if k.item < k.machine.Limit() && !k.waits {
		k.count(w, reassign.Range{From: k.item, To: k.item + 1})
		k.item++
		if k.item%max(1, len(k.counted)/w.o.Checks) == 0 || k.item >= k.machine.Limit() {
			k.do(w, k.machine.Check(k.item, w.now))
			return
		}
	}
	k.go1(w)
}

func (k *worker) ended(w *world, j job) {
	if j.own {
		w.fired("range taken back")
		if j.Clock == k.clock && j.Life == k.life {
			k.count(w, j.Range)
		}
		k.do(w, k.machine.Redone(j.Task, w.now))
		return
	}
	k.do(w, k.machine.Helped(j.Task, w.now))
}

// finish ends a clock; the next begins when the slowest is near enough.
func (k *worker) finish(w *world) {
	k.whole(w)
	k.clock++
	k.waits = true
	k.gate(w, k.life)
}

// gate begins the next clock once all are near enough.
func (k *worker) gate(w *world, life int) {
	if life != k.life || k.over(w) {
		return
	}
	for _, o := range w.workers {
		if k.clock-o.clock > w.slack {
			w.after(2*time.Millisecond, func() { k.gate(w, life) })
			return
		}
	}
	if len(k.jobs) > 0 {
		w.after(time.Millisecond, func() { k.gate(w, life) })
		return
	}
	k.beginClock(w)
}

// count notes that items count.
func (k *worker) count(w *world, r reassign.Range) {
	for i := r.From; i < r.To; i++ {
		k.counted[i]++
		if k.counted[i] > 1 {
			w.violate("help.once", "item %d of worker %d in clock %d counts twice", i, k.id, k.clock)
		}
	}
}

// whole checks that all items of a clock count when it ends.
func (k *worker) whole(w *world) {
	for i, n := range k.counted {
		if n != 1 {
			w.violate("help.whole", "item %d of worker %d counts %d times at the end of clock %d", i, k.id, n, k.clock)
		}
	}
}

// sent notes what a helper has promised not to do.
func (k *worker) sent(w *world, s *reassign.Send) {
	switch m := s.Message.(type) {
	case reassign.Cancelled:
		k.refused[m.Task] = true
	case reassign.DoThis:
		w.fired("range offered")
		if n := len(k.counted); float64(n-m.From) > w.o.Tail*float64(n) {
			w.violate("help.tail", "worker %d offers %+v of %d items, of which helpers hold %.2f", k.id, m.Range, n,
				w.o.Tail)
		}
	}
}

// mayHelp holds that a helper keeps its promises, and that it is its turn.
func (k *worker) mayHelp(w *world, t reassign.Task) {
	if k.refused[t] {
		w.violate("help.promise", "worker %d begins task %+v, which it has given back", k.id, t)
	}
	if !k.waits && t.Clock >= k.clock && k.item < k.machine.Limit() {
		w.violate("help.turn", "worker %d helps in clock %d at item %d of %d of its own clock %d", k.id, t.Clock,
			k.item, k.machine.Limit(), k.clock)
	}
}
