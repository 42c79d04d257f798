package rdd

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/storage/shuffle"
)

// order is the order of rows: that of their ranks and, of equal ones, what
// compare says; nil where equal ranks are equal keys.
type order[T any] struct {
	rank    func(*T) uint64
	compare func(a, b *T) int
	text    func(*T) string // what compare compares, where that is text, and down whether
	down    bool            // the greater comes first
}

// past is the same order of rows whose texts begin with the same bytes:
// ranks are those of the eight bytes after them.
func (o order[T]) past(shared int) order[T] {
	if shared > 0 {
		o.rank = func(r *T) uint64 { return o.rankPast(r, shared) }
	}
	return o
}

func (o *order[T]) rankPast(r *T, shared int) uint64 {
	rank := textRank(o.text(r)[shared:])
	if o.down {
		return ^rank
	}
	return rank
}

// sorter sorts rows, and keeps the order of equal ones. It holds them as bytes,
// and no more than a budget; beyond it writes sorted runs, which are merged at
// the end (external merge sort).
type sorter[T any] struct {
	row    codec[T]
	order  order[T]
	packs  runner.TaskContext
	budget int
	slabs  []*slab
	at     int // in the last slab
	list   []ranked
	runs   []*shuffle.Output
	total  int64 // bytes of all rows
	raw    []byte
	shared sharedText
}

// Rows lie in slabs, each with its length before it.
const (
	slabBits  = 23
	slabBytes = 1 << slabBits
	rowHead   = 4
)

type slab []byte

var slabs = sync.Pool{New: func() any { s := slab(makeHuge[byte](slabBytes, slabBytes)); return &s }}

// mostSlabs is how many slabs a place in them can name.
const mostSlabs = 1 << (32 - slabBits)

func newSorter[T any](row codec[T], o order[T], packs runner.TaskContext) *sorter[T] {
	return &sorter[T]{row: row, order: o, packs: packs, budget: max(packs.Memory()/2, 1<<16)}
}

// newHashSorter sorts pairs by the hash of their key, and then by the key's
// encoding.
func newHashSorter[K comparable, V any](c keyed[K, V], packs runner.TaskContext) *sorter[Pair[K, V]] {
	var hash [1]uint64
	return newSorter(c.row, order[Pair[K, V]]{
		rank: func(p *Pair[K, V]) uint64 {
			one := []Pair[K, V]{*p}
			hashOf(c.hash, one, hash[:0:1])
			return hash[0]
		},
		compare: func(a, b *Pair[K, V]) int {
			if a.Key == b.Key {
				return 0
			}
			return strings.Compare(string(c.key.append(nil, &a.Key)), string(c.key.append(nil, &b.Key)))
		},
	}, packs)
}

func (s *sorter[T]) addAll(rows []T) error {
	for i := range rows {
		if err := s.add(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sorter[T]) add(row *T) error {
	s.raw = s.row.append(s.raw[:0], row)
	need := rowHead + len(s.raw)
	if len(s.slabs) == 0 || s.at+need > len(*s.slabs[len(s.slabs)-1]) {
		if err := s.grow(need); err != nil {
			return err
		}
	}
	last := *s.slabs[len(s.slabs)-1]
	binary.LittleEndian.PutUint32(last[s.at:], uint32(len(s.raw)))
	copy(last[s.at+rowHead:], s.raw)
	rank, err := s.rank(row)
	if err != nil {
		return err
	}
	s.list = append(s.list, ranked{rank, uint32((len(s.slabs)-1)<<slabBits | s.at)})
	s.at += need
	s.total += int64(len(s.raw))
	return nil
}

// grow makes room for a row: a slab more, or a run of what is there.
func (s *sorter[T]) grow(need int) error {
	used := 0
	for _, b := range s.slabs {
		used += len(*b)
	}
	const entry = 32 // with what the radix sort takes
	if len(s.slabs) > 0 && (used+max(need, min(slabBytes, s.budget))+entry*len(s.list) > s.budget ||
		len(s.slabs) == mostSlabs) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	var b *slab
	switch {
	case need > slabBytes:
		one := make(slab, need)
		b = &one
	case s.budget < 8*slabBytes: // little memory is not used up by one slab
		one := make(slab, max(need, min(slabBytes, s.budget/4)))
		b = &one
	default:
		b = slabs.Get().(*slab)
	}
	s.slabs, s.at = append(s.slabs, b), 0
	return nil
}

// bytesAt is a row in its encoding.
func (s *sorter[T]) bytesAt(place uint32) []byte {
	b := (*s.slabs[place>>slabBits])[place&(slabBytes-1):]
	return b[rowHead : rowHead+binary.LittleEndian.Uint32(b)]
}

// sort puts what is in memory in order.
func (s *sorter[T]) sort() error {
	s.list = sortRanked(s.list)
	if s.order.compare == nil {
		return nil
	}
	for from := 0; from < len(s.list); {
		to := from + 1
		for to < len(s.list) && s.list[to].rank == s.list[from].rank {
			to++
		}
		if to > from+1 {
			if err := s.sortEqual(s.list[from:to]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// sortEqual puts rows of one rank in order.
func (s *sorter[T]) sortEqual(list []ranked) error {
	if s.order.text != nil && len(list) >= fewRanked {
		return s.sortTexts(list)
	}
	type parsed struct {
		row T
		at  uint32
	}
	var text arena
	rows := make([]parsed, len(list))
	for i := range list {
		rows[i].at = list[i].row
		if _, err := s.row.parse(s.bytesAt(list[i].row), &rows[i].row, &text); err != nil {
			return corruptRow(err)
		}
	}
	slices.SortStableFunc(rows, func(a, b parsed) int { return s.order.compare(&a.row, &b.row) })
	for i := range rows {
		list[i].row = rows[i].at
	}
	return nil
}

// spill writes what is in memory to a run.
func (s *sorter[T]) spill() error {
	if err := s.sort(); err != nil {
		return err
	}
	out := s.packs.NewMapOutput(1)
	out.ToFile() // it is there to make room
	defer out.Close()
	for _, e := range s.list {
		room := out.Room(0)
		if *room = append(*room, s.bytesAt(e.row)...); len(*room) >= out.Block {
			if err := out.Flush(0); err != nil {
				return err
			}
		}
	}
	b, err := out.Finish()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, b)
	s.forget()
	return nil
}

// forget gives the memory back.
func (s *sorter[T]) forget() {
	for _, b := range s.slabs {
		if len(*b) == slabBytes {
			slabs.Put(b)
		}
	}
	s.slabs, s.at, s.list, s.shared = nil, 0, s.list[:0], sharedText{}
}

// close gives everything up.
func (s *sorter[T]) close() {
	if s == nil {
		return
	}
	for _, r := range s.runs {
		r.Remove()
	}
	s.forget()
	s.runs, s.list = nil, nil
}

// each hands out all rows in order. The sorter can take no more.
func (s *sorter[T]) each(ctx context.Context, yield func([]T) error) error {
	if len(s.runs) == 0 {
		return s.eachInMemory(ctx, yield)
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.list = nil
	var streams []*stream[T]
	for _, r := range s.runs {
		streams = append(streams, &stream[T]{order: s.order, row: s.row, open: func() (io.ReadCloser, error) {
			return r.Open(shuffle.Span{From: 0, Through: 1})
		}})
	}
	return mergeAll(ctx, s.packs, s.row, s.order, streams, yield)
}

// ahead is how many rows before its turn a row is looked at, so that its memory
// is on the way when it is needed.
const ahead = 12

// eachEncoded hands out all rows in order, in their encoding, where none has gone
// to a run.
func (s *sorter[T]) eachEncoded(yield func(raw []byte) error) error {
	if err := s.sort(); err != nil {
		return err
	}
	var touched byte
	for i, e := range s.list {
		if i+ahead < len(s.list) {
			next := s.list[i+ahead].row
			touched ^= (*s.slabs[next>>slabBits])[next&(slabBytes-1)]
		}
		if err := yield(s.bytesAt(e.row)); err != nil {
			return err
		}
	}
	s.raw = append(s.raw[:0], touched) // it has to be of use
	return nil
}

func (s *sorter[T]) eachInMemory(ctx context.Context, yield func([]T) error) error {
	if err := s.sort(); err != nil {
		return err
	}
	var text arena
	batch := make([]T, 0, batchRows[T]())
	for i, e := range s.list {
		var row T
		if _, err := s.row.parse(s.bytesAt(e.row), &row, &text); err != nil {
			return corruptRow(err)
		}
		if batch = append(batch, row); len(batch) == cap(batch) || i == len(s.list)-1 {
			if err := firstError(ctx.Err(), yield(batch)); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// eachGroup hands out the rows of a sorter of pairs one by one, those of each key one after
// the other; fresh says of the first of them that it is one.
func eachGroup[K comparable, V any](ctx context.Context, s *sorter[Pair[K, V]],
	take func(row *Pair[K, V], fresh bool) error) error {
	var first Pair[K, V]
	begun := false
	return s.each(ctx, func(rows []Pair[K, V]) error {
		for i := range rows {
			fresh := !begun || first.Key != rows[i].Key && s.order.compare(&first, &rows[i]) != 0
			if fresh {
				first.Key, begun = rows[i].Key, true
			}
			if err := take(&rows[i], fresh); err != nil {
				return err
			}
		}
		return nil
	})
}

// stream is rows that come in order.
type stream[T any] struct {
	order order[T]
	row   codec[T]
	open  func() (io.ReadCloser, error)
	lost  func(error) error // what an error of reading it means; may be nil
	// within says which of the rows of a block are wanted; nil is all of them. Once some at
	// the end of one are not no more are.
	within func(rows []T) (from, to int)
	past   bool
	in     io.ReadCloser
	r      *shuffle.BlockReader
	rows   []T // left of the block
	block  []T
	text   arena
	rank   uint64 // of the present row
}

// next moves to the next row; io.EOF at the end.
func (s *stream[T]) next() error {
	if len(s.rows) > 1 {
		s.rows = s.rows[1:]
		s.rank = s.order.rank(&s.rows[0])
		return nil
	}
	err := s.fill()
	if err != nil && !errors.Is(err, io.EOF) && s.lost != nil {
		err = s.lost(err)
	}
	return err
}

func (s *stream[T]) fill() (err error) {
	if s.in == nil {
		if s.in, err = s.open(); err != nil {
			return err
		}
		s.r = shuffle.NewBlockReader(s.in)
	}
	for {
		if s.past {
			return io.EOF
		}
		block, err := s.r.Next()
		if err != nil {
			return err
		}
		if s.block, err = s.row.parseAll(block, s.block[:0], &s.text); err != nil {
			return corruptRow(err)
		}
		if s.rows = s.block; s.within != nil {
			from, to := s.within(s.rows)
			s.past = to < len(s.rows)
			s.rows = s.rows[from:to]
		}
		if len(s.rows) > 0 {
			s.rank = s.order.rank(&s.rows[0])
			return nil
		}
	}
}

func (s *stream[T]) close() {
	if s.in != nil {
		s.in.Close()
	}
	s.rows, s.block = nil, nil
}
