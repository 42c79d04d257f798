package row

import (
	"math"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Hasher computes the hashes of the keys of len(out) rows: the first key is at first, each next one stride
// bytes on. Hashes are the same on every machine, since they decide which partition a key belongs to.
type Hasher func(first unsafe.Pointer, stride uintptr, out []uint64)

// HasherOf returns the hasher of keys with the given codec.
func HasherOf[K comparable](c Codec[K]) Hasher {
	switch reflect.TypeFor[K]().Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return hashNumbers
	case reflect.Int32, reflect.Uint32:
		return hashEach(func(p *uint32) uint64 { return Mix(uint64(*p)) })
	case reflect.Int16, reflect.Uint16:
		return hashEach(func(p *uint16) uint64 { return Mix(uint64(*p)) })
	case reflect.Int8, reflect.Uint8, reflect.Bool:
		return hashEach(func(p *uint8) uint64 { return Mix(uint64(*p)) })
	case reflect.Float64:
		return hashEach(func(p *float64) uint64 { return Mix(math.Float64bits(canonical(*p))) })
	case reflect.Float32:
		return hashEach(func(p *float32) uint64 { return Mix(math.Float64bits(canonical(float64(*p)))) })
	case reflect.String:
		return hashEach(func(p *string) uint64 { return hashText(*p) })
	}
	return func(first unsafe.Pointer, stride uintptr, out []uint64) {
		var raw []byte
		for i := range out {
			raw = c.Append(raw[:0], (*K)(unsafe.Add(first, uintptr(i)*stride)))
			out[i] = xxhash.Sum64(raw)
		}
	}
}

// hashNumbers is hashEach of what keys mostly are, without a call for each.
func hashNumbers(first unsafe.Pointer, stride uintptr, out []uint64) {
	for i := range out {
		out[i] = Mix(*(*uint64)(unsafe.Add(first, uintptr(i)*stride)))
	}
}

func hashEach[N any](hash func(*N) uint64) Hasher {
	return func(first unsafe.Pointer, stride uintptr, out []uint64) {
		for i := range out {
			out[i] = hash((*N)(unsafe.Add(first, uintptr(i)*stride)))
		}
	}
}

// Mix spreads each bit of a number over all of them.
func Mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, 0xd1b54a32d192ed03)
	hi, lo = bits.Mul64(hi^lo^x, 0xa0761d6478bd642f)
	return hi ^ lo
}

// hashText hashes long texts by xxHash, and others by two multiplications:
// most words and names.
func hashText(s string) uint64 {
	n := len(s)
	if n > 16 {
		return xxhash.Sum64String(s)
	}
	var a, b uint64
	p := unsafe.Pointer(unsafe.StringData(s))
	switch {
	case n >= 8:
		a, b = load64(p, 0), load64(p, uintptr(n-8))
	case n >= 4:
		a, b = load32(p, 0), load32(p, uintptr(n-4))
	case n > 0:
		a = uint64(s[0])<<16 | uint64(s[n/2])<<8 | uint64(s[n-1])
	}
	return Mix(Mix(a^uint64(n)<<56) ^ b)
}

// load64 and load32 read numbers that may lie anywhere, the least significant
// byte first.
func load64(p unsafe.Pointer, at uintptr) uint64 {
	b := (*[8]byte)(unsafe.Add(p, at))
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func load32(p unsafe.Pointer, at uintptr) uint64 {
	b := (*[4]byte)(unsafe.Add(p, at))
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
}

// Partition returns which of n partitions a hash belongs to: each has an equal range of hashes.
func Partition(hash uint64, n int) int { return int((hash >> 32 * uint64(n)) >> 32) }

// Hashes returns the hashes of the keys of rows, in the memory of out if they fit.
func Hashes[K comparable, V any](t Hasher, rows []Pair[K, V], out []uint64) []uint64 {
	if cap(out) < len(rows) {
		out = make([]uint64, len(rows))
	}
	out = out[:len(rows)]
	if len(rows) > 0 {
		t(unsafe.Pointer(&rows[0].Key), unsafe.Sizeof(rows[0]), out)
	}
	return out
}
