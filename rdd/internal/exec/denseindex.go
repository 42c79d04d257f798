package exec

import (
	"math"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/volley-engine/volley/internal/huge"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// denseIndex is an index by the keys themselves, where they are integers: place i is for the key base+i.
type denseIndex[K comparable] struct {
	numbers row.Hasher // what key is what number, in their order; nil where keys are no integers
	base    uint64     // the number that the first place is for
	places  []uint32   // by number: that of an entry plus one; 0 is free; nil where the index is by hash
	one     [1]uint64
}

func newDenseIndex[K comparable]() denseIndex[K] { return denseIndex[K]{numbers: numbersOf[K]()} }

// numbersOf returns the function that maps integer keys to numbers in the same order; nil for other keys.
func numbersOf[K comparable]() row.Hasher {
	switch reflect.TypeFor[K]().Kind() {
	case reflect.Int, reflect.Int64:
		return numbers64(1 << 63)
	case reflect.Uint, reflect.Uint64:
		return numbers64(0)
	case reflect.Int32:
		return func(first unsafe.Pointer, stride uintptr, out []uint64) {
			for i := range out {
				out[i] = uint64(*(*int32)(unsafe.Add(first, uintptr(i)*stride))) ^ 1<<63
			}
		}
	case reflect.Uint32:
		return func(first unsafe.Pointer, stride uintptr, out []uint64) {
			for i := range out {
				out[i] = uint64(*(*uint32)(unsafe.Add(first, uintptr(i)*stride)))
			}
		}
	}
	return nil
}

// numbers64 maps keys of 64 bits to numbers; flip is the sign bit.
func numbers64(flip uint64) row.Hasher {
	return func(first unsafe.Pointer, stride uintptr, out []uint64) {
		for i := range out {
			out[i] = *(*uint64)(unsafe.Add(first, uintptr(i)*stride)) ^ flip
		}
	}
}

// number returns the number of a key.
func (b *denseIndex[K]) number(key *K) uint64 {
	b.numbers(unsafe.Pointer(key), unsafe.Sizeof(*key), b.one[:])
	return b.one[0]
}

// at looks up the entries of numbers; noPlace where there is none.
func (b *denseIndex[K]) at(numbers []uint64, entries []uint32) {
	places, entries := b.places, entries[:len(numbers)]
	for i, x := range numbers {
		entries[i] = noPlace
		if x -= b.base; x < uint64(len(places)) {
			entries[i] = places[x] - 1
		}
	}
}

// roomFor returns how many places of four bytes a dense index may have where a hash index has n of eight: as
// many as take the same memory, or, where that is little, twice that.
func roomFor(n int) int {
	if n <= 1<<19 {
		return 4 * n
	}
	return 2 * n
}

// indexFor returns how many places a hash index has for a number of entries.
func indexFor(entries int) int { return 1 << bits.Len(uint(max(32, 2*entries))) }

// span returns the least and the greatest number of the keys of rows.
func span[K comparable, C any](numbers row.Hasher, rows []row.Pair[K, C]) (first, last uint64) {
	first, last = math.MaxUint64, 0
	var some [256]uint64
	for ; len(rows) > 0; rows = rows[min(len(some), len(rows)):] {
		for _, x := range row.Hashes(numbers, rows[:min(len(some), len(rows))], some[:]) {
			first, last = min(first, x), max(last, x)
		}
	}
	return first, last
}

// dense reports whether the keys are dense enough for a dense index, and builds one if there is none.
func (t *Table[K, C]) dense() bool {
	if n := indexFor(len(t.Entries)); t.places == nil {
		return t.reindexDense(n)
	} else {
		first, last := span(t.numbers, t.Entries)
		return fitWithin(first, last, roomFor(n))
	}
}

// reindexDense builds a dense index, if the keys are dense enough to replace a hash index of n places.
func (t *Table[K, C]) reindexDense(n int) bool {
	if t.numbers == nil || len(t.Entries) == 0 {
		return false
	}
	first, last := span(t.numbers, t.Entries)
	return t.cover(first, last, roomFor(n))
}

// fitWithin reports whether numbers from first to last take at most three quarters of n places: the rest is
// for later keys, so that the index is not rebuilt all the time.
func fitWithin(first, last uint64, n int) bool { return last-first < uint64(n/4*3) }

// cover builds a dense index of n places around the numbers from first to last, if they fit.
func (t *Table[K, C]) cover(first, last uint64, n int) bool {
	if !fitWithin(first, last, n) {
		return false
	}
	around := uint64(n) - 1 - (last - first)
	t.base = first - min(around/2, first)
	t.index, t.places = nil, huge.Make[uint32](n, n)
	for i := range t.Entries {
		t.places[t.number(&t.Entries[i].Key)-t.base] = uint32(i + 1)
	}
	return true
}

// insertNumber inserts a key by its number. A key outside the dense index extends it, or, where keys are
// not dense enough for that, replaces it by a hash index.
func (t *Table[K, C]) insertNumber(key *K, x uint64) (at int, fresh bool) {
	if x-t.base >= uint64(len(t.places)) && !t.extend(x) {
		t.rehash(indexFor(len(t.Entries)))
		return t.insert(key, t.hashOne(key))
	}
	place := &t.places[x-t.base]
	if *place != 0 {
		return int(*place) - 1, false
	}
	at = len(t.Entries)
	t.Entries = append(huge.Grow(t.Entries), row.Pair[K, C]{Key: *key}) // an integer refers to nothing
	*place = uint32(at + 1)
	return at, true
}

// extend rebuilds the dense index to include a number, if it fits.
func (t *Table[K, C]) extend(x uint64) bool {
	first, last := span(t.numbers, t.Entries)
	return t.cover(min(first, x), max(last, x), roomFor(indexFor(len(t.Entries))))
}
