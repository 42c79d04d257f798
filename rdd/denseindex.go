package rdd

import (
	"math"
	"math/bits"
	"reflect"
	"unsafe"
)

// denseIndex is an index of a table by the numbers that its keys are.
type denseIndex[K comparable] struct {
	numbers hasher   // what key is what number, in their order; nil where keys are no integers
	base    uint64   // the number that the first place is for
	places  []uint32 // by number: that of an entry plus one; 0 is free; nil where the index is by hash
	one     [1]uint64
}

func newDenseIndex[K comparable]() denseIndex[K] { return denseIndex[K]{numbers: numbersOf[K]()} }

// numbersOf numbers keys in their order.
func numbersOf[K comparable]() hasher {
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

// numbers64 numbers 64 bits; flip is the bit that signs them.
func numbers64(flip uint64) hasher {
	return func(first unsafe.Pointer, stride uintptr, out []uint64) {
		for i := range out {
			out[i] = *(*uint64)(unsafe.Add(first, uintptr(i)*stride)) ^ flip
		}
	}
}

// number is that of a key.
func (b *denseIndex[K]) number(key *K) uint64 {
	b.numbers(unsafe.Pointer(key), unsafe.Sizeof(*key), b.one[:])
	return b.one[0]
}

// at finds the entries that numbers belong to; noPlace where there is none.
func (b *denseIndex[K]) at(numbers []uint64, entries []uint32) {
	places, entries := b.places, entries[:len(numbers)]
	for i, x := range numbers {
		entries[i] = noPlace
		if x -= b.base; x < uint64(len(places)) {
			entries[i] = places[x] - 1
		}
	}
}

// roomFor is how many places of four bytes an index by number may have where one by
// hash has n of eight: as many as take the same memory, or, where that is
// little, twice.
func roomFor(n int) int {
	if n <= 1<<19 {
		return 4 * n
	}
	return 2 * n
}

// indexFor is how many places an index by hash has for n entries.
func indexFor(entries int) int { return 1 << bits.Len(uint(max(32, 2*entries))) }

// span is the first and the last number of some rows.
func span[K comparable, C any](numbers hasher, rows []Pair[K, C]) (first, last uint64) {
	first, last = math.MaxUint64, 0
	var some [256]uint64
	for ; len(rows) > 0; rows = rows[min(len(some), len(rows)):] {
		for _, x := range hashOf(numbers, rows[:min(len(some), len(rows))], some[:]) {
			first, last = min(first, x), max(last, x)
		}
	}
	return first, last
}

// dense reports whether the numbers that are there lie closely enough for an index by
// number, and sees to it that there is one.
func (t *table[K, C]) dense() bool {
	if n := indexFor(len(t.entries)); t.places == nil {
		return t.renumber(n)
	} else {
		first, last := span(t.numbers, t.entries)
		return lieWithin(first, last, roomFor(n))
	}
}

// renumber makes the index one by number, where the numbers that are there lie closely
// enough for what takes n places by hash.
func (t *table[K, C]) renumber(n int) bool {
	if t.numbers == nil || len(t.entries) == 0 {
		return false
	}
	first, last := span(t.numbers, t.entries)
	return t.cover(first, last, roomFor(n))
}

// lieWithin reports whether n places are enough for numbers from first to last, and a quarter
// for others, lest places are made again all the time.
func lieWithin(first, last uint64, n int) bool { return last-first < uint64(n/4*3) }

// cover makes n places, if that is enough, for numbers from first to last and for
// others around them.
func (t *table[K, C]) cover(first, last uint64, n int) bool {
	if !lieWithin(first, last, n) {
		return false
	}
	around := uint64(n) - 1 - (last - first)
	t.base = first - min(around/2, first)
	t.index, t.places = nil, makeHuge[uint32](n, n)
	for i := range t.entries {
		t.places[t.number(&t.entries[i].Key)-t.base] = uint32(i + 1)
	}
	return true
}

// insertNumber is insert by the number of a key. Where there is no place for it, and
// the numbers do not lie closely enough for more, the index becomes one by hash.
func (t *table[K, C]) insertNumber(key *K, x uint64) (at int, fresh bool) {
	if x-t.base >= uint64(len(t.places)) && !t.extend(x) {
		t.rehash(indexFor(len(t.entries)))
		return t.insert(key, t.hashOne(key))
	}
	place := &t.places[x-t.base]
	if *place != 0 {
		return int(*place) - 1, false
	}
	at = len(t.entries)
	t.entries = append(growHuge(t.entries), Pair[K, C]{Key: *key}) // an integer refers to nothing
	*place = uint32(at + 1)
	return at, true
}

// extend makes places for a number, too.
func (t *table[K, C]) extend(x uint64) bool {
	first, last := span(t.numbers, t.entries)
	return t.cover(min(first, x), max(last, x), roomFor(indexFor(len(t.entries))))
}
