package exec

import (
	"cmp"
	"math"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Ordered are the keys that rows can be sorted by.
type Ordered interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~string | ~bool | time.Time
}

// KeyOrder is the order of keys: NaN comes first, as in cmp.Compare; −0 is 0; false comes before true.
type KeyOrder[K any] struct {
	codec row.Codec[K]
	// rank is in the order of the keys; compare decides between keys of one rank,
	// and is nil where those are equal.
	rank    func(K) uint64
	compare func(a, b K) int
	Text    func(K) string // of keys that are texts
	down    bool           // the order is turned round
}

// KeyOrderOf returns the order of keys, ascending or descending.
func KeyOrderOf[K Ordered](descending bool) KeyOrder[K] {
	c, _ := row.CodecOf[K]() // all keys that can be ordered can be encoded
	o := KeyOrder[K]{codec: c, rank: rankOf[K]()}
	switch t := reflect.TypeFor[K](); {
	case t.Kind() == reflect.String:
		o.Text = func(k K) string { return *(*string)(unsafe.Pointer(&k)) }
		o.compare = func(a, b K) int { return strings.Compare(o.Text(a), o.Text(b)) }
	case t == reflect.TypeFor[time.Time]():
		o.compare = func(a, b K) int {
			return (*(*time.Time)(unsafe.Pointer(&a))).Compare(*(*time.Time)(unsafe.Pointer(&b)))
		}
	}
	if o.down = descending; !descending {
		return o
	}
	rank, compare := o.rank, o.compare
	o.rank = func(k K) uint64 { return ^rank(k) }
	if compare != nil {
		o.compare = func(a, b K) int { return compare(b, a) }
	}
	return o
}

// Cmp compares two keys: below 0 if a comes first.
func (o KeyOrder[K]) Cmp(a, b K) int {
	if c := cmp.Compare(o.rank(a), o.rank(b)); c != 0 || o.compare == nil {
		return c
	}
	return o.compare(a, b)
}

// Encode returns the encoding of a key.
func (o KeyOrder[K]) Encode(k K) []byte { return o.codec.Append(nil, &k) }

// Decode returns the key of an encoding.
func (o KeyOrder[K]) Decode(raw []byte) (k K, err error) {
	if _, err = o.codec.Parse(raw, &k, &row.Arena{}); err != nil {
		err = fault.New(fault.Corrupt, "read", "a key", err)
	}
	return k, err
}

// rankOf returns the function that maps keys to numbers in the same order; of strings, by their first eight
// bytes, and of times by their seconds.
func rankOf[K Ordered]() func(K) uint64 {
	const sign = 1 << 63
	switch reflect.TypeFor[K]().Kind() {
	case reflect.Int, reflect.Int64:
		return func(k K) uint64 { return *(*uint64)(unsafe.Pointer(&k)) ^ sign }
	case reflect.Int32:
		return func(k K) uint64 { return uint64(int64(*(*int32)(unsafe.Pointer(&k)))) ^ sign }
	case reflect.Int16:
		return func(k K) uint64 { return uint64(int64(*(*int16)(unsafe.Pointer(&k)))) ^ sign }
	case reflect.Int8:
		return func(k K) uint64 { return uint64(int64(*(*int8)(unsafe.Pointer(&k)))) ^ sign }
	case reflect.Uint, reflect.Uint64:
		return func(k K) uint64 { return *(*uint64)(unsafe.Pointer(&k)) }
	case reflect.Uint32:
		return func(k K) uint64 { return uint64(*(*uint32)(unsafe.Pointer(&k))) }
	case reflect.Uint16:
		return func(k K) uint64 { return uint64(*(*uint16)(unsafe.Pointer(&k))) }
	case reflect.Uint8:
		return func(k K) uint64 { return uint64(*(*uint8)(unsafe.Pointer(&k))) }
	case reflect.Bool:
		return func(k K) uint64 { return uint64(*(*uint8)(unsafe.Pointer(&k))) }
	case reflect.Struct:
		return func(k K) uint64 { return uint64((*(*time.Time)(unsafe.Pointer(&k))).Unix()) ^ sign }
	case reflect.Float32:
		return func(k K) uint64 { return floatRank(float64(*(*float32)(unsafe.Pointer(&k)))) }
	case reflect.Float64:
		return func(k K) uint64 { return floatRank(*(*float64)(unsafe.Pointer(&k))) }
	}
	return func(k K) uint64 { return textRank(*(*string)(unsafe.Pointer(&k))) }
}

// textRank returns the first eight bytes of a string as a number, the first one the most significant.
func textRank(s string) (r uint64) {
	if len(s) >= 8 {
		s = s[:8]
		return uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
			uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7])
	}
	for i := range len(s) {
		r |= uint64(s[i]) << (56 - 8*i)
	}
	return r
}

// floatRank orders floats by their bits.
func floatRank(f float64) uint64 {
	if math.IsNaN(f) {
		return 0
	}
	b := math.Float64bits(f + 0) // −0 becomes 0
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}
