package rdd

import (
	"context"
	"slices"
	"sync"
	"unsafe"
)

// lookup are the rows of one side of a join, to be found by key: a table with an
// entry for each row, of which the index has the first of each key. It is built in
// two passes: rows are gathered, in their order, and then found places for, several
// ranges of the index at the same time. Where the rows of both sides come in the order of
// their keys' hashes, as shuffles hand them out, no index is needed: they are
// merged.
type lookup[K comparable, W any] struct {
	keys    *table[K, W]
	merged  bool    // there is no index
	at      int     // the entry that merging has come to
	next    []int32 // by entry: the next one of its key plus one, 0 at the end; nil where no key has two
	chained sync.Once
}

func newJoinTable[K comparable, W any](c keyed[K, W], rows int) *lookup[K, W] {
	t := &table[K, W]{codec: c.key, hash: c.hash, denseIndex: newDenseIndex[K]()}
	t.entries = makeHuge[Pair[K, W]](0, rows)
	return &lookup[K, W]{keys: t}
}

// lookup reads a partition of a shuffle, and builds its index by some workers.
func (p *joinPlan[K, V, W, U]) lookup(ctx context.Context, id, part, workers int) (*lookup[K, W], error) {
	env, err := envOf(ctx)
	if err != nil {
		return nil, err
	}
	a := env.args.Shuffles[id][part]
	l := newJoinTable(p.co.r, int(a.Rows))
	if err := readInto(ctx, id, part, p.co.r.row, &arena{large: a.Bytes > 2*slabBytes}, l.addAll); err != nil {
		return nil, err
	}
	l.build(workers)
	return l, nil
}

// addAll gathers rows, whose keys and values are kept.
func (l *lookup[K, W]) addAll(rows []Pair[K, W]) error {
	t := l.keys
	for i := range rows {
		t.entries = append(growHuge(t.entries), rows[i])
	}
	return nil
}

// indexedLeast is how many rows are worth a worker.
const indexedLeast = 1 << 16

// build finds every row a place in the index: each worker those that belong into
// its range of places. Where keys are integers that lie closely enough together, places
// are by number.
func (l *lookup[K, W]) build(workers int) {
	t := l.keys
	n := indexFor(len(t.entries))
	workers = max(1, min(workers, len(t.entries)/indexedLeast))
	if l.buildNumbers(n, workers) {
		return
	}
	t.index, t.mask = makeHuge[uint64](n, n), uint64(n-1)
	if len(t.hashes) < len(t.entries) {
		t.hashes = makeHuge[uint64](len(t.entries), len(t.entries))
		split(len(t.entries), workers, func(_, lo, hi int) { hashOf(t.hash, t.entries[lo:hi], t.hashes[lo:hi]) })
	}
	over := make([][]int32, workers)
	split(n, workers, func(w, lo, hi int) { over[w], _ = l.place(uint64(lo), uint64(hi)) })
	for _, rows := range over { // beyond their range
		for _, row := range rows {
			l.insert(row, uint64(n), true)
		}
	}
}

// split has workers do a range of something each.
func split(n, workers int, do func(w, lo, hi int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { do(w, w*n/workers, (w+1)*n/workers) })
	}
	wg.Wait()
}

// buildNumbers is build by number, where the numbers lie closely enough for what takes n
// places by hash.
func (l *lookup[K, W]) buildNumbers(n, workers int) bool {
	t := l.keys
	if t.numbers == nil || len(t.entries) == 0 {
		return false
	}
	first, last := span(t.numbers, t.entries)
	if !lieWithin(first, last, roomFor(n)) {
		return false
	}
	room := int(last-first) + 1
	t.base, t.places = first, makeHuge[uint32](room, room)
	split(room, workers, func(_, lo, hi int) { l.placeNumbers(uint64(lo), uint64(hi)) })
	return true
}

// placeNumbers inserts the rows whose numbers lie in [lo, hi) of the places, the last
// row first, so that the first of each key is found first.
func (l *lookup[K, W]) placeNumbers(lo, hi uint64) {
	t := l.keys
	var some [probed]uint64
	for end := len(t.entries); end > 0; end = max(0, end-probed) {
		from := max(0, end-probed)
		numbers := hashOf(t.numbers, t.entries[from:end], some[:])
		for i := len(numbers) - 1; i >= 0; i-- {
			at := numbers[i] - t.base
			if at < lo || at >= hi {
				continue
			}
			row := int32(from + i)
			if other := t.places[at]; other != 0 {
				l.chain(row, int32(other)-1)
			}
			t.places[at] = uint32(row + 1)
		}
	}
}

// place inserts the rows whose places lie in [lo, hi), the last row first, so that the
// first of each key is found first; it returns those for which the range had none
// left. Places are looked at many at a time before any is taken, so that they are in
// the cache when their turn comes; seen is returned for the looks not to be left out
// as being of no use.
func (l *lookup[K, W]) place(lo, hi uint64) (over []int32, seen uint64) {
	t := l.keys
	var some [probed]int32
	for end := len(t.hashes); end > 0; {
		n := 0
		for ; end > 0 && n < len(some); end-- {
			if at := t.hashes[end-1] & t.mask; at >= lo && at < hi {
				some[n] = int32(end - 1)
				n++
			}
		}
		for _, row := range some[:n] {
			seen |= t.index[t.hashes[row]&t.mask]
		}
		for _, row := range some[:n] {
			if !l.insert(row, hi, false) {
				over = append(over, row)
			}
		}
	}
	return over, seen
}

// insert puts a row at the first free place below an end, or, past the last one, from
// the beginning on; where its key has one, the row takes that, and comes before those
// that were there.
func (l *lookup[K, W]) insert(row int32, end uint64, round bool) bool {
	t := l.keys
	h := t.hashes[row]
	for at := h & t.mask; ; at++ {
		if at == end {
			if !round {
				return false
			}
			at = 0
		}
		x := t.index[at]
		if other := int32(uint32(x)) - 1; x != 0 &&
			(x>>32 != h>>32 || t.entries[other].Key != t.entries[row].Key &&
				!t.codec.equal(&t.entries[other].Key, &t.entries[row].Key)) {
			continue
		} else if x != 0 {
			l.chain(row, other)
		}
		t.index[at] = h>>32<<32 | uint64(row+1)
		return true
	}
}

// order makes the rows ready to be merged, or builds the index where they do not lie in
// the order of their keys' hashes, of which each has one row.
func (l *lookup[K, W]) order() {
	if l.merged = ascending(l.keys.hashed()); !l.merged {
		l.build(1)
	}
}

// ascending reports whether each of some hashes is greater than the one before it.
func ascending(hashes []uint64) bool {
	for i := 1; i < len(hashes); i++ {
		if hashes[i] <= hashes[i-1] {
			return false
		}
	}
	return true
}

// find is look, by merging as long as rows come in the order of their keys' hashes, too.
func find[K comparable, V, W any](l *lookup[K, W], sc *scratch, rows []Pair[K, V]) {
	if l.merged && inTurn(l, sc, rows) {
		return
	}
	if l.merged {
		l.merged = false
		l.build(1)
	}
	look(l.keys, sc, rows, false)
}

// inTurn finds the places of a batch of keys by merging, unless they do not come in
// the order of their hashes.
func inTurn[K comparable, V, W any](l *lookup[K, W], sc *scratch, rows []Pair[K, V]) bool {
	sc.places = slices.Grow(sc.places[:0], len(rows))[:len(rows)]
	t := l.keys
	for i := range rows {
		if l.at < len(t.entries) && (t.entries[l.at].Key == rows[i].Key ||
			t.codec.equal(&t.entries[l.at].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at)
			l.at++
			continue
		}
		if l.at > 0 && (t.entries[l.at-1].Key == rows[i].Key || t.codec.equal(&t.entries[l.at-1].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at - 1)
			continue
		}
		sc.hashes = hashOf(t.hash, rows[i:i+1], sc.hashes)
		h := sc.hashes[0]
		if l.at > 0 && t.hashes[l.at-1] > h {
			return false
		}
		for l.at < len(t.hashes) && t.hashes[l.at] < h {
			l.at++
		}
		sc.places[i] = noPlace
		if l.at < len(t.hashes) && t.hashes[l.at] == h &&
			(t.entries[l.at].Key == rows[i].Key || t.codec.equal(&t.entries[l.at].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at)
		}
	}
	return true
}

// chain puts a row before another of its key.
func (l *lookup[K, W]) chain(row, other int32) {
	l.chained.Do(func() { l.next = make([]int32, len(l.keys.entries)) })
	l.next[row] = other + 1
}

// matches are the rows of an entry and of those after it; none of noPlace.
func (l *lookup[K, W]) matches(entry uint32) rowsOf[W] {
	if entry == noPlace {
		return rowsOf[W]{}
	}
	r := rowsOf[W]{first: &l.keys.entries[entry].Value}
	if l.next != nil && l.next[entry] > 0 {
		r.chain, r.next = l.next[entry], l.next
		r.base, r.stride = unsafe.Pointer(&l.keys.entries[0].Value), unsafe.Sizeof(l.keys.entries[0])
	}
	return r
}

// rowsOf are the rows of one side of a join that have a key.
type rowsOf[W any] struct {
	values []W // or:
	first  *W
	chain  int32          // of the entry that comes then, plus one; 0 at the end
	next   []int32        // by entry
	base   unsafe.Pointer // the first entry's value; that of each next one lies stride bytes on
	stride uintptr
}

// take is the next row; nil at the end.
func (r *rowsOf[W]) take() *W {
	if w := r.first; w != nil {
		r.first = nil
		return w
	}
	if r.chain > 0 {
		at := r.chain - 1
		r.chain = r.next[at]
		return (*W)(unsafe.Add(r.base, uintptr(at)*r.stride))
	}
	if len(r.values) > 0 {
		w := &r.values[0]
		r.values = r.values[1:]
		return w
	}
	return nil
}
