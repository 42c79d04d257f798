package consistency

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// ClientOf is what the workers of a process share: the rows that it has cached, and the batches of their updates, which
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
	workers  map[Worker]*Seat[V]
	lives    map[Worker]Life // the last that each worker had here
	rows     map[Row]*cached[V]
	asking   map[Row]*cached[V] // that were asked for, and have not come
	looked   time.Duration      // when these were looked through last
	watch    int
	used     int
	bytes    int // of the rows that are there
	evicted  int
	push     budget
	spread   Spread
	reads    Reads
}

// Spread is how far workers of a client were from each other, at the most.
type Spread struct {
	Ahead Clock // clocks that one began before all others were known to have finished theirs
	Stale Clock // clocks before its own of which a read has missed updates
}

// Max returns the greater of both numbers.
func (s Spread) Max(o Spread) Spread { return Spread{max(s.Ahead, o.Ahead), max(s.Stale, o.Stale)} }

// Spread returns how far workers were from each other so far.
func (c *ClientOf[V]) Spread() Spread { return c.spread }

// Ages is how many ages of what is read are told apart.
const Ages = 16

// Reads is what workers of a client have read: how often a row, by how many clocks before its own the worker has missed
// updates of (the last is of as many, or more), each once in a clock and once for each newer value; and how often a
// worker had to wait for a row, or to add to one.
type Reads struct {
	ByAge  [Ages]int64
	Waited int64
}

// Reads returns what workers have read so far.
func (c *ClientOf[V]) Reads() Reads { return c.reads }

// leaving is a shard that has moved: what it must have before this client says that it has let go of the one before.
type leaving struct {
	until map[Worker]int // numbers of batches
	at    time.Duration  // when it was said last
}

// cached is a row of the process's cache, or one that was asked for. Workers look at its value without a lock.
type cached[V any] struct {
	value atomic.Pointer[Value[V]] // nil while it is not there
	watch int
	need  Clock // the age that was asked for: the least, as others must not wait for more than they need
	asked time.Duration
	used  int
}

// NewClient returns a process without workers.
func NewClient[V any](id Client, o Options, alg Algebra[V]) *ClientOf[V] {
	c := &ClientOf[V]{o: o, alg: alg, id: id, workers: map[Worker]*Seat[V]{}, lives: map[Worker]Life{},
		rows: map[Row]*cached[V]{}, asking: map[Row]*cached[V]{}, push: budget{rate: o.Budget}}
	for range o.Shards {
		c.epochs, c.left = append(c.epochs, 1), append(c.left, nil)
	}
	return c
}

// begin begins a life of a worker at a clock, in place of an earlier one.
func (c *ClientOf[V]) begin(r Restart) {
	c.lives[r.Worker] = r.Life
	s := &Seat[V]{id: r.Worker, life: r.Life, clock: r.Clock, alg: c.alg, evicted: c.evicted}
	for range c.o.Shards {
		s.out = append(s.out, &outgoing[V]{next: 1, calm: r.Life == 1})
	}
	c.workers[r.Worker] = s
}

// Seat returns that of a worker in its present life; nil where it does not run here.
func (c *ClientOf[V]) Seat(id Worker) *Seat[V] { return c.workers[id] }

// MayBegin reports whether a worker may work on its clock: it is not too far ahead of the slowest.
func (c *ClientOf[V]) MayBegin(id Worker, now time.Duration) bool {
	s := c.workers[id]
	if c.complete >= plantedGate(c.o.Needs(s.clock)) {
		s.waits = nil
		c.spread.Ahead = max(c.spread.Ahead, s.clock-c.complete)
		return true
	}
	s.wait(forOther, 0, now)
	return false
}

// leastSwept is after how many evictions, at the least, a worker lets go of such rows within its clock.
const leastSwept = 4

// Row returns a row as a worker may see it now, which must not be changed; false where it has to wait, and is woken.
func (c *ClientOf[V]) Row(id Worker, row Row, now time.Duration) (v V, ok bool, out []Command[V]) {
	s := c.workers[id]
	if c.evicted-s.evicted > max(leastSwept, len(c.rows)/4) {
		s.letGo(c.evicted)
	}
	need := plantedNeed(c.o.Needs(s.clock))
	r := c.cached(row)
	e := s.entry(row)
	if e.clock != s.clock {
		s.reads = append(s.reads, e)
	}
	of := r.value.Load()
	if of == nil || of.Age < need || of.Applied[id].Life < s.life {
		c.blocks(s, forRow, row, now) // also for what it has added in an earlier life
		return v, false, c.ask(row, r, need, now)
	}
	s.waits = nil
	if e.of != of {
		e.of, e.from = of, r
		e.Value, e.own = c.view(s, e)
	}
	e.clock = s.clock
	age := max(0, s.clock-of.Age)
	c.spread.Stale = max(c.spread.Stale, age)
	c.reads.ByAge[min(age, Ages-1)]++
	return e.Value, true, c.evict()
}

// blocks notes what a worker waits for within its clock.
func (c *ClientOf[V]) blocks(s *Seat[V], what waitFor, row Row, now time.Duration) {
	if s.wait(what, row, now) {
		c.reads.Waited++
		s.waited++
	}
}

// view returns a value with the updates of a worker that are not in it, and whether it is the worker's own memory.
func (c *ClientOf[V]) view(s *Seat[V], e *Entry[V]) (v V, own bool) {
	number := 0
	if a := e.of.Applied[s.id]; a.Life == s.life {
		number = a.Number
	}
	v = e.of.Value
	add := func(delta V) {
		if !own {
			v, own = c.alg.Clone(v), true
		}
		v = c.alg.Add(v, delta)
	}
	for _, b := range s.out[c.o.Shard(e.Row)].after(plantedOwn(number)) {
		if delta, ok := b.delta(e.Row); ok {
			add(delta)
		}
	}
	if e.dirty {
		add(e.Delta)
	}
	return v, own
}

// Inc adds to a row; false where that would exceed the value bound, and the worker has to wait.
func (c *ClientOf[V]) Inc(id Worker, row Row, delta V, now time.Duration) bool {
	s := c.workers[id]
	if c.o.Bound > 0 && (!s.out[c.o.Shard(row)].calm || !c.within(s, row, delta)) {
		c.blocks(s, forBound, row, now)
		return false
	}
	s.waits = nil
	s.add(row, delta)
	return true
}

// within reports whether an update keeps what a worker has added to each parameter, and not everyone has seen, within
// the bound, also when some of it has been seen: it is seen in its order, so that each end of it is what may remain.
// One alone always is.
func (c *ClientOf[V]) within(s *Seat[V], row Row, delta V) bool {
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
	if e := s.look(row); e != nil && e.dirty {
		c.alg.Columns(e.Delta, before)
	}
	o := s.out[c.o.Shard(row)]
	for _, b := range slices.Backward(o.after(plantedFlight(o.synced, o.next))) {
		if delta, ok := b.delta(row); ok {
			c.alg.Columns(delta, func(column int, _ float64) { check(); alone[column] = false })
			c.alg.Columns(delta, before)
		}
	}
	check()
	return within
}

// Finish ends a worker's clock: what it has added leaves, and what it will read is asked for.
func (c *ClientOf[V]) Finish(id Worker, now time.Duration) (out []Command[V]) {
	s := c.workers[id]
	for shard := range s.out {
		c.cut(s, shard, s.take(func(e *Entry[V]) bool { return c.o.Shard(e.Row) == shard }), true)
	}
	s.clock++
	s.prefetch = s.prefetch[:0]
	for _, e := range s.reads {
		s.prefetch = append(s.prefetch, e.Row)
	}
	slices.Sort(s.prefetch)
	s.prefetch, s.reads = slices.Compact(s.prefetch), s.reads[:0]
	if s.evicted != c.evicted {
		s.letGo(c.evicted)
	}
	out = c.sendOf(s, now, nil)
	if c.o.Prefetch == NoPrefetch {
		return out
	}
	for _, row := range s.prefetch {
		out = append(out, c.fetch(s, row, now)...)
	}
	return out
}

// fit returns how many updates a batch may have, of those that there are: one at the least.
func (c *ClientOf[V]) fit(rows []Update[V]) int {
	if c.o.Batch == 0 || c.o.Budget > 0 { // what ends a clock is not held to the budget: it is one batch, told by Ends
		return len(rows)
	}
	bytes := 0
	for n, u := range rows {
		if bytes += c.alg.Bytes(u.Delta); bytes > c.o.Batch && n > 0 {
			return n
		}
	}
	return len(rows)
}

// fetch asks for a row that a worker has read in its last clock: for the newest where it is aggressive, and otherwise
// where the worker would wait for it.
func (c *ClientOf[V]) fetch(s *Seat[V], row Row, now time.Duration) []Command[V] {
	r, need := c.cached(row), c.o.Needs(s.clock)
	of := r.value.Load()
	switch {
	case of == nil || of.Age < need:
		return c.ask(row, r, need, now)
	case c.o.Prefetch == Aggressive && !c.o.Eager && of.Age < c.complete:
		return c.ask(row, r, c.complete, now)
	}
	return nil
}

// Prefetch asks for rows that a worker will read, if it would wait for them.
func (c *ClientOf[V]) Prefetch(id Worker, rows []Row, now time.Duration) (out []Command[V]) {
	for _, row := range rows {
		out = append(out, c.fetch(c.workers[id], row, now)...)
	}
	return append(out, c.evict()...)
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
	c.asking[row] = r
	return []Command[V]{c.toShard(row, Read{Client: c.id, Row: row, Age: r.need, Watch: r.watch})}
}

func (c *ClientOf[V]) toShard(row Row, message any) Command[V] {
	return Command[V]{ToShard: &Outgoing{To: c.o.Shard(row), Message: message}}
}

// put takes a row's value, or none, in place of what is there.
func (c *ClientOf[V]) put(r *cached[V], v *Value[V]) {
	if of := r.value.Load(); of != nil {
		c.bytes -= c.alg.Bytes(of.Value)
	}
	if v != nil {
		c.bytes += c.alg.Bytes(v.Value)
	}
	r.value.Store(v)
}

// evict lets go of rows, those first that were not used for the longest time, where they take too much: until they take
// three quarters of what they may. Logs stay.
func (c *ClientOf[V]) evict() (out []Command[V]) {
	if !plantedFull(c.o.Cache > 0 && c.bytes > c.o.Cache) {
		return nil
	}
	var all []Row
	for k, r := range c.rows {
		if r.value.Load() != nil && !c.awaited(k) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Row) int { return c.rows[a].used - c.rows[b].used })
	for _, k := range all {
		if c.bytes <= c.o.Cache/4*3 {
			break
		}
		r := c.rows[k]
		out = append(out, c.toShard(k, Drop{Client: c.id, Row: k, Watch: r.watch}))
		c.put(r, nil)
		delete(c.rows, k)
		delete(c.asking, k)
		c.evicted++
		for _, s := range c.workers {
			plantedEvict(s, k)
		}
	}
	return out
}

// awaited reports whether a worker waits for a row.
func (c *ClientOf[V]) awaited(row Row) bool {
	for _, s := range c.workers {
		if s.waits != nil && s.waits.what == forRow && s.waits.row == row {
			return true
		}
	}
	return false
}

// Waits returns what a worker waits for, and since when; empty where it does not.
func (c *ClientOf[V]) Waits(id Worker) (what string, since time.Duration) {
	s := c.workers[id]
	if s == nil || s.waits == nil {
		return "", 0
	}
	switch s.waits.what {
	case forOther:
		what = fmt.Sprintf("all workers to finish clock %d: all have finished %d clocks", c.o.Needs(s.clock)-1,
			c.complete)
	case forBound:
		what = fmt.Sprintf("its updates of row %d to be seen by all, as they add up to the value bound %v", s.waits.row,
			c.o.Bound)
	default:
		what = fmt.Sprintf("row %d with all updates of %d clocks, from shard %d", s.waits.row, c.o.Needs(s.clock),
			c.o.Shard(s.waits.row))
	}
	return what, s.waits.since
}

// Cached returns the value of a row in the process's cache, if it is there.
func (c *ClientOf[V]) Cached(row Row) (v V, ok bool) {
	if r := c.rows[row]; r != nil {
		if of := r.value.Load(); of != nil {
			return of.Value, true
		}
	}
	return v, false
}

func (c *ClientOf[V]) sorted() []Worker { return slices.Sorted(maps.Keys(c.workers)) }
