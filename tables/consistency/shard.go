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
	waiting   map[reader]Read // for a later age
	answered  bool            // all of them that have their age
	gone      map[Client]bool
	push      budget
	saveAt    map[Clock]bool
	saving    Clock // the last snapshot that was made
	saved     Clock // to be said until it is known
	kept      Clock
	told      time.Duration // when it has said last what it has
	looked    time.Duration // when it has looked last at what was sent and not seen

	touched map[Clock][]Row // rows that have updates of clocks from age on, perhaps more than once
	heldOf  map[Clock]int   // how many updates of each clock are held back
	holding map[Row]bool    // rows with such
	dirty   map[Row]bool    // rows of which some have not seen the last version
	unsent  map[Row]bool    // of these, rows of which some were not sent it
	stirred bool            // what everyone has seen may have changed
	applied []Applied       // of all workers, as values have it; nil where it has changed
}

// reader is a client that reads a row.
type reader struct {
	client Client
	row    Row
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
	pure     lent[V] // the updates of clocks before age
	visible  lent[V] // and those ahead; not kept where nothing but what is pure is seen
	version  int
	ahead    []*pending[V] // in the order in which they came
	held     []*pending[V] // not visible yet
	unseen   []*pending[V] // visible, and not seen by all; of strong models
	watchers map[Client]*watcher
}

// lent is a value that messages and snapshots may share, so that it is not changed any more once they do.
type lent[V any] struct {
	v    V
	lent bool
}

func (l *lent[V]) add(alg Algebra[V], delta V) {
	if l.lent {
		l.v, l.lent = alg.Clone(l.v), false
	}
	l.v = alg.Add(l.v, delta)
}

func (l *lent[V]) lend() V {
	l.lent = true
	return l.v
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
		rows: map[Row]*shardRow[V]{}, gone: map[Client]bool{}, saveAt: map[Clock]bool{}, push: budget{rate: o.Budget},
		waiting: map[reader]Read{}, touched: map[Clock][]Row{}, heldOf: map[Clock]int{}, holding: map[Row]bool{},
		dirty: map[Row]bool{}, unsent: map[Row]bool{}}
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
		s.rows[r] = &shardRow[V]{pure: lent[V]{v, true}, visible: lent[V]{v, true}, watchers: map[Client]*watcher{}}
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
			s.stirred = true
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
		if !s.open && m.Epoch == s.epoch {
			s.open, s.answered, s.stirred = true, false, true
		}
	case SaveAt:
		out = s.onSaveAt(m)
	}
	out = s.advance(out)
	return s.spread(s.unsent, now, out)
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
	if now-s.looked < s.o.Again/8 {
		return s.spread(s.unsent, now, out)
	}
	s.looked = now
	return s.spread(s.dirty, now, out)
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
		s.applied, s.stirred = nil, true
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
	s.touched[b.Clock] = append(s.touched[b.Clock], u.Row)
	if s.o.Bound > 0 {
		t := s.from[b.Worker]
		t.parts = append(t.parts, part{number: b.Number, row: u.Row})
	}
	if s.o.Strong && (len(r.held) > 0 || !s.mayRelease(r, u.Delta)) {
		r.held = append(r.held, p)
		s.heldOf[p.clock]++
		s.holding[u.Row] = true
		return
	}
	s.release(u.Row, r, p)
}

// release has an update be seen.
func (s *Shard[V]) release(row Row, r *shardRow[V], p *pending[V]) {
	r.version++
	p.version = r.version
	r.ahead = append(r.ahead, p)
	if !s.pureOnly() {
		r.visible.add(s.alg, p.delta)
	}
	if len(r.watchers) > 0 {
		s.dirty[row], s.unsent[row] = true, true
		size := s.size(p.delta)
		for _, w := range r.watchers {
			w.change += size
		}
	}
	if s.o.Strong {
		r.unseen = append(r.unseen, p)
	}
	if s.o.Bound > 0 && p.life == s.from[p.worker].Life {
		parts := s.from[p.worker].parts
		for i, part := range slices.Backward(parts) { // one that was not held back is the last
			if part.row == row && part.number == p.number {
				parts[i].version = p.version
				break
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
	had, waits := s.waiting[reader{m.Client, m.Row}]
	if !waits || m.Watch > had.Watch || m.Watch == had.Watch && m.Age < had.Age {
		s.waiting[reader{m.Client, m.Row}] = m
	}
}

func (s *Shard[V]) answer(m Read) Command[V] {
	r := s.row(m.Row)
	if s.o.Eager {
		switch w := r.watchers[m.Client]; {
		case w == nil || w.watch < m.Watch:
			r.watchers[m.Client] = &watcher{watch: m.Watch, seen: r.version, sent: r.version}
			s.stirred = true
		case w.watch > m.Watch:
			return Command[V]{} // it has let go of it since
		}
	}
	return s.value(m.Client, m.Row, m.Watch, r)
}

// value returns a row as a client is to see it.
func (s *Shard[V]) value(c Client, row Row, watch int, r *shardRow[V]) Command[V] {
	v := Value[V]{Row: row, Shard: s.id, Epoch: s.epoch, Watch: watch, Version: r.version, Age: s.age,
		Applied: s.appliedTo(r)}
	if v.Value = r.visible.lend(); s.pureOnly() {
		v.Value = r.pure.lend()
	}
	return Command[V]{ToClient: &Outgoing{To: int(c), Message: v}}
}

// pureOnly reports whether nothing is seen but what is pure.
func (s *Shard[V]) pureOnly() bool { return plantedExact(s.o.Exact()) }

// appliedTo returns how far the batches of all workers are in a row.
func (s *Shard[V]) appliedTo(r *shardRow[V]) []Applied {
	if s.applied == nil {
		s.applied = make([]Applied, len(s.from))
		for w, t := range s.from {
			if s.applied[w] = t.Applied; s.o.Exact() {
				s.applied[w].Number = s.endOf(t)
			}
		}
	}
	if len(r.held) == 0 {
		return s.applied
	}
	all := slices.Clone(s.applied)
	for _, p := range r.held {
		switch a := &all[p.worker]; {
		case p.life == s.from[p.worker].Life:
			a.Number = min(a.Number, p.number-1)
		case a.Life > p.life: // something of an earlier life is held back, too
			*a = Applied{Life: p.life}
		}
	}
	return all
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
	s.stirred = true
	return nil
}

func (s *Shard[V]) onGone(c Client) {
	if s.gone[c] {
		return
	}
	s.gone[c], s.stirred = true, true
	for _, r := range s.rows {
		delete(r.watchers, c)
	}
	maps.DeleteFunc(s.waiting, func(r reader, _ Read) bool { return r.client == c })
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
		s.applied, s.stirred = nil, true
		s.takeBack(m)
		for row := range before {
			before[row] = s.rows[row].version
		}
	}
	return []Command[V]{s.have(m.Worker)}
}

// takeBack drops what a worker has added since a clock.
func (s *Shard[V]) takeBack(m Restart) {
	since := func(p *pending[V]) bool { return p.worker == m.Worker && plantedBack(p.clock >= m.Clock) }
	for _, k := range s.rowsFrom(m.Clock) {
		r := s.rows[k]
		r.held = slices.DeleteFunc(r.held, func(p *pending[V]) bool {
			if since(p) {
				s.heldOf[p.clock]--
			}
			return since(p)
		})
		n := len(r.ahead)
		if r.ahead = slices.DeleteFunc(r.ahead, since); len(r.ahead) < n {
			s.rebuild(k, r)
		}
	}
}

// rowsFrom returns the rows that have updates of clocks from one on, each once, in their order.
func (s *Shard[V]) rowsFrom(c Clock) (all []Row) {
	for of, rows := range s.touched {
		if of >= c {
			all = append(all, rows...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rebuild adds up what is seen of a row, after something was taken back.
func (s *Shard[V]) rebuild(row Row, r *shardRow[V]) {
	if r.version++; !s.pureOnly() {
		r.visible = lent[V]{s.alg.Clone(r.pure.v), false}
		for _, p := range r.ahead {
			r.visible.add(s.alg, p.delta)
		}
	}
	for _, w := range r.watchers {
		w.change = math.Inf(1)
		s.dirty[row], s.unsent[row] = true, true
	}
}

// advance makes clocks complete, one after the other, and answers who has waited for them.
func (s *Shard[V]) advance(out []Command[V]) []Command[V] {
	s.releaseHeld()
	out = append(out, s.sync()...)
	before := s.age
	for s.age < s.ready() {
		out = append(out, s.complete1()...)
	}
	if !s.open || s.age == before && s.answered {
		return out
	}
	s.answered = true
	var now []Read
	for r, m := range s.waiting {
		if m.Age <= s.age {
			now = append(now, m)
			delete(s.waiting, r)
		}
	}
	slices.SortFunc(now, func(a, b Read) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Row, b.Row))
	})
	for _, m := range now {
		if c := s.answer(m); c.ToClient != nil {
			out = append(out, c)
		}
	}
	return out
}

// ready returns of how many clocks there are all updates, to be seen by all.
func (s *Shard[V]) ready() Clock {
	n := s.complete
	if n <= s.age {
		return s.age
	}
	for _, t := range s.from {
		n = min(n, t.clock)
	}
	for c, held := range s.heldOf {
		if held > 0 {
			n = min(n, c)
		}
	}
	return n
}

// complete1 adds up the updates of the next clock.
func (s *Shard[V]) complete1() (out []Command[V]) {
	for _, k := range s.touched[s.age] {
		s.fold(s.rows[k])
	}
	delete(s.touched, s.age)
	delete(s.heldOf, s.age)
	s.age++
	s.applied = nil
	for _, t := range s.from {
		delete(t.ends, s.age-2)
	}
	if s.saveAt[s.age] || s.o.saves(s.age) {
		delete(s.saveAt, s.age)
		s.saving = s.age
		out = append(out, Command[V]{Save: s.Snapshot()})
	}
	return out
}

// fold adds a row's updates of the clock that becomes complete to what is pure, in their order.
func (s *Shard[V]) fold(r *shardRow[V]) {
	n := 0
	for _, p := range r.ahead {
		if p.clock <= s.age {
			n++
		}
	}
	if n == 0 {
		return // by an earlier mention
	}
	now := make([]*pending[V], 0, n)
	r.ahead = slices.DeleteFunc(r.ahead, func(p *pending[V]) bool {
		if p.clock <= s.age {
			now = append(now, p)
		}
		return p.clock <= s.age
	})
	slices.SortFunc(now, func(a, b *pending[V]) int {
		return cmp.Or(cmp.Compare(a.clock, b.clock), cmp.Compare(a.worker, b.worker), cmp.Compare(a.number, b.number))
	})
	for _, p := range now {
		r.pure.add(s.alg, p.delta)
	}
	if len(r.ahead) == 0 && !s.pureOnly() { // the sums of one order
		r.visible = lent[V]{r.pure.lend(), true}
	}
}
