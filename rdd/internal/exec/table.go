package exec

import (
	"cmp"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Table is a hash table from keys to accumulators that keeps its entries in the order in which their keys
// came. It takes rows a batch at a time: first it computes all hashes, then looks up all entries, then
// updates all values, so that the memory accesses of many rows overlap.
//
// Where keys are integers and dense enough, the index is by the keys themselves and not by their hashes:
// there is nothing to compare, and less to read.
type Table[K comparable, C any] struct {
	codec row.Codec[K]
	hash  row.Hasher
	index []uint64 // the upper half of a hash, and a number of an entry plus one; 0 is free
	mask  uint64
	denseIndex[K]
	Entries []row.Pair[K, C]
	hashes  []uint64 // by entry, as far as they have been needed: see hashed
	text    row.Arena
	raw     []byte
	extra   int // bytes that keys take beside their memory
	scratch scratch
	order   [2][]Ranked // room for byHash
	texts   bool        // keys are strings
	refers  bool        // entries refer to memory beside their own
}

// scratch is memory for what is looked up of a batch.
type scratch struct {
	hashes []uint64 // or, where they are looked up by number, numbers
	number bool
	places []uint32 // of their entries; noPlace where there is none
	words  []uint64 // of the index
}

const noPlace = ^uint32(0)

func newTable[K comparable, C any](c row.Codec[K], hash row.Hasher, room int) *Table[K, C] {
	t := &Table[K, C]{codec: c, hash: hash, denseIndex: newDenseIndex[K](),
		refers: row.Refers(reflect.TypeFor[row.Pair[K, C]]()), texts: reflect.TypeFor[K]().Kind() == reflect.String}
	t.resize(1 << bits.Len(uint(max(64, room))))
	return t
}

// resize rebuilds the index: a dense one if the keys allow it, else a hash index of n places.
func (t *Table[K, C]) resize(n int) {
	if !t.reindexDense(n) {
		t.rehash(n)
	}
}

// rehash rebuilds the hash index.
func (t *Table[K, C]) rehash(n int) {
	t.places = nil
	t.index, t.mask = huge.Make[uint64](n, n), uint64(n-1)
	for i, h := range t.hashed() {
		at := h & t.mask
		for t.index[at] != 0 {
			at = (at + 1) & t.mask
		}
		t.index[at] = h>>32<<32 | uint64(i+1)
	}
}

// hashed returns the hashes of all entries.
func (t *Table[K, C]) hashed() []uint64 {
	have, need := len(t.hashes), len(t.Entries)
	if have == need {
		return t.hashes
	}
	if cap(t.hashes) < need {
		t.hashes = append(huge.Make[uint64](0, cap(t.Entries)), t.hashes...)
	}
	t.hashes = t.hashes[:need]
	row.Hashes(t.hash, t.Entries[have:], t.hashes[have:])
	return t.hashes
}

// hashOne returns the hash of a key.
func (t *Table[K, C]) hashOne(key *K) uint64 {
	t.hash(unsafe.Pointer(key), unsafe.Sizeof(*key), t.one[:])
	return t.one[0]
}

// find returns the entry of a key with the given hash, or -1.
func (t *Table[K, C]) find(key *K, h uint64) int {
	for at := h & t.mask; ; at = (at + 1) & t.mask {
		x := t.index[at]
		if x == 0 {
			return -1
		}
		if x>>32 == h>>32 && (t.Entries[uint32(x)-1].Key == *key || t.codec.Equal(&t.Entries[uint32(x)-1].Key, key)) {
			return int(uint32(x)) - 1
		}
	}
}

// insert returns the entry of a key, made if there is none.
func (t *Table[K, C]) insert(key *K, h uint64) (at int, fresh bool) {
	if t.places != nil {
		return t.insertNumber(key, t.number(key))
	}
	slot := h & t.mask
	for ; ; slot = (slot + 1) & t.mask {
		x := t.index[slot]
		if x == 0 {
			break
		}
		if x>>32 == h>>32 && (t.Entries[uint32(x)-1].Key == *key || t.codec.Equal(&t.Entries[uint32(x)-1].Key, key)) {
			return int(uint32(x)) - 1, false
		}
	}
	at = t.enter(key)
	t.hashes = append(huge.Grow(t.hashes), h)
	t.index[slot] = h>>32<<32 | uint64(at+1)
	if 2*len(t.Entries) > len(t.index) {
		t.resize(2 * len(t.index))
	}
	return at, true
}

// enter appends an entry.
func (t *Table[K, C]) enter(key *K) (at int) {
	t.Entries = append(huge.Grow(t.Entries), row.Pair[K, C]{Key: t.own(key)})
	return len(t.Entries) - 1
}

// own returns a copy of a key that refers to no memory but the table's.
func (t *Table[K, C]) own(key *K) K {
	if t.codec.Flat > 0 {
		return *key
	}
	if t.texts {
		s := *(*string)(unsafe.Pointer(key))
		t.extra += row.TextSize(len(s))
		s = t.text.Text(unsafe.Slice(unsafe.StringData(s), len(s)))
		return *(*K)(unsafe.Pointer(&s))
	}
	t.raw = t.codec.Append(t.raw[:0], key)
	t.extra += len(t.raw)
	var k K
	if _, err := t.codec.Parse(t.raw, &k, &t.text); err != nil {
		return *key // what was written a moment ago can be read
	}
	return k
}

// Content estimates how many bytes the entries and their index need: the same for the same keys, whatever
// memory the table has allocated.
func (t *Table[K, C]) Content() int {
	var p row.Pair[K, C]
	return len(t.Entries)*(int(unsafe.Sizeof(p))+8) + 8*indexFor(len(t.Entries)) + t.extra
}

// pooledMost is how much memory a table that is kept for another task may have.
const pooledMost = 96 << 20

// pooled reports whether a table is small enough to be kept for another task.
func (t *Table[K, C]) pooled() bool {
	var p row.Pair[K, C]
	return 8*len(t.index)+4*len(t.places)+cap(t.Entries)*int(unsafe.Sizeof(p))+8*cap(t.hashes)+
		2*16*cap(t.order[0]) <= pooledMost
}

// Clear removes all entries and keeps the memory.
func (t *Table[K, C]) Clear() {
	clear(t.index)
	clear(t.places)
	if t.refers {
		clear(t.Entries)
	}
	t.Entries, t.hashes, t.text, t.extra = t.Entries[:0], t.hashes[:0], row.Arena{}, 0
}

// look looks up the entries of a batch of keys. With first set it may miss an entry: it looks at the first
// two places only, of which the second mostly is on the same cache line.
func look[K comparable, V, C any](t *Table[K, C], sc *scratch, rows []row.Pair[K, V], first bool) {
	sc.number = t.places != nil
	if sc.number {
		sc.hashes = row.Hashes(t.numbers, rows, sc.hashes)
	} else {
		sc.hashes = row.Hashes(t.hash, rows, sc.hashes)
	}
	sc.places = slices.Grow(sc.places[:0], len(rows))[:len(rows)]
	if sc.number {
		t.at(sc.hashes, sc.places)
		kernel.PrefetchAt(t.Entries, sc.places) // nothing has looked at them
		return
	}
	sc.words = slices.Grow(sc.words[:0], len(rows))[:len(rows)]
	places, words, hashes := sc.places, sc.words, sc.hashes[:len(rows)]
	for i, h := range hashes {
		words[i] = t.index[h&t.mask]
	}
	entries := t.Entries
	for i, x := range words {
		places[i] = noPlace
		if at := uint32(x) - 1; x>>32 == hashes[i]>>32 && int(at) < len(entries) &&
			(entries[at].Key == rows[i].Key || t.codec.Equal(&entries[at].Key, &rows[i].Key)) {
			places[i] = at
			continue
		}
		if x == 0 {
			continue
		}
		x = t.index[(hashes[i]+1)&t.mask]
		if at := uint32(x) - 1; x>>32 == hashes[i]>>32 && int(at) < len(entries) &&
			(entries[at].Key == rows[i].Key || t.codec.Equal(&entries[at].Key, &rows[i].Key)) {
			places[i] = at
		} else if !first && x != 0 {
			places[i] = uint32(t.find(&rows[i].Key, hashes[i]))
		}
	}
}

// CombineInto combines a batch of rows into a table.
func CombineInto[K comparable, V, C any](t *Table[K, C], rows []row.Pair[K, V], create func(V) C, add func(C, V) C) {
	look(t, &t.scratch, rows, true)
	places := t.scratch.places
	for i, at := range places {
		if at != noPlace {
			continue
		}
		at, fresh := t.insertFound(&rows[i].Key, t.scratch.hashes[i])
		if places[i] = uint32(at); fresh {
			t.Entries[at].Value = create(rows[i].Value)
			places[i] = noPlace
		}
	}
	for i, at := range places {
		if at != noPlace {
			e := &t.Entries[at]
			e.Value = add(e.Value, rows[i].Value)
		}
	}
}

// insertFound inserts a key by what look has computed of it: its hash or its number. The index may have
// changed from one to the other since.
func (t *Table[K, C]) insertFound(key *K, x uint64) (at int, fresh bool) {
	switch {
	case !t.scratch.number:
		return t.insert(key, x)
	case t.places != nil:
		return t.insertNumber(key, x)
	}
	return t.insert(key, t.hashOne(key))
}

// byHash returns the entries in the order of their hashes, valid until the next call.
func (t *Table[K, C]) byHash() []Ranked {
	if cap(t.order[0]) < len(t.Entries) {
		t.order[0], t.order[1] = make([]Ranked, cap(t.Entries)), make([]Ranked, cap(t.Entries))
	}
	order := t.order[0][:len(t.Entries)]
	for i, h := range t.hashed() {
		order[i] = Ranked{h, uint32(i)}
	}
	order = sortRankedIn(order, t.order[1][:len(order)])
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && order[to].Rank == order[from].Rank {
			to++
		}
		if to > from+1 {
			slices.SortStableFunc(order[from:to], func(a, b Ranked) int {
				return cmp.Compare(string(t.codec.Append(nil, &t.Entries[a.row].Key)),
					string(t.codec.Append(nil, &t.Entries[b.row].Key)))
			})
		}
		from = to
	}
	return order
}
