package consistency

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Step takes a message.
func (c *ClientOf[V]) Step(message any, now time.Duration) (out []Command[V]) {
	switch m := message.(type) {
	case Value[V]:
		return c.onValue(m)
	case Taken:
		if w := c.workers[m.Worker]; w != nil && w.life == m.Life && m.Epoch == c.epochs[m.Shard] {
			o := w.out[m.Shard]
			o.taken = max(o.taken, m.Number)
		}
		return c.leave(m.Shard, now)
	case Synced:
		if w := c.workers[m.Worker]; w != nil && w.life == m.Life && m.Epoch == c.epochs[m.Shard] {
			o := w.out[m.Shard]
			o.synced, o.calm = max(o.synced, m.Number), true
			return c.wake(forBound, func(x *Seat[V]) bool { return x == w })
		}
	case Complete:
		return c.onComplete(m)
	case Moved:
		return c.onMoved(m, now)
	case Assignment:
		return c.onAssignment(m)
	}
	return nil
}

// onAssignment begins a life of a worker, or ends an earlier one that goes on elsewhere.
func (c *ClientOf[V]) onAssignment(m Assignment) []Command[V] {
	out := c.onComplete(m.Complete)
	old := c.workers[m.Worker]
	switch {
	case m.Client == c.id && (old == nil || old.life < m.Life) && c.lives[m.Worker] < m.Life:
		c.begin(m.Restart)
		return append(out, Command[V]{Run: &m.Restart})
	case m.Client != c.id && old != nil && old.life < m.Life:
		delete(c.workers, m.Worker)
		return append(out, Command[V]{Stop: &m.Worker})
	}
	return out
}

// onValue takes a row that is newer than what is there.
func (c *ClientOf[V]) onValue(m Value[V]) (out []Command[V]) {
	r := c.rows[m.Row]
	switch {
	case m.Epoch != c.epochs[m.Shard]:
		return nil
	case (r == nil || r.watch > m.Watch) && c.o.Eager: // it was told, and that was lost
		return []Command[V]{c.toShard(m.Row, Drop{Client: c.id, Row: m.Row, Watch: m.Watch})}
	case r == nil || r.watch != m.Watch || c.outdated(m):
		return nil
	}
	of := r.value.Load()
	if plantedNewer(of == nil || m.follows(of)) {
		of = &m
		c.put(r, of)
	}
	if of.Age >= r.need {
		r.asked, r.need = -1, 0
		delete(c.asking, m.Row)
	}
	if c.o.Eager {
		out = append(out, c.toShard(m.Row, Seen{Client: c.id, Row: m.Row, Watch: r.watch, Version: of.Version}))
	}
	out = append(out, c.wake(forRow, func(w *Seat[V]) bool { return w.waits.row == m.Row })...)
	return append(out, c.evict()...)
}

// follows reports whether a value is from after another of the same epoch. Where nothing has changed it may know of a
// worker's later life.
func (m *Value[V]) follows(o *Value[V]) bool {
	if m.Version != o.Version || m.Age != o.Age {
		return m.Version >= o.Version && m.Age >= o.Age
	}
	for id, a := range o.Applied {
		if m.Applied[id].Life < a.Life {
			return false
		}
	}
	return true
}

// outdated reports whether a value lacks updates of a worker of this process that are in no log any more.
func (c *ClientOf[V]) outdated(m Value[V]) bool {
	for id, w := range c.workers {
		if a := m.Applied[id]; a.Life == w.life && a.Number < w.out[m.Shard].dropped {
			return true
		}
	}
	return false
}

// wake has workers ask again that wait for something.
func (c *ClientOf[V]) wake(what waitFor, is func(*Seat[V]) bool) (out []Command[V]) {
	for _, w := range c.workers {
		if w.waits != nil && w.waits.what == what && is(w) {
			out = append(out, Command[V]{Wake: &w.id})
		}
	}
	slices.SortFunc(out, func(a, b Command[V]) int { return cmp.Compare(*a.Wake, *b.Wake) })
	return out
}

// onComplete notes how far all are, and lets go of what a snapshot has.
func (c *ClientOf[V]) onComplete(m Complete) []Command[V] {
	switch {
	case m.Era < c.era:
		return nil
	case m.Era > c.era:
		c.era, c.complete, c.kept = m.Era, m.Age, m.Kept
	}
	c.complete, c.kept = max(c.complete, m.Age), max(c.kept, m.Kept)
	for _, w := range c.workers {
		for _, o := range w.out {
			for len(o.batches) > 0 && c.mayDrop(w, o, o.batches[0]) {
				o.dropped = o.batches[0].Number
				o.batches[0] = nil
				o.batches = o.batches[1:]
			}
		}
	}
	return c.wake(forOther, func(*Seat[V]) bool { return true })
}

// mayDrop reports whether a batch is needed no more: a snapshot has it, everyone has seen it if that counts, and all
// rows of the cache have it.
func (c *ClientOf[V]) mayDrop(w *Seat[V], o *outgoing[V], b *sentBatch[V]) bool {
	if b.Clock >= plantedKept(c.kept, c.complete) || b.Number > o.taken || c.o.Bound > 0 && b.Number > o.synced {
		return false
	}
	for _, u := range b.Updates {
		if r := c.rows[u.Row]; r != nil {
			of := r.value.Load()
			if of != nil && of.Applied[w.id].Life == w.life && of.Applied[w.id].Number < b.Number {
				return false
			}
		}
	}
	return true
}

// onMoved lets go of what a shard had that is lost, and begins to send it again what a snapshot does not have.
func (c *ClientOf[V]) onMoved(m Moved, now time.Duration) []Command[V] {
	if m.Epoch <= c.epochs[m.Shard] {
		return c.leave(m.Shard, now)
	}
	c.epochs[m.Shard] = m.Epoch
	for k, r := range c.rows {
		if c.o.Shard(k) == m.Shard {
			c.put(r, nil)
			r.asked, r.need = -1, 0
			delete(c.asking, k)
			c.watch++
			r.watch = c.watch
		}
	}
	l := &leaving{until: map[Worker]int{}, at: -c.o.Again}
	for id, w := range c.workers {
		o := w.out[m.Shard]
		o.taken, l.until[id] = 0, o.next-1
		for _, b := range o.batches {
			b.at = -1
		}
	}
	c.left[m.Shard] = l
	out := append(c.send(now), c.leave(m.Shard, now)...)
	return append(out, c.wake(forRow, func(w *Seat[V]) bool { return c.o.Shard(w.waits.row) == m.Shard })...)
}

// leave returns the message that this client has let go of what a lost shard had, once the new one has what the client
// had sent.
func (c *ClientOf[V]) leave(shard int, now time.Duration) []Command[V] {
	l := c.left[shard]
	if l == nil {
		return nil
	}
	for id, number := range l.until {
		if w := c.workers[id]; w != nil {
			if o := w.out[shard]; len(o.batches) > 0 && o.taken < min(number, o.next-1) {
				return nil
			}
		}
	}
	l.at = now
	return []Command[V]{{ToBookkeeper: Left{Client: c.id, Shard: shard, Epoch: c.epochs[shard]}}}
}

// Tick sends what bandwidth allows, and again what may have been lost; and gives up waits that are too long. Workers
// that do not wait flush what they have added themselves, as they alone know their logs.
func (c *ClientOf[V]) Tick(now time.Duration) (out []Command[V]) {
	for _, id := range c.sorted() {
		s := c.workers[id]
		if eager := plantedLeaves(c.o.Eager); eager && s.waits != nil {
			c.flush(s, now)
		} else if eager {
			s.due.Store(true)
		}
		out = c.sendOf(s, now, out)
		if s.waits != nil && now-s.waits.since > c.o.Patience && !(c.o.Together && s.waits.what == forOther) {
			what, since := c.Waits(id)
			out = append(out, Command[V]{Fail: &Failure{Worker: s.id, For: what, Waited: now - since}})
		}
	}
	out = append(out, c.askAgain(now)...)
	for shard, l := range c.left {
		if l != nil && now-l.at >= c.o.Again {
			out = append(out, c.leave(shard, now)...)
		}
	}
	return out
}

// askAgain asks for rows again that have not come.
func (c *ClientOf[V]) askAgain(now time.Duration) (out []Command[V]) {
	if now < c.looked+c.o.Again/8 {
		return nil
	}
	c.looked = now
	var late []Row
	for row, r := range c.asking {
		if now-r.asked >= c.o.Again {
			late = append(late, row)
		}
	}
	slices.Sort(late)
	for _, row := range late {
		out = append(out, c.ask(row, c.asking[row], c.asking[row].need, now)...)
	}
	return out
}

// AskToFlush has each worker call Flush before it uses the table again.
func (c *ClientOf[V]) AskToFlush() {
	for _, s := range c.workers {
		s.due.Store(true)
	}
}

// Flush sends what a worker has added so far, as bandwidth allows; the worker calls it where it is Due.
func (c *ClientOf[V]) Flush(id Worker, now time.Duration) []Command[V] {
	s := c.workers[id]
	s.due.Store(false)
	if !c.o.Eager { // it was asked for a sign only
		return nil
	}
	c.flush(s, now)
	return c.sendOf(s, now, nil)
}

// flush makes batches of what a worker has added so far, the largest first, as bandwidth allows. All that it has added
// to a row leaves at once, so that others see its updates of a row in their order.
func (c *ClientOf[V]) flush(s *Seat[V], now time.Duration) {
	c.push.refill(now)
	leaves := c.affordable(s)
	for shard := range s.out {
		mine := func(e *Entry[V]) bool { return c.o.Shard(e.Row) == shard && (leaves == nil || leaves[e.Row]) }
		if rows := s.take(mine); len(rows) > 0 {
			c.cut(s, shard, rows, false)
		}
	}
}

// affordable returns the rows of a worker's log that bandwidth allows; nil is all.
func (c *ClientOf[V]) affordable(s *Seat[V]) map[Row]bool {
	if c.o.Budget == 0 {
		return nil
	}
	leaves, size := map[Row]bool{}, map[Row]float64{}
	for _, e := range s.log {
		c.alg.Columns(e.Delta, func(_ int, x float64) { size[e.Row] += math.Abs(x) })
	}
	all := slices.Clone(s.log)
	slices.SortFunc(all, func(a, b *Entry[V]) int {
		return cmp.Or(cmp.Compare(size[b.Row], size[a.Row]), cmp.Compare(a.Row, b.Row))
	})
	for _, e := range all {
		if !c.push.take(c.alg.Bytes(e.Delta)) {
			break
		}
		leaves[e.Row] = true
	}
	return leaves
}

// cut makes batches of what a worker has added to rows of a shard, as large as they may be; the last may end its clock.
func (c *ClientOf[V]) cut(s *Seat[V], shard int, rows []Update[V], ends bool) {
	for n := c.fit(rows); n < len(rows); n = c.fit(rows) {
		c.batch(s, shard, rows[:n:n], false)
		rows = rows[n:]
	}
	c.batch(s, shard, rows, ends)
}

func (c *ClientOf[V]) batch(s *Seat[V], shard int, rows []Update[V], ends bool) {
	o := s.out[shard]
	b := Batch[V]{Client: c.id, Worker: s.id, Life: s.life, Clock: s.clock, Number: o.next, Ends: ends, Updates: rows}
	o.batches = append(o.batches, &sentBatch[V]{Batch: b, at: -1})
	o.next++
}

// sendOf sends a worker's batches that were not sent, and those again that were not taken for long, in order.
func (c *ClientOf[V]) sendOf(s *Seat[V], now time.Duration, out []Command[V]) []Command[V] {
	for shard, o := range s.out {
		again := false
		for _, b := range o.after(o.taken) {
			again = again || b.at >= 0 && plantedAgain(now-b.at >= c.o.Again)
			if b.at < 0 || again {
				b.at = now
				out = append(out, Command[V]{ToShard: &Outgoing{To: shard, Message: b.Batch}})
			}
		}
	}
	return out
}

// send sends those of all workers.
func (c *ClientOf[V]) send(now time.Duration) (out []Command[V]) {
	for _, id := range c.sorted() {
		out = c.sendOf(c.workers[id], now, out)
	}
	return out
}
