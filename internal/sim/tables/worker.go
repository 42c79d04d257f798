package tables

import (
	"math/rand/v2"
	"time"

	"github.com/volley-engine/volley/tables/consistency"
)

// worker is a worker: its program is the same in all of its lives.
type worker struct {
	id       consistency.Worker
	life     consistency.Life
	on       *process
	clock    consistency.Clock
	program  []op             // of this clock
	step     int              // of the program; -1 before it may begin
	assigned consistency.Life // the last
	slow     int              // times as slow as others
	busy     bool             // its next step is on its way
	// done are its updates by clock, in their order, of those lives that count.
	done map[consistency.Clock][]*update
}

// op is a read of a row, or an update.
type op struct {
	row    consistency.Row
	inc    bool
	column int
	delta  float64
}

// update is one that was admitted.
type update struct {
	id     int
	worker consistency.Worker
	clock  consistency.Clock
	row    consistency.Row
	column int
	delta  float64
	back   bool // its worker has gone on elsewhere, from an earlier clock
}

// begin has a worker go on in another life, on a client.
func (k *worker) begin(w *world, p *process, r consistency.Restart) {
	if r.Life <= k.life {
		return // it is past that already
	}
	k.life, k.on, k.clock, k.step, k.busy = r.Life, p, r.Clock, -1, false
	k.program = w.programOf(k.id, k.clock)
	w.tell("worker %d begins life %d at clock %d on client %d", k.id, k.life, k.clock, p.id)
	k.wake(w)
}

// takeBack forgets what was done from a clock on.
func (k *worker) takeBack(from consistency.Clock) {
	for c, all := range k.done {
		if c >= from {
			for _, u := range all {
				u.back = true
			}
			delete(k.done, c)
		}
	}
}

// programOf returns what a worker does in a clock.
func (w *world) programOf(id consistency.Worker, clock consistency.Clock) (all []op) {
	rng := rand.New(rand.NewPCG(w.seed, uint64(id)<<32|uint64(clock)))
	for range 2 + rng.IntN(10) {
		o := op{row: consistency.Row(rng.IntN(w.rows)), inc: rng.IntN(2) == 0, column: rng.IntN(2)}
		o.delta = float64(1 + rng.IntN(2))
		if rng.IntN(20) == 0 {
			o.delta = 10 // larger than the bound
		}
		if !w.o.Strong && rng.IntN(3) == 0 {
			o.delta = -o.delta
		}
		all = append(all, o)
	}
	return all
}

// wake has the worker go on, unless it is about to.
func (k *worker) wake(w *world) {
	if k.busy || k.clock >= w.clocks {
		return
	}
	k.busy = true
	life := k.life
	w.after(w.span(0, time.Duration(k.slow)*time.Millisecond), func() {
		if life == k.life && k.on.up {
			k.busy = false
			k.next(w)
		}
	})
}

// next does the next step, if it need not wait.
func (k *worker) next(w *world) {
	m := k.on.machine
	if m.Seat(k.id).Due() {
		w.fromClient(k.on, m.Flush(k.id, w.now))
	}
	switch {
	case k.step < 0:
		if !m.MayBegin(k.id, w.now) {
			return
		}
		w.ahead(k)
		k.step = 0
	case k.step == len(k.program):
		w.fromClient(k.on, m.Finish(k.id, w.now))
		k.clock++
		k.step, k.program = -1, w.programOf(k.id, k.clock)
	case k.program[k.step].inc:
		if !k.inc(w, k.program[k.step]) {
			return
		}
	default:
		if e := m.Seat(k.id).Fresh(k.program[k.step].row); e != nil && w.rng.IntN(2) == 0 {
			w.fired("read of the worker's own cache")
			w.read(k, e.Row, e.Value)
			k.step++
			break
		}
		v, ok, out := m.Row(k.id, k.program[k.step].row, w.now)
		if ok {
			w.cache(k.on)
			w.read(k, k.program[k.step].row, v)
			k.step++
		}
		w.fromClient(k.on, out)
		if !ok {
			return
		}
	}
	k.wake(w)
}

// inc adds to a row, if it may.
func (k *worker) inc(w *world, o op) bool {
	u := &update{id: len(w.updates), worker: k.id, clock: k.clock, row: o.row, column: o.column, delta: o.delta}
	w.updates = append(w.updates, u)
	if !k.on.machine.Inc(k.id, o.row, set{u.id: 1}, w.now) {
		w.fired("update waits for its bound")
		u.back = true
		return false
	}
	k.step++
	if u.back = !k.counts(); !u.back {
		k.done[k.clock] = append(k.done[k.clock], u)
	}
	return true
}

// counts reports whether what a worker does counts: it is not taken for lost, nor assigned anew.
func (k *worker) counts() bool { return k.on.known && k.life == k.assigned }

// set is the value of a row: how often each update is in it.
type set map[int]int

// algebra adds sets up.
type algebra struct{ w *world }

// Add returns the sum of two sets.
func (algebra) Add(sum, delta set) set {
	if sum == nil {
		sum = set{}
	}
	for id, n := range delta {
		sum[id] += n
	}
	return sum
}

// Clone returns a copy of a set.
func (a algebra) Clone(v set) set { return a.Add(nil, v) }

// Seal returns the same.
func (algebra) Seal(v set) set { return v }

// Bytes returns the same of all sets: those of a real row do not grow.
func (a algebra) Bytes(set) int { return a.w.rowBytes() }

func (w *world) rowBytes() int { return 32 }

// Columns calls f with what the updates of a set add to each column.
func (a algebra) Columns(v set, f func(int, float64)) {
	sums, there := [2]float64{}, [2]bool{}
	for id, n := range v {
		u := a.w.updates[id]
		sums[u.column] += u.delta * float64(n)
		there[u.column] = true
	}
	for c, x := range sums {
		if there[c] {
			f(c, x)
		}
	}
}
