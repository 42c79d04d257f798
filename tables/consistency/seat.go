package consistency

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// Seat is what a worker has to itself in its process: the rows that it has read, and the log of what it has added and
// sent nothing of. Only the worker uses it, but for what a wait or the end of a clock hands to the client, so that
// neither a read of a row that is there nor an update needs a lock.
type Seat[V any] struct {
	id       Worker
	life     Life
	clock    Clock
	alg      Algebra[V]
	pages    []*page[V]
	reads    []*Entry[V] // read in this clock
	log      []*Entry[V] // added to since a batch was made
	prefetch []Row       // read in the clock before
	evicted  int         // evictions of the client that were swept
	due      atomic.Bool // bandwidth allows what is in the log to leave

	out   []*outgoing[V] // by shard
	waits *wait

	waited int64 // how often, within its clocks
}

const pageRows = 512

type page[V any] [pageRows]*Entry[V]

// Entry is a row as a worker has it. Value is what it sees, of which the memory may be shared with others until the
// row is touched, and Delta what it has added that is in no batch.
type Entry[V any] struct {
	Row          Row
	Value, Delta V

	of    *Value[V] // that Value is made of; nil before it is read
	from  *cached[V]
	clock Clock // in which it was read last
	own   bool  // no one else has the memory of Value
	dirty bool  // in the log
}

// Read reports whether the worker has read the row, so that its Value has to follow its Delta.
func (e *Entry[V]) Read() bool { return e.of != nil }

// Fresh returns the entry of a row that the worker may read as it is; nil where the client has to be asked.
func (s *Seat[V]) Fresh(row Row) *Entry[V] {
	if p := int(row / pageRows); p < len(s.pages) && s.pages[p] != nil {
		if e := s.pages[p][row%pageRows]; e != nil && e.clock == s.clock && e.of == e.from.value.Load() {
			return e
		}
	}
	return nil
}

// Touch returns the entry of a row that the worker is about to add to: to its Delta and, if it was Read, to its Value.
func (s *Seat[V]) Touch(row Row) *Entry[V] {
	e := s.entry(row)
	if !e.dirty {
		e.dirty = true
		s.log = append(s.log, e)
	}
	if !e.own && e.of != nil {
		e.Value, e.own = s.alg.Clone(e.Value), true
	}
	return e
}

// Log returns the entry of a row that the worker is about to add to, by its Delta alone: its Value is rebuilt when it
// is read the next time.
func (s *Seat[V]) Log(row Row) *Entry[V] {
	e := s.entry(row)
	if !e.dirty {
		e.dirty = true
		s.log = append(s.log, e)
	}
	if e.of != nil {
		var none V
		e.of, e.Value, e.own, e.clock = nil, none, false, -1
	}
	return e
}

// Due reports whether the client is to be asked to Flush.
func (s *Seat[V]) Due() bool { return s.due.Load() }

func (s *Seat[V]) entry(row Row) *Entry[V] {
	p := int(row / pageRows)
	for p >= len(s.pages) {
		s.pages = append(s.pages, nil)
	}
	if s.pages[p] == nil {
		s.pages[p] = &page[V]{}
	}
	e := s.pages[p][row%pageRows]
	if e == nil {
		e = &Entry[V]{Row: row, clock: -1}
		s.pages[p][row%pageRows] = e
	}
	return e
}

// look returns the entry of a row if there is one.
func (s *Seat[V]) look(row Row) *Entry[V] {
	if p := int(row / pageRows); p < len(s.pages) && s.pages[p] != nil {
		return s.pages[p][row%pageRows]
	}
	return nil
}

// add adds to a row.
func (s *Seat[V]) add(row Row, delta V) {
	e := s.Touch(row)
	e.Delta = s.alg.Add(e.Delta, delta)
	if e.Read() {
		e.Value = s.alg.Add(e.Value, delta)
	}
}

// take takes the rows of a shard out of the log, in the order of their numbers.
func (s *Seat[V]) take(mine func(*Entry[V]) bool) (all []Update[V]) {
	var none V
	s.log = slices.DeleteFunc(s.log, func(e *Entry[V]) bool {
		if !mine(e) {
			return false
		}
		all = append(all, Update[V]{e.Row, s.alg.Seal(e.Delta)})
		e.Delta, e.dirty = none, false
		return true
	})
	slices.SortFunc(all, func(a, b Update[V]) int { return cmp.Compare(a.Row, b.Row) })
	return all
}

// letGo lets go of the values of rows that the process has let go of, as its evictions say.
func (s *Seat[V]) letGo(evicted int) {
	var none V
	s.evicted = evicted
	for _, p := range s.pages {
		for k := 0; p != nil && k < len(p); k++ {
			if e := p[k]; e != nil && e.of != nil && e.from.value.Load() != e.of {
				e.of, e.Value, e.own, e.clock = nil, none, false, -1
				if !e.dirty {
					p[k] = nil
				}
			}
		}
	}
}

// wait notes what the worker waits for, and reports whether it did not wait for that before.
func (s *Seat[V]) wait(what waitFor, row Row, now time.Duration) bool {
	if s.waits != nil && s.waits.what == what && s.waits.row == row {
		return false
	}
	s.waits = &wait{row, what, now}
	return true
}

// Waited returns how often the worker had to wait within its clocks, for a row or to add to one.
func (s *Seat[V]) Waited() int64 { return s.waited }

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

// outgoing is what a worker sends to a shard: batches by number, without gaps.
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

// after returns the batches after a number.
func (o *outgoing[V]) after(number int) []*sentBatch[V] {
	if len(o.batches) == 0 {
		return nil
	}
	return o.batches[min(len(o.batches), max(0, number-o.batches[0].Number+1)):]
}

// delta returns what a batch adds to a row.
func (b *Batch[V]) delta(row Row) (v V, ok bool) {
	at, ok := slices.BinarySearchFunc(b.Updates, row, func(u Update[V], r Row) int { return cmp.Compare(u.Row, r) })
	if ok {
		v = b.Updates[at].Delta
	}
	return v, ok
}
