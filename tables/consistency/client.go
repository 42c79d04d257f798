package consistency

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// ClientOf is what the workers of a process share: the rows that it has cached, and the logs of their updates, which
// are kept until a snapshot has them.
type ClientOf[V any] struct {
	o        Options
	alg      Algebra[V]
	id       Client
	era      int
	complete Clock
	kept     Clock
	epochs   []int // of the shards
	left     []*leaving
	workers  map[Worker]*worker[V]
	lives    map[Worker]Life // the last that each worker had here
	rows     map[Row]*cached[V]
	watch    int
	used     int
	push     budget
}

// leaving is a shard that has moved: what it must have before this client says that it has let go of the one before.
type leaving struct {
	until map[Worker]int // numbers of batches
	at    time.Duration  // when it was said last
}

// cached is a row of the process's cache, or one that was asked for.
type cached[V any] struct {
	value *Value[V] // nil while it is not there
	watch int
	need  Clock // the age that was asked for: the least, as others must not wait for more than they need
	asked time.Duration
	used  int
}

// worker is a worker that runs here.
type worker[V any] struct {
	id       Worker
	life     Life
	clock    Clock
	log      map[Row]V // what it has added, and is in no batch
	out      []*outgoing[V]
	views    map[Row]view[V] // the worker's own cache
	waits    *wait
	reads    map[Row]bool // in this clock
	prefetch map[Row]bool // in the one before
}

// outgoing is what goes to a shard.
type outgoing[V any] struct {
	next    int // number of the next batch
	batches []*sentBatch[V]
	taken   int
	synced  int
	dropped int  // up to which a snapshot has them
	calm    bool // everyone has seen what the worker has added in earlier lives
}

type sentBatch[V any] struct {
	Batch[V]
	at time.Duration // when it was sent last; negative is never
}

// view is a row as a worker sees it: a value of the process's cache, and its own updates that are not in it.
type view[V any] struct {
	of    *Value[V]
	value V
}

// wait is what a worker waits for.
type wait struct {
	row   Row
	what  waitFor
	since time.Duration
}

type waitFor int

const (
	forRow   waitFor = iota // a row of an age
	forOther                // workers that are behind
	forBound                // that its updates are seen
)

// NewClient returns a process without workers.
func NewClient[V any](id Client, o Options, alg Algebra[V]) *ClientOf[V] {
	c := &ClientOf[V]{o: o, alg: alg, id: id, workers: map[Worker]*worker[V]{}, lives: map[Worker]Life{},
		rows: map[Row]*cached[V]{}, push: budget{rate: o.Budget}}
	for range o.Shards {
		c.epochs, c.left = append(c.epochs, 1), append(c.left, nil)
	}
	return c
}

// begin begins a life of a worker at a clock, in place of an earlier one.
func (c *ClientOf[V]) begin(r Restart) {
	c.lives[r.Worker] = r.Life
	w := &worker[V]{id: r.Worker, life: r.Life, clock: r.Clock, log: map[Row]V{}, views: map[Row]view[V]{},
		reads: map[Row]bool{}, prefetch: map[Row]bool{}}
	for range c.o.Shards {
		w.out = append(w.out, &outgoing[V]{next: 1, calm: r.Life == 1})
	}
	c.workers[r.Worker] = w
}

// Clock returns the clock of a worker, in its present life.
func (c *ClientOf[V]) Clock(id Worker) (Clock, Life) {
	w := c.workers[id]
	return w.clock, w.life
}

// MayBegin reports whether a worker may work on its clock: it is not too far ahead of the slowest.
func (c *ClientOf[V]) MayBegin(id Worker, now time.Duration) bool {
	w := c.workers[id]
	if c.complete >= plantedGate(c.o.Needs(w.clock)) {
		w.waits = nil
		return true
	}
	w.wait(forOther, 0, now)
	return false
}

func (w *worker[V]) wait(what waitFor, row Row, now time.Duration) {
	if w.waits == nil || w.waits.what != what || w.waits.row != row {
		w.waits = &wait{row, what, now}
	}
}

// Row returns a row as a worker may see it now, which must not be changed; false where it has to wait, and is woken.
func (c *ClientOf[V]) Row(id Worker, row Row, now time.Duration) (v V, ok bool, out []Command[V]) {
	w := c.workers[id]
	w.reads[row] = true
	need := plantedNeed(c.o.Needs(w.clock))
	r := c.cached(row)
	if r.value == nil || r.value.Age < need || r.value.Applied[id].Life < w.life {
		w.wait(forRow, row, now) // also for what it has added in an earlier life
		return v, false, c.ask(row, r, need, now)
	}
	w.waits = nil
	if have, is := w.views[row]; is && have.of == r.value {
		return have.value, true, nil
	}
	v = c.view(w, row, r.value)
	w.views[row] = view[V]{r.value, v}
	return v, true, c.evict(now)
}

// view returns a value with the updates of a worker that are not in it.
func (c *ClientOf[V]) view(w *worker[V], row Row, of *Value[V]) V {
	v := c.alg.Clone(of.Value)
	number := 0
	if a := of.Applied[w.id]; a.Life == w.life {
		number = a.Number
	}
	for _, b := range w.out[c.o.Shard(row)].batches {
		if plantedOwn(b.Number > number) {
			for _, u := range b.Updates {
				if u.Row == row {
					v = c.alg.Add(v, u.Delta)
				}
			}
		}
	}
	if own, ok := w.log[row]; ok {
		v = c.alg.Add(v, own)
	}
	return v
}

// Inc adds to a row; false where that would exceed the value bound, and the worker has to wait.
func (c *ClientOf[V]) Inc(id Worker, row Row, delta V, now time.Duration) bool {
	w := c.workers[id]
	if c.o.Bound > 0 && (!w.out[c.o.Shard(row)].calm || !c.within(w, row, delta)) {
		w.wait(forBound, row, now)
		return false
	}
	w.waits = nil
	w.log[row] = c.alg.Add(w.log[row], delta)
	delete(w.views, row)
	return true
}

// within reports whether an update keeps what a worker has added to each parameter, and not everyone has seen, within
// the bound, also when some of it has been seen: it is seen in its order, so that each end of it is what may remain.
// One alone always is.
func (c *ClientOf[V]) within(w *worker[V], row Row, delta V) bool {
	sums, alone, within := map[int]float64{}, map[int]bool{}, true
	c.alg.Columns(delta, func(column int, x float64) { sums[column], alone[column] = x, true })
	before := func(column int, x float64) {
		if _, changes := sums[column]; changes {
			sums[column] += x
			alone[column] = false
		}
	}
	check := func() {
		for column, x := range sums {
			within = within && (math.Abs(x) <= c.o.Bound || plantedAlone(alone[column]))
		}
	}
	if own, ok := w.log[row]; ok {
		c.alg.Columns(own, before)
	}
	o := w.out[c.o.Shard(row)]
	for _, b := range slices.Backward(o.batches) {
		if plantedFlight(b.Number > o.synced) {
			for _, u := range b.Updates {
				if u.Row == row {
					c.alg.Columns(u.Delta, func(column int, _ float64) { check(); alone[column] = false })
					c.alg.Columns(u.Delta, before)
				}
			}
		}
	}
	check()
	return within
}

// Finish ends a worker's clock: what it has added leaves, and what it will read is asked for.
func (c *ClientOf[V]) Finish(id Worker, now time.Duration) (out []Command[V]) {
	w := c.workers[id]
	for shard := range w.out {
		c.cut(w, shard, c.rowsOf(w, shard), true)
	}
	w.clock++
	w.views = map[Row]view[V]{}
	w.prefetch, w.reads = w.reads, map[Row]bool{}
	out = c.send(now)
	for _, row := range slices.Sorted(maps.Keys(w.prefetch)) {
		out = append(out, c.fetch(w, row, now)...)
	}
	return out
}

// fetch asks for a row that a worker has read in its last clock: for the newest where it is aggressive, and otherwise
// where the worker would wait for it.
func (c *ClientOf[V]) fetch(w *worker[V], row Row, now time.Duration) []Command[V] {
	r, need := c.cached(row), c.o.Needs(w.clock)
	switch {
	case r.value == nil || r.value.Age < need:
		return c.ask(row, r, need, now)
	case c.o.Aggressive && !c.o.Eager && r.value.Age < c.complete:
		return c.ask(row, r, c.complete, now)
	}
	return nil
}

func (c *ClientOf[V]) cached(row Row) *cached[V] {
	r := c.rows[row]
	if r == nil {
		c.watch++
		r = &cached[V]{watch: c.watch, asked: -1}
		c.rows[row] = r
	}
	c.used++
	r.used = c.used
	return r
}

// ask asks a shard for a row of an age, unless that is on its way.
func (c *ClientOf[V]) ask(row Row, r *cached[V], age Clock, now time.Duration) []Command[V] {
	if r.asked >= 0 && r.need <= age && now-r.asked < c.o.Again {
		return nil // who needs a later one asks again when it is there
	}
	r.need, r.asked = age, now
	return []Command[V]{c.toShard(row, Read{Client: c.id, Row: row, Age: r.need, Watch: r.watch})}
}

func (c *ClientOf[V]) toShard(row Row, message any) Command[V] {
	return Command[V]{ToShard: &Outgoing{To: c.o.Shard(row), Message: message}}
}

// evict lets go of rows that were not used for the longest time, where there are too many; logs stay.
func (c *ClientOf[V]) evict(now time.Duration) (out []Command[V]) {
	for c.o.Rows > 0 && len(c.rows) > c.o.Rows {
		oldest, at := Row(0), -1
		for k, r := range c.rows {
			if r.value != nil && !c.awaited(k) && (at < 0 || r.used < at) {
				oldest, at = k, r.used
			}
		}
		if at < 0 {
			return out
		}
		out = append(out, c.toShard(oldest, Drop{Client: c.id, Row: oldest, Watch: c.rows[oldest].watch}))
		delete(c.rows, oldest)
		for _, w := range c.workers {
			delete(w.views, oldest)
			plantedEvict(w.log, oldest)
		}
	}
	return out
}

// awaited reports whether a worker waits for a row.
func (c *ClientOf[V]) awaited(row Row) bool {
	for _, w := range c.workers {
		if w.waits != nil && w.waits.what == forRow && w.waits.row == row {
			return true
		}
	}
	return false
}

// Waits returns what a worker waits for, and since when; empty where it does not.
func (c *ClientOf[V]) Waits(id Worker) (what string, since time.Duration) {
	w := c.workers[id]
	if w == nil || w.waits == nil {
		return "", 0
	}
	switch w.waits.what {
	case forOther:
		what = fmt.Sprintf("all workers to finish clock %d: all have finished %d clocks", c.o.Needs(w.clock)-1,
			c.complete)
	case forBound:
		what = fmt.Sprintf("its updates of row %d to be seen by all, as they add up to the value bound %v", w.waits.row,
			c.o.Bound)
	default:
		what = fmt.Sprintf("row %d with all updates of %d clocks, from shard %d", w.waits.row, c.o.Needs(w.clock),
			c.o.Shard(w.waits.row))
	}
	return what, w.waits.since
}

// Cached returns the value of a row in the process's cache, if it is there.
func (c *ClientOf[V]) Cached(row Row) (v V, ok bool) {
	if r := c.rows[row]; r != nil && r.value != nil {
		return r.value.Value, true
	}
	return v, false
}
