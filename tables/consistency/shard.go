package consistency

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Shard has some of a table's rows. It takes the batches of each worker in order, has what is complete apart from what
// is ahead of it, and adds up what becomes complete in the order of clock, worker and batch: so that its snapshots have
// the same bits whatever the order in which batches came.
type Shard[V any] struct {
	o         Options
	alg       Algebra[V]
	id, epoch int
	era       int
	open      bool  // its clients have let go of what an earlier epoch had
	age       Clock // of its rows
	complete  Clock // as it was told
	rows      map[Row]*shardRow[V]
	from      []*stream
	waiting   []Read // for a later age
	gone      map[Client]bool
	push      budget
	saveAt    map[Clock]bool
	saving    Clock // the last snapshot that was made
	saved     Clock // to be said until it is known
	kept      Clock
	told      time.Duration // when it has said last what it has
}

// stream is what has come of a worker.
type stream struct {
	Applied               // the last batch
	client  Client        // that sent it
	clock   Clock         // finished
	ends    map[Clock]int // number of the batch that ended each clock from age on
	parts   []part        // of updates that not everyone has seen, by number
	synced  int
	before  map[Row]int // versions of rows that have updates of an earlier life, until everyone has seen them
}

// part is a row's part of a batch, and the version of the row that has it; 0 while it is held back.
type part struct {
	number  int
	row     Row
	version int
}

type shardRow[V any] struct {
	pure     V // the updates of clocks before age
	visible  V // and those ahead
	version  int
	ahead    []*pending[V] // in the order in which they came
	held     []*pending[V] // not visible yet
	unseen   []*pending[V] // visible, and not seen by all; of strong models
	watchers map[Client]*watcher
}

type pending[V any] struct {
	worker  Worker
	life    Life
	clock   Clock
	number  int
	delta   V
	version int // that has it
}

// watcher is a client that is told of a row's changes.
type watcher struct {
	watch      int
	seen, sent int // versions
	at         time.Duration
	change     float64       // since what was seen
	since      time.Duration // when the first change came that was not seen; 0 is none
}

// NewShard returns a shard that begins, from a snapshot; nil is nothing. One that is begun anew answers reads once it
// is open.
func NewShard[V any](b Beginning, o Options, alg Algebra[V], from *Snapshot[V]) *Shard[V] {
	s := &Shard[V]{o: o, alg: alg, id: b.Shard, epoch: b.Epoch, era: b.Era, open: plantedOpen(b.Epoch == 1),
		rows: map[Row]*shardRow[V]{}, gone: map[Client]bool{}, saveAt: map[Clock]bool{}, push: budget{rate: o.Budget}}
	for range o.Workers {
		s.from = append(s.from, &stream{Applied: Applied{Life: 1}, ends: map[Clock]int{}})
	}
	if from != nil {
		s.load(from)
	}
	for _, r := range b.Lives {
		s.onRestart(r)
	}
	return s
}

// load takes what a snapshot has.
func (s *Shard[V]) load(from *Snapshot[V]) {
	s.age, s.complete, s.saved, s.kept = from.Age, from.Age, from.Age, from.Age
	for r, v := range from.Values {
		s.rows[r] = &shardRow[V]{pure: s.alg.Clone(v), visible: s.alg.Clone(v), watchers: map[Client]*watcher{}}
	}
	for w, a := range from.Next {
		t := s.from[w]
		t.Applied, t.clock, t.synced = a, from.Age, a.Number
		t.ends[from.Age-1] = a.Number
	}
}

// Age returns of how many clocks the shard has all updates.
func (s *Shard[V]) Age() Clock { return s.age }

// Step takes a message.
func (s *Shard[V]) Step(message any, now time.Duration) (out []Command[V]) {
	switch m := message.(type) {
	case Batch[V]:
		out = s.onBatch(m)
	case Read:
		out = s.onRead(m)
	case Seen:
		out = s.onSeen(m)
	case Drop:
		if r := s.rows[m.Row]; r != nil && r.watchers[m.Client] != nil && r.watchers[m.Client].watch == m.Watch {
			delete(r.watchers, m.Client)
		}
	case Gone:
		s.onGone(m.Client)
	case Complete:
		if m.Era == s.era {
			s.complete, s.kept = max(s.complete, m.Age), max(s.kept, m.Kept)
		}
	case Restart:
		out = s.onRestart(m)
	case Open:
		s.open = s.open || m.Epoch == s.epoch
	case SaveAt:
		out = s.onSaveAt(m)
	}
	out = append(out, s.advance()...)
	return append(out, s.spread(now)...)
}

// onSaveAt notes that a snapshot of an age is wanted; one of the present age is made at once.
func (s *Shard[V]) onSaveAt(m SaveAt) []Command[V] {
	switch {
	case m.Epoch != s.epoch || m.Age <= s.saved || s.saving == m.Age:
	case m.Age > s.age:
		s.saveAt[m.Age] = true
	case m.Age == s.age:
		s.saving = m.Age
		return []Command[V]{{Save: s.Snapshot()}}
	default:
		return []Command[V]{{ToBookkeeper: Passed{s.id, s.epoch, m.Age}}}
	}
	return nil
}

// SnapshotKept notes that a snapshot is where a loss of the shard leaves it.
func (s *Shard[V]) SnapshotKept(age Clock) []Command[V] {
	s.saved = max(s.saved, age)
	return []Command[V]{{ToBookkeeper: Saved{Shard: s.id, Epoch: s.epoch, Age: s.saved}}}
}

// Tick repeats what may have been lost, and sends what has changed.
func (s *Shard[V]) Tick(now time.Duration) (out []Command[V]) {
	if now-s.told >= s.o.Again {
		s.told = now
		for w := range s.from {
			out = append(out, s.have(Worker(w)))
			out = append(out, s.synced(Worker(w))...)
		}
		if s.saved > s.kept {
			out = append(out, Command[V]{ToBookkeeper: Saved{Shard: s.id, Epoch: s.epoch, Age: s.saved}})
		}
	}
	return append(out, s.spread(now)...)
}

func (s *Shard[V]) have(w Worker) Command[V] {
	t := s.from[w]
	return Command[V]{ToBookkeeper: Have{Shard: s.id, Epoch: s.epoch, Worker: w, Life: t.Life, Clock: t.clock}}
}

func (s *Shard[V]) row(r Row) *shardRow[V] {
	if s.rows[r] == nil {
		s.rows[r] = &shardRow[V]{watchers: map[Client]*watcher{}}
	}
	return s.rows[r]
}

// onBatch takes the next batch of a worker; of all others it says only which it has.
func (s *Shard[V]) onBatch(b Batch[V]) (out []Command[V]) {
	t := s.from[b.Worker]
	if b.Life != t.Life {
		return nil // of a life that has ended, or that is not known yet
	}
	t.client = b.Client // a shard that was begun anew learns it from what it has already, too
	if b.Number == t.Number+1 || plantedTwice(b.Number == t.Number) {
		t.Number = b.Number
		for _, u := range b.Updates {
			s.add(u, b)
		}
		if b.Ends {
			t.clock, t.ends[b.Clock] = b.Clock+1, b.Number
			out = append(out, s.have(b.Worker))
		}
	}
	taken := Taken{Shard: s.id, Epoch: s.epoch, Worker: b.Worker, Applied: t.Applied}
	return append(out, Command[V]{ToClient: &Outgoing{To: int(b.Client), Message: taken}})
}

// add takes an update, which is seen at once, or held back.
func (s *Shard[V]) add(u Update[V], b Batch[V]) {
	r := s.row(u.Row)
	p := &pending[V]{b.Worker, b.Life, b.Clock, b.Number, u.Delta, 0}
	if s.o.Bound > 0 {
		t := s.from[b.Worker]
		t.parts = append(t.parts, part{number: b.Number, row: u.Row})
	}
	if s.o.Strong && (len(r.held) > 0 || !s.mayRelease(r, u.Delta)) {
		r.held = append(r.held, p)
		return
	}
	s.release(u.Row, r, p)
}

// release has an update be seen.
func (s *Shard[V]) release(row Row, r *shardRow[V], p *pending[V]) {
	r.version++
	p.version = r.version
	r.visible = s.alg.Add(r.visible, p.delta)
	r.ahead = append(r.ahead, p)
	size := s.size(p.delta)
	for _, w := range r.watchers {
		w.change += size
	}
	if s.o.Strong {
		r.unseen = append(r.unseen, p)
	}
	if s.o.Bound > 0 && p.life == s.from[p.worker].Life {
		t := s.from[p.worker]
		for i := range t.parts {
			if t.parts[i].row == row && t.parts[i].number == p.number {
				t.parts[i].version = p.version
			}
		}
	}
}

// size returns the magnitude of an update.
func (s *Shard[V]) size(delta V) (sum float64) {
	s.alg.Columns(delta, func(_ int, x float64) { sum += math.Abs(x) })
	return sum
}

// mayRelease reports whether an update may be seen by some before all see it (Petuum, section 2.2, strong VAP): what is
// seen by some only stays within the bound, or it is alone.
func (s *Shard[V]) mayRelease(r *shardRow[V], delta V) bool {
	r.unseen = slices.DeleteFunc(r.unseen, func(p *pending[V]) bool { return r.seenByAll(p.version) })
	half := map[int]float64{}
	for _, p := range r.unseen {
		s.alg.Columns(p.delta, func(c int, x float64) { half[c] += math.Abs(x) })
	}
	may := true
	s.alg.Columns(delta, func(c int, x float64) {
		may = may && (half[c] == 0 || half[c]+math.Abs(x) <= s.o.Bound)
	})
	return plantedRelease(may)
}

// seenByAll reports whether all that have the row have a version.
func (r *shardRow[V]) seenByAll(version int) bool {
	for _, w := range r.watchers {
		if w.seen < version {
			return false
		}
	}
	return true
}

// onRead answers a read, or has it wait for the age that it needs.
func (s *Shard[V]) onRead(m Read) []Command[V] {
	if s.gone[m.Client] {
		return nil
	}
	if m.Age > s.age || !s.open {
		s.await(m)
		return nil
	}
	return []Command[V]{s.answer(m)}
}

// await keeps a read until its age is there. Of several of a client's of one row the least age is what it waits for.
func (s *Shard[V]) await(m Read) {
	at := slices.IndexFunc(s.waiting, func(o Read) bool { return o.Client == m.Client && o.Row == m.Row })
	switch {
	case at < 0:
		s.waiting = append(s.waiting, m)
	case m.Watch > s.waiting[at].Watch || m.Watch == s.waiting[at].Watch && m.Age < s.waiting[at].Age:
		s.waiting[at] = m
	}
}

func (s *Shard[V]) answer(m Read) Command[V] {
	r := s.row(m.Row)
	if s.o.Eager {
		switch w := r.watchers[m.Client]; {
		case w == nil || w.watch < m.Watch:
			r.watchers[m.Client] = &watcher{watch: m.Watch, seen: r.version, sent: r.version}
		case w.watch > m.Watch:
			return Command[V]{} // it has let go of it since
		}
	}
	return s.value(m.Client, m.Row, m.Watch, r)
}

// value returns a row as a client is to see it.
func (s *Shard[V]) value(c Client, row Row, watch int, r *shardRow[V]) Command[V] {
	v := Value[V]{Row: row, Shard: s.id, Epoch: s.epoch, Watch: watch, Version: r.version, Age: s.age,
		Applied: map[Worker]Applied{}}
	for w, t := range s.from {
		a := t.Applied
		if s.o.Exact() {
			a.Number = s.endOf(t)
		}
		for _, p := range r.held {
			switch {
			case p.worker == Worker(w) && p.life == t.Life:
				a.Number = min(a.Number, p.number-1)
			case p.worker == Worker(w):
				a = Applied{Life: p.life} // something of an earlier life is held back, too
			}
		}
		v.Applied[Worker(w)] = a
	}
	if v.Value = s.alg.Clone(r.visible); plantedExact(s.o.Exact()) {
		v.Value = s.alg.Clone(r.pure)
	}
	return Command[V]{ToClient: &Outgoing{To: int(c), Message: v}}
}

// endOf returns the number of the last batch of a worker of the clocks before the shard's age.
func (s *Shard[V]) endOf(t *stream) int {
	if n, ok := t.ends[s.age-1]; ok {
		return n
	}
	return 0
}

func (s *Shard[V]) onSeen(m Seen) []Command[V] {
	r := s.rows[m.Row]
	if r == nil || r.watchers[m.Client] == nil || r.watchers[m.Client].watch != m.Watch {
		return nil
	}
	w := r.watchers[m.Client]
	if w.seen = max(w.seen, min(m.Version, r.version)); w.seen == r.version {
		w.change, w.since = 0, 0
	}
	return nil
}

func (s *Shard[V]) onGone(c Client) {
	s.gone[c] = true
	for _, r := range s.rows {
		delete(r.watchers, c)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(m Read) bool { return m.Client == c })
}

// onRestart takes back what a worker has added since a clock.
func (s *Shard[V]) onRestart(m Restart) []Command[V] {
	t := s.from[m.Worker]
	if m.Life > t.Life {
		before := map[Row]int{}
		for _, p := range t.parts {
			before[p.row] = 0
		}
		maps.Copy(before, t.before)
		*t = stream{Applied: Applied{Life: m.Life}, clock: m.Clock, ends: map[Clock]int{}, before: before, client: m.On}
		since := func(p *pending[V]) bool { return p.worker == m.Worker && plantedBack(p.clock >= m.Clock) }
		for _, r := range s.rows {
			n := len(r.ahead)
			r.held = slices.DeleteFunc(r.held, since)
			if r.ahead = slices.DeleteFunc(r.ahead, since); len(r.ahead) < n {
				s.rebuild(r)
			}
		}
		for row := range before {
			before[row] = s.rows[row].version
		}
	}
	return []Command[V]{s.have(m.Worker)}
}

// rebuild adds up what is seen of a row, after something was taken back.
func (s *Shard[V]) rebuild(r *shardRow[V]) {
	r.visible = s.alg.Clone(r.pure)
	for _, p := range r.ahead {
		r.visible = s.alg.Add(r.visible, p.delta)
	}
	r.version++
	for _, w := range r.watchers {
		w.change = math.Inf(1)
	}
}

// advance makes clocks complete, one after the other, and answers who has waited for them.
func (s *Shard[V]) advance() (out []Command[V]) {
	s.releaseHeld()
	out = s.sync()
	for s.age < s.ready() {
		out = append(out, s.complete1()...)
	}
	if !s.open {
		return out
	}
	var still []Read
	for _, m := range s.waiting {
		if m.Age <= s.age {
			out = append(out, s.answer(m))
		} else {
			still = append(still, m)
		}
	}
	s.waiting = still
	return slices.DeleteFunc(out, func(c Command[V]) bool { return c == Command[V]{} })
}

// ready returns of how many clocks there are all updates, to be seen by all.
func (s *Shard[V]) ready() Clock {
	n := s.complete
	for _, t := range s.from {
		n = min(n, t.clock)
	}
	for _, r := range s.rows {
		for _, p := range r.held {
			n = min(n, p.clock)
		}
	}
	return n
}

// complete1 adds up the updates of the next clock.
func (s *Shard[V]) complete1() (out []Command[V]) {
	s.age++
	for _, r := range s.rows {
		s.fold(r)
	}
	for _, t := range s.from {
		delete(t.ends, s.age-2)
	}
	if s.saveAt[s.age] {
		delete(s.saveAt, s.age)
		s.saving = s.age
		out = append(out, Command[V]{Save: s.Snapshot()})
	}
	return out
}

// fold adds a row's updates of the clock that has become complete to what is pure, in their order.
func (s *Shard[V]) fold(r *shardRow[V]) {
	var now []*pending[V]
	r.ahead = slices.DeleteFunc(r.ahead, func(p *pending[V]) bool {
		if p.clock < s.age {
			now = append(now, p)
		}
		return p.clock < s.age
	})
	if len(now) == 0 {
		return
	}
	slices.SortFunc(now, func(a, b *pending[V]) int {
		return cmp.Or(cmp.Compare(a.clock, b.clock), cmp.Compare(a.worker, b.worker), cmp.Compare(a.number, b.number))
	})
	for _, p := range now {
		r.pure = s.alg.Add(r.pure, p.delta)
	}
	if len(r.ahead) == 0 {
		r.visible = s.alg.Clone(r.pure)
	}
}

// Snapshot returns the shard's rows as they are after exactly the clocks before its age.
func (s *Shard[V]) Snapshot() *Snapshot[V] {
	n := &Snapshot[V]{Age: s.age, Values: map[Row]V{}, Next: map[Worker]Applied{}}
	for k, r := range s.rows {
		n.Values[k] = s.alg.Clone(plantedPure(r.pure, r.visible))
	}
	for w, t := range s.from {
		n.Next[Worker(w)] = Applied{Life: t.Life, Number: s.endOf(t)}
	}
	return n
}

// Approximate returns the rows as they are seen, with what is ahead (LazyTable, section 3.3).
func (s *Shard[V]) Approximate() map[Row]V {
	values := map[Row]V{}
	for k, r := range s.rows {
		values[k] = s.alg.Clone(r.visible)
	}
	return values
}
