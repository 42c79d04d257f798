package exec

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// JoinTable holds the rows of one side of a join by key: a table with an entry for each row, whose index has
// the first of each key. It is built in two passes: rows are gathered in their order, and then indexed,
// several ranges of the index in parallel. Where the rows of both sides come in the order of their keys'
// hashes, as shuffles yield them, they are merged without an index.
type JoinTable[K comparable, W any] struct {
	keys    *Table[K, W]
	merged  bool    // there is no index
	at      int     // the entry that merging has come to
	next    []int32 // by entry: the next one of its key plus one, 0 at the end; nil where no key has two
	chained sync.Once
}

// Bytes that a row takes in a JoinTable beside itself: its hash, its share of the index, at most, and its link.
const rowInTable = 8 + 2*8 + 4

// HeldBy returns about how many bytes a JoinTable of some rows takes, which are bytes long as they are encoded.
func HeldBy[K comparable, W any](rows, bytes int64) int64 {
	return bytes + rows*int64(rowInTable+unsafe.Sizeof(row.Pair[K, W]{}))
}

// NewJoinTable returns an empty table with room for the given number of rows.
func NewJoinTable[K comparable, W any](c Keyed[K, W], rows int) *JoinTable[K, W] {
	t := &Table[K, W]{codec: c.Key, hash: c.Hash, denseIndex: newDenseIndex[K]()}
	t.Entries = huge.Make[row.Pair[K, W]](0, rows)
	return &JoinTable[K, W]{keys: t}
}

// AddAll gathers rows, whose keys and values are kept.
func (l *JoinTable[K, W]) AddAll(rows []row.Pair[K, W]) error {
	t := l.keys
	for i := range rows {
		t.Entries = append(huge.Grow(t.Entries), rows[i])
	}
	return nil
}

// indexedLeast is how many rows a worker should index at least.
const indexedLeast = 1 << 16

// Build builds the index, by several workers, each for a range of its places; a dense index where keys are
// integers and dense enough.
func (l *JoinTable[K, W]) Build(workers int) {
	t := l.keys
	n := indexFor(len(t.Entries))
	workers = max(1, min(workers, len(t.Entries)/indexedLeast))
	if l.buildNumbers(n, workers) {
		return
	}
	t.index, t.mask = huge.Make[uint64](n, n), uint64(n-1)
	if len(t.hashes) < len(t.Entries) {
		t.hashes = huge.Make[uint64](len(t.Entries), len(t.Entries))
		split(len(t.Entries), workers, func(_, lo, hi int) { row.Hashes(t.hash, t.Entries[lo:hi], t.hashes[lo:hi]) })
	}
	over := make([][]int32, workers)
	split(n, workers, func(w, lo, hi int) { over[w], _ = l.place(uint64(lo), uint64(hi)) })
	for _, rows := range over { // beyond their range
		for _, row := range rows {
			l.insert(row, uint64(n), true)
		}
	}
}

// split calls do in parallel, for each worker with its range of n.
func split(n, workers int, do func(w, lo, hi int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { do(w, w*n/workers, (w+1)*n/workers) })
	}
	wg.Wait()
}

// buildNumbers builds a dense index, if the keys are dense enough to replace a hash index of n places.
func (l *JoinTable[K, W]) buildNumbers(n, workers int) bool {
	t := l.keys
	if t.numbers == nil || len(t.Entries) == 0 {
		return false
	}
	first, last := span(t.numbers, t.Entries)
	if !fitWithin(first, last, roomFor(n)) {
		return false
	}
	room := int(last-first) + 1
	t.base, t.places = first, huge.Make[uint32](room, room)
	split(room, workers, func(_, lo, hi int) { l.placeNumbers(uint64(lo), uint64(hi)) })
	return true
}

// placeNumbers inserts the rows that belong into the places [lo, hi) of the dense index: the last row first,
// so that the first of each key is found first.
func (l *JoinTable[K, W]) placeNumbers(lo, hi uint64) {
	t := l.keys
	var some [probed]uint64
	for end := len(t.Entries); end > 0; end = max(0, end-probed) {
		from := max(0, end-probed)
		numbers := row.Hashes(t.numbers, t.Entries[from:end], some[:])
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

// place inserts the rows that belong into the places [lo, hi) of the index: the last row first, so that the
// first of each key is found first. It returns those for which the range had no free place. Places are read
// many at a time before any is taken, so that they are in the cache when their turn comes; seen is returned
// so that the compiler keeps these reads.
func (l *JoinTable[K, W]) place(lo, hi uint64) (over []int32, seen uint64) {
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

// insert puts a row at the first free place below end, or, with round, from the beginning on past the last
// one. A row whose key has a place already takes it, and is linked before the rows that were there.
func (l *JoinTable[K, W]) insert(row int32, end uint64, round bool) bool {
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
			(x>>32 != h>>32 || t.Entries[other].Key != t.Entries[row].Key &&
				!t.codec.Equal(&t.Entries[other].Key, &t.Entries[row].Key)) {
			continue
		} else if x != 0 {
			l.chain(row, other)
		}
		t.index[at] = h>>32<<32 | uint64(row+1)
		return true
	}
}

// Prepare gets the table ready for merging, or builds the index where the rows are not in the order of their
// keys' hashes with one row each.
func (l *JoinTable[K, W]) Prepare() {
	if l.merged = ascending(l.keys.hashed()); !l.merged {
		l.Build(1)
	}
}

// ascending reports whether each hash is greater than the one before it.
func ascending(hashes []uint64) bool {
	for i := 1; i < len(hashes); i++ {
		if hashes[i] <= hashes[i-1] {
			return false
		}
	}
	return true
}

// find is look, by merging as long as rows come in the order of their keys' hashes, too.
func find[K comparable, V, W any](l *JoinTable[K, W], sc *scratch, rows []row.Pair[K, V]) {
	if l.merged && mergeLookup(l, sc, rows) {
		return
	}
	if l.merged {
		l.merged = false
		l.Build(1)
	}
	look(l.keys, sc, rows, false)
}

// mergeLookup looks up a batch of keys by merging; it reports false if they do not come in the order of their
// hashes.
func mergeLookup[K comparable, V, W any](l *JoinTable[K, W], sc *scratch, rows []row.Pair[K, V]) bool {
	sc.places = slices.Grow(sc.places[:0], len(rows))[:len(rows)]
	t := l.keys
	for i := range rows {
		if l.at < len(t.Entries) && (t.Entries[l.at].Key == rows[i].Key ||
			t.codec.Equal(&t.Entries[l.at].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at)
			l.at++
			continue
		}
		if l.at > 0 && (t.Entries[l.at-1].Key == rows[i].Key || t.codec.Equal(&t.Entries[l.at-1].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at - 1)
			continue
		}
		sc.hashes = row.Hashes(t.hash, rows[i:i+1], sc.hashes)
		h := sc.hashes[0]
		if l.at > 0 && t.hashes[l.at-1] > h {
			return false
		}
		for l.at < len(t.hashes) && t.hashes[l.at] < h {
			l.at++
		}
		sc.places[i] = noPlace
		if l.at < len(t.hashes) && t.hashes[l.at] == h &&
			(t.Entries[l.at].Key == rows[i].Key || t.codec.Equal(&t.Entries[l.at].Key, &rows[i].Key)) {
			sc.places[i] = uint32(l.at)
		}
	}
	return true
}

// chain links a row before another of its key.
func (l *JoinTable[K, W]) chain(row, other int32) {
	l.chained.Do(func() { l.next = make([]int32, len(l.keys.Entries)) })
	l.next[row] = other + 1
}

// matches returns the rows of an entry's key; none for noPlace.
func (l *JoinTable[K, W]) matches(entry uint32) Matches[W] {
	if entry == noPlace {
		return Matches[W]{}
	}
	r := Matches[W]{first: &l.keys.Entries[entry].Value}
	if l.next != nil && l.next[entry] > 0 {
		r.chain, r.next = l.next[entry], l.next
		r.base, r.stride = unsafe.Pointer(&l.keys.Entries[0].Value), unsafe.Sizeof(l.keys.Entries[0])
	}
	return r
}

// Matches are the rows of one side of a join that have a key.
type Matches[W any] struct {
	values []W // or:
	first  *W
	chain  int32          // of the entry that comes then, plus one; 0 at the end
	next   []int32        // by entry
	base   unsafe.Pointer // the first entry's value; that of each next one lies stride bytes on
	stride uintptr
}

// Next returns the next row; nil at the end.
func (r *Matches[W]) Next() *W {
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
