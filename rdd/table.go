package rdd

import (
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/volley-engine/volley/internal/kernel"
)

// table is a hash table from keys to accumulators that keeps its entries in the
// order in which their keys came. It takes rows a batch at a time: first all
// hashes, then all places, then all values, so that the machine waits for the
// memory of many rows at once and not of each in turn.
//
// Where keys are integers that lie closely enough together, the index is by their
// numbers and not by their hashes: there is nothing to compare, and less to read.
type table[K comparable, C any] struct {
	codec codec[K]
	hash  hasher
	index []uint64 // the upper half of a hash, and a number of an entry plus one; 0 is free
	mask  uint64
	denseIndex[K]
	entries []Pair[K, C]
	hashes  []uint64 // by entry, as far as they have been needed: see hashed
	text    arena
	raw     []byte
	extra   int // bytes that keys take beside their memory
	scratch scratch
	order   [2][]ranked // room for byHash
	refers  bool        // entries refer to memory beside their own
}

// scratch is room for what is known of the rows of a batch.
type scratch struct {
	hashes []uint64 // or, where they are looked up by number, numbers
	number bool
	places []uint32 // of their entries; noPlace where there is none
	words  []uint64 // of the index
}

const noPlace = ^uint32(0)

func newTable[K comparable, C any](c codec[K], hash hasher, room int) *table[K, C] {
	t := &table[K, C]{codec: c, hash: hash, denseIndex: newDenseIndex[K](),
		refers: refers(reflect.TypeFor[Pair[K, C]]())}
	t.resize(1 << bits.Len(uint(max(64, room))))
	return t
}

// refers reports whether values of a type refer to other memory.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if refers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return refers(t.Elem())
	}
	return t.Kind() != reflect.Bool && !isNumber(t.Kind())
}

// resize makes an index of n places by hash, or one by number.
func (t *table[K, C]) resize(n int) {
	if !t.renumber(n) {
		t.rehash(n)
	}
}

// rehash makes an index by hash.
func (t *table[K, C]) rehash(n int) {
	t.places = nil
	t.index, t.mask = makeHuge[uint64](n, n), uint64(n-1)
	for i, h := range t.hashed() {
		at := h & t.mask
		for t.index[at] != 0 {
			at = (at + 1) & t.mask
		}
		t.index[at] = h>>32<<32 | uint64(i+1)
	}
}

// hashOf are the hashes of the keys of some rows.
func hashOf[K comparable, V any](t hasher, rows []Pair[K, V], out []uint64) []uint64 {
	if cap(out) < len(rows) {
		out = make([]uint64, len(rows))
	}
	out = out[:len(rows)]
	if len(rows) > 0 {
		t(unsafe.Pointer(&rows[0].Key), unsafe.Sizeof(rows[0]), out)
	}
	return out
}

// hashed are the hashes of all entries.
func (t *table[K, C]) hashed() []uint64 {
	have, need := len(t.hashes), len(t.entries)
	if have == need {
		return t.hashes
	}
	if cap(t.hashes) < need {
		t.hashes = append(makeHuge[uint64](0, cap(t.entries)), t.hashes...)
	}
	t.hashes = t.hashes[:need]
	hashOf(t.hash, t.entries[have:], t.hashes[have:])
	return t.hashes
}

// hashOne is the hash of a key.
func (t *table[K, C]) hashOne(key *K) uint64 {
	t.hash(unsafe.Pointer(key), unsafe.Sizeof(*key), t.one[:])
	return t.one[0]
}

// find is the entry of a key, or -1, by its hash.
func (t *table[K, C]) find(key *K, h uint64) int {
	for at := h & t.mask; ; at = (at + 1) & t.mask {
		x := t.index[at]
		if x == 0 {
			return -1
		}
		if x>>32 == h>>32 && (t.entries[uint32(x)-1].Key == *key || t.codec.equal(&t.entries[uint32(x)-1].Key, key)) {
			return int(uint32(x)) - 1
		}
	}
}

// insert is the entry of a key, which is made if it is not there.
func (t *table[K, C]) insert(key *K, h uint64) (at int, fresh bool) {
	if t.places != nil {
		return t.insertNumber(key, t.number(key))
	}
	slot := h & t.mask
	for ; ; slot = (slot + 1) & t.mask {
		x := t.index[slot]
		if x == 0 {
			break
		}
		if x>>32 == h>>32 && (t.entries[uint32(x)-1].Key == *key || t.codec.equal(&t.entries[uint32(x)-1].Key, key)) {
			return int(uint32(x)) - 1, false
		}
	}
	at = t.enter(key)
	t.hashes = append(growHuge(t.hashes), h)
	t.index[slot] = h>>32<<32 | uint64(at+1)
	if 2*len(t.entries) > len(t.index) {
		t.resize(2 * len(t.index))
	}
	return at, true
}

// enter makes an entry.
func (t *table[K, C]) enter(key *K) (at int) {
	t.entries = append(growHuge(t.entries), Pair[K, C]{Key: t.own(key)})
	return len(t.entries) - 1
}

// own is a key that refers to no memory but the table's.
func (t *table[K, C]) own(key *K) K {
	if t.codec.flat > 0 {
		return *key
	}
	t.raw = t.codec.append(t.raw[:0], key)
	t.extra += len(t.raw)
	var k K
	if _, err := t.codec.parse(t.raw, &k, &t.text); err != nil {
		return *key // what was written a moment ago can be read
	}
	return k
}

// content is about how many bytes the entries and their index need: the same for the
// same keys, whatever memory the table has.
func (t *table[K, C]) content() int {
	var p Pair[K, C]
	return len(t.entries)*(int(unsafe.Sizeof(p))+8) + 8*indexFor(len(t.entries)) + t.extra
}

// pooledMost is how much memory a table may have to be kept for another task.
const pooledMost = 96 << 20

// pooled reports whether a table is worth keeping: one that has become large would take
// memory that tasks after it do not need.
func (t *table[K, C]) pooled() bool {
	var p Pair[K, C]
	return 8*len(t.index)+4*len(t.places)+cap(t.entries)*int(unsafe.Sizeof(p))+8*cap(t.hashes)+
		2*16*cap(t.order[0]) <= pooledMost
}

// clear forgets all entries.
func (t *table[K, C]) clear() {
	clear(t.index)
	clear(t.places)
	if t.refers {
		clear(t.entries)
	}
	t.entries, t.hashes, t.text, t.extra = t.entries[:0], t.hashes[:0], arena{}, 0
}

// look finds the places of a batch of keys. Where first is set it may say that a
// key is not there that is: it does not look beyond the first two places, of which
// the second mostly comes with the first.
func look[K comparable, V, C any](t *table[K, C], sc *scratch, rows []Pair[K, V], first bool) {
	sc.number = t.places != nil
	if sc.number {
		sc.hashes = hashOf(t.numbers, rows, sc.hashes)
	} else {
		sc.hashes = hashOf(t.hash, rows, sc.hashes)
	}
	sc.places = slices.Grow(sc.places[:0], len(rows))[:len(rows)]
	if sc.number {
		t.at(sc.hashes, sc.places)
		kernel.PrefetchAt(t.entries, sc.places) // nothing has looked at them
		return
	}
	sc.words = slices.Grow(sc.words[:0], len(rows))[:len(rows)]
	places, words, hashes := sc.places, sc.words, sc.hashes[:len(rows)]
	for i, h := range hashes {
		words[i] = t.index[h&t.mask]
	}
	entries := t.entries
	for i, x := range words {
		places[i] = noPlace
		if at := uint32(x) - 1; x>>32 == hashes[i]>>32 && int(at) < len(entries) &&
			(entries[at].Key == rows[i].Key || t.codec.equal(&entries[at].Key, &rows[i].Key)) {
			places[i] = at
			continue
		}
		if x == 0 {
			continue
		}
		x = t.index[(hashes[i]+1)&t.mask]
		if at := uint32(x) - 1; x>>32 == hashes[i]>>32 && int(at) < len(entries) &&
			(entries[at].Key == rows[i].Key || t.codec.equal(&entries[at].Key, &rows[i].Key)) {
			places[i] = at
		} else if !first && x != 0 {
			places[i] = uint32(t.find(&rows[i].Key, hashes[i]))
		}
	}
}

// combineInto takes a batch of rows into a table.
func combineInto[K comparable, V, C any](t *table[K, C], rows []Pair[K, V], create func(V) C, add func(C, V) C) {
	look(t, &t.scratch, rows, true)
	places := t.scratch.places
	for i, at := range places {
		if at != noPlace {
			continue
		}
		at, fresh := t.insertFound(&rows[i].Key, t.scratch.hashes[i])
		if places[i] = uint32(at); fresh {
			t.entries[at].Value = create(rows[i].Value)
			places[i] = noPlace
		}
	}
	for i, at := range places {
		if at != noPlace {
			e := &t.entries[at]
			e.Value = add(e.Value, rows[i].Value)
		}
	}
}

// insertFound is insert by what look has found out about a key: its hash, or its
// number, of which the index may have become one by the other since.
func (t *table[K, C]) insertFound(key *K, x uint64) (at int, fresh bool) {
	switch {
	case !t.scratch.number:
		return t.insert(key, x)
	case t.places != nil:
		return t.insertNumber(key, x)
	}
	return t.insert(key, t.hashOne(key))
}
