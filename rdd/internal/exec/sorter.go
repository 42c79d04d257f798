package exec

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Order is the order of rows: by Rank, and of equal ranks by Compare; nil where equal ranks are equal keys.
type Order[T any] struct {
	rank    func(*T) uint64
	compare func(a, b *T) int
	text    func(*T) string // what compare compares, where that is text, and down whether
	down    bool            // the greater comes first
	keys    []SortKey[T]    // where the order is by several
}

// OrderBy returns the order of rows by a key of each.
func OrderBy[T, K any](k KeyOrder[K], of func(*T) K) Order[T] {
	o := Order[T]{rank: func(r *T) uint64 { return k.rank(of(r)) }, down: k.down}
	if k.compare != nil {
		o.compare = func(a, b *T) int { return k.compare(of(a), of(b)) }
	}
	if k.Text != nil {
		o.text = func(r *T) string { return k.Text(of(r)) }
	}
	return o
}

// Past returns the same order for rows whose texts share their first bytes: ranks are of the eight bytes
// after them.
func (o Order[T]) Past(shared int) Order[T] {
	if shared > 0 {
		o.rank = func(r *T) uint64 { return o.rankPast(r, shared) }
	}
	return o
}

func (o *Order[T]) rankPast(r *T, shared int) uint64 {
	rank := textRank(o.text(r)[shared:])
	if o.down {
		return ^rank
	}
	return rank
}

// Sorter is an external merge sort that keeps the order of equal rows. It holds encoded rows up to a budget
// of memory, and spills sorted runs beyond it, which are merged at the end.
type Sorter[T any] struct {
	row    row.Codec[T]
	order  Order[T]
	packs  runner.TaskContext
	budget int
	slabs  []*slab
	at     int // in the last slab
	list   []Ranked
	Runs   []*shuffle.Output
	Total  int64 // bytes of all rows
	raw    []byte
	shared sharedText
	byKeys keySorter[T]

	touched byte // what bring has read, which has to be of use
}

// Rows lie in slabs, each with its length before it.
const (
	slabBits  = 23
	slabBytes = 1 << slabBits
	rowHead   = 4
)

type slab []byte

var slabs = sync.Pool{New: func() any { s := slab(huge.Make[byte](slabBytes, slabBytes)); return &s }}

// mostSlabs is how many slabs the place of a row can name.
const mostSlabs = 1 << (32 - slabBits)

// NewSorter returns an empty sorter.
func NewSorter[T any](row row.Codec[T], o Order[T], packs runner.TaskContext) *Sorter[T] {
	return &Sorter[T]{row: row, order: o, packs: packs, budget: max(packs.Memory()/2, 1<<16)}
}

// NewHashSorter returns a sorter of pairs by the hash of their key, then by the key's encoding.
func NewHashSorter[K comparable, V any](c Keyed[K, V], packs runner.TaskContext) *Sorter[row.Pair[K, V]] {
	return NewSorter(c.Row, hashOrder(c), packs)
}

func hashOrder[K comparable, V any](c Keyed[K, V]) Order[row.Pair[K, V]] {
	var hash [1]uint64
	return Order[row.Pair[K, V]]{
		rank: func(p *row.Pair[K, V]) uint64 {
			one := []row.Pair[K, V]{*p}
			row.Hashes(c.Hash, one, hash[:0:1])
			return hash[0]
		},
		compare: func(a, b *row.Pair[K, V]) int {
			if a.Key == b.Key {
				return 0
			}
			return strings.Compare(string(c.Key.Append(nil, &a.Key)), string(c.Key.Append(nil, &b.Key)))
		},
	}
}

// AddAll adds rows.
func (s *Sorter[T]) AddAll(rows []T) error {
	for i := range rows {
		if err := s.Add(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// Add adds a row.
func (s *Sorter[T]) Add(row *T) error {
	s.raw = s.row.Append(s.raw[:0], row)
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
	s.list = append(s.list, Ranked{rank, uint32((len(s.slabs)-1)<<slabBits | s.at)})
	s.at += need
	s.Total += int64(len(s.raw))
	return nil
}

// grow makes room for a row: by another slab, or by spilling a run.
func (s *Sorter[T]) grow(need int) error {
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

// bytesAt returns the encoding of a row.
func (s *Sorter[T]) bytesAt(place uint32) []byte {
	b := (*s.slabs[place>>slabBits])[place&(slabBytes-1):]
	return b[rowHead : rowHead+binary.LittleEndian.Uint32(b)]
}

// sort sorts the rows in memory.
func (s *Sorter[T]) sort() error {
	s.list = sortRanked(s.list)
	if s.order.compare == nil {
		return nil
	}
	near := 0
	for from := 0; from < len(s.list); {
		if from >= near {
			near = s.bring(from, true)
		}
		to := from + 1
		for to < len(s.list) && s.list[to].Rank == s.list[from].Rank {
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

// sortEqual sorts rows of equal rank.
func (s *Sorter[T]) sortEqual(list []Ranked) error {
	switch {
	case s.order.text != nil && len(list) >= fewTexts:
		return s.sortTexts(list)
	case len(s.order.keys) > 1:
		return s.sortByKeys(list)
	}
	type parsed struct {
		row T
		at  uint32
	}
	var text row.Arena
	rows := make([]parsed, len(list))
	for i := range list {
		rows[i].at = list[i].row
		if _, err := s.row.Parse(s.bytesAt(list[i].row), &rows[i].row, &text); err != nil {
			return row.Corrupt(err)
		}
	}
	slices.SortStableFunc(rows, func(a, b parsed) int { return s.order.compare(&a.row, &b.row) })
	for i := range rows {
		list[i].row = rows[i].at
	}
	return nil
}

// spill writes the rows in memory to a run.
func (s *Sorter[T]) spill() error {
	if err := s.sort(); err != nil {
		return err
	}
	out := s.packs.NewMapOutput(1)
	out.ToFile() // it is there to make room
	defer out.Close()
	near := 0
	for i, e := range s.list {
		if i >= near {
			near = s.bring(i, false)
		}
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
	s.packs.Spilled(b.Size())
	s.Runs = append(s.Runs, b)
	s.forget()
	return nil
}

// forget releases the memory.
func (s *Sorter[T]) forget() {
	for _, b := range s.slabs {
		if len(*b) == slabBytes {
			slabs.Put(b)
		}
	}
	s.slabs, s.at, s.list, s.shared, s.byKeys = nil, 0, s.list[:0], sharedText{}, keySorter[T]{}
}

// Close releases memory and files.
func (s *Sorter[T]) Close() {
	if s == nil {
		return
	}
	for _, r := range s.Runs {
		r.Remove()
	}
	s.forget()
	s.Runs, s.list = nil, nil
}

// Each yields all rows in order, a batch at a time. The sorter can take no more.
func (s *Sorter[T]) Each(ctx context.Context, yield func([]T) error) error {
	if len(s.Runs) == 0 {
		return s.eachInMemory(ctx, yield)
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.list = nil
	var streams []*Run[T]
	for _, r := range s.Runs {
		streams = append(streams, &Run[T]{Order: s.order, Row: s.row, Open: func() (io.ReadCloser, error) {
			return r.Open(shuffle.Span{From: 0, Through: 1})
		}})
	}
	return Merge(ctx, s.packs, s.row, s.order, streams, yield)
}

// nearby is how many rows are brought into the processor's caches at a time.
const nearby = 256

// bring reads a little of each of the next rows, which lie anywhere, or of those that have the rank of one beside them,
// and returns the place after them. One by one their reads from memory would be waited for; here they overlap.
func (s *Sorter[T]) bring(from int, tied bool) int {
	to := min(from+nearby, len(s.list))
	sum := s.touched
	for i, e := range s.list[from:to] {
		if tied && !s.tied(from+i) {
			continue
		}
		b := (*s.slabs[e.row>>slabBits])[e.row&(slabBytes-1):]
		sum ^= b[0] ^ b[min(rowHead+15, len(b)-1)] // which may lie in the next line of the cache
	}
	s.touched = sum
	return to
}

// tied reports whether a row of the list has the rank of one beside it.
func (s *Sorter[T]) tied(i int) bool {
	rank := s.list[i].Rank
	return i > 0 && s.list[i-1].Rank == rank || i+1 < len(s.list) && s.list[i+1].Rank == rank
}

// EachEncoded yields all rows in order, encoded; none may have been spilled.
func (s *Sorter[T]) EachEncoded(yield func(raw []byte) error) error {
	if err := s.sort(); err != nil {
		return err
	}
	for from := 0; from < len(s.list); {
		to := s.bring(from, false)
		for _, e := range s.list[from:to] {
			if err := yield(s.bytesAt(e.row)); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

func (s *Sorter[T]) eachInMemory(ctx context.Context, yield func([]T) error) error {
	if err := s.sort(); err != nil {
		return err
	}
	var text row.Arena
	batch := make([]T, 0, row.BatchSize[T]())
	near := 0
	for i, e := range s.list {
		if i >= near {
			near = s.bring(i, false)
		}
		var r T
		if _, err := s.row.Parse(s.bytesAt(e.row), &r, &text); err != nil {
			return row.Corrupt(err)
		}
		if batch = append(batch, r); len(batch) == cap(batch) || i == len(s.list)-1 {
			if err := cmp.Or(ctx.Err(), yield(batch)); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// eachGroup yields the rows of a sorter of pairs one by one; fresh reports whether a row is the first of its
// key.
func eachGroup[K comparable, V any](ctx context.Context, s *Sorter[row.Pair[K, V]],
	take func(row *row.Pair[K, V], fresh bool) error) error {
	var first row.Pair[K, V]
	begun := false
	return s.Each(ctx, func(rows []row.Pair[K, V]) error {
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

// Run is a sorted sequence of rows, read block by block.
type Run[T any] struct {
	Order Order[T]
	Row   row.Codec[T]
	Open  func() (io.ReadCloser, error)
	Lost  func(error) error // what an error of reading it means; may be nil
	// Within says which of the rows of a block are wanted; nil is all of them. Once some at
	// the end of one are not no more are.
	Within func(rows []T) (from, to int)
	past   bool
	in     io.ReadCloser
	r      *shuffle.BlockReader
	rows   []T // left of the block
	block  []T
	text   row.Arena
	rank   uint64 // of the present row
}

// next moves to the next row; io.EOF at the end.
func (s *Run[T]) next() error {
	if len(s.rows) > 1 {
		s.rows = s.rows[1:]
		s.rank = s.Order.rank(&s.rows[0])
		return nil
	}
	err := s.fill()
	if err != nil && !errors.Is(err, io.EOF) && s.Lost != nil {
		err = s.Lost(err)
	}
	return err
}

func (s *Run[T]) fill() (err error) {
	if s.in == nil {
		if s.in, err = s.Open(); err != nil {
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
		if s.block, err = s.Row.ParseAll(block, s.block[:0], &s.text); err != nil {
			return row.Corrupt(err)
		}
		if s.rows = s.block; s.Within != nil {
			from, to := s.Within(s.rows)
			s.past = to < len(s.rows)
			s.rows = s.rows[from:to]
		}
		if len(s.rows) > 0 {
			s.rank = s.Order.rank(&s.rows[0])
			return nil
		}
	}
}

func (s *Run[T]) close() {
	if s.in != nil {
		s.in.Close()
	}
	s.rows, s.block = nil, nil
}
