package rdd

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// Ordered are the keys that rows can be sorted by.
type Ordered interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~string
}

// keyWriter writes the keys of rows so that the order of the bytes is that of
// the keys, or the reverse. NaN comes first, as in cmp.Compare; −0 is 0.
func keyWriter[T any, K Ordered](f func(T) K, descending bool) func(out []byte, row T) []byte {
	number, text := bitsOf[K](), textOf[K]()
	switch {
	case text == nil && descending:
		return func(out []byte, row T) []byte { return binary.BigEndian.AppendUint64(out, ^number(f(row))) }
	case text == nil:
		return func(out []byte, row T) []byte { return binary.BigEndian.AppendUint64(out, number(f(row))) }
	case descending:
		return func(out []byte, row T) []byte { return appendReversed(out, text(f(row))) }
	}
	return func(out []byte, row T) []byte { return append(out, text(f(row))...) }
}

// textOf reads keys that are strings; nil for others.
func textOf[K Ordered]() func(K) string {
	var zero K
	if reflect.TypeOf(zero).Kind() != reflect.String {
		return nil
	}
	if _, ok := any(zero).(string); ok {
		return func(k K) string { return any(k).(string) }
	}
	return func(k K) string { return reflect.ValueOf(k).String() }
}

// bitsOf maps numbers to unsigned ones in the same order.
func bitsOf[K Ordered]() func(K) uint64 {
	var zero K
	switch any(zero).(type) {
	case int:
		return func(k K) uint64 { return uint64(any(k).(int)) ^ 1<<63 }
	case int64:
		return func(k K) uint64 { return uint64(any(k).(int64)) ^ 1<<63 }
	case float64:
		return func(k K) uint64 { return floatBits(any(k).(float64)) }
	}
	return func(k K) uint64 {
		switch v := reflect.ValueOf(k); {
		case v.CanInt():
			return uint64(v.Int()) ^ 1<<63
		case v.CanUint():
			return v.Uint()
		default:
			return floatBits(v.Float())
		}
	}
}

// floatBits orders floats by their bits.
func floatBits(f float64) uint64 {
	if math.IsNaN(f) {
		return 0
	}
	b := math.Float64bits(f + 0) // −0 becomes 0
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

// appendReversed writes a string so that what is greater comes first: zero
// bytes are escaped and the end is marked, so that no string is the beginning
// of another, and every bit is turned.
func appendReversed(out []byte, s string) []byte {
	for i := range len(s) {
		if out = append(out, ^s[i]); s[i] == 0 {
			out = append(out, 0) // ^0xFF
		}
	}
	return append(out, ^byte(0), ^byte(1))
}

// SortOption is an option of a sort.
type SortOption func(*sortOptions)

type sortOptions struct {
	descending bool
	partitions int
}

// Descending turns the order of a sort round.
func Descending() SortOption { return func(o *sortOptions) { o.descending = true } }

// SortPartitions sets the number of partitions of a sort's result; 16 without
// it.
func SortPartitions(n int) SortOption { return func(o *sortOptions) { o.partitions = n } }

func sortOptionsOf(options []SortOption) sortOptions {
	var o sortOptions
	for _, set := range options {
		set(&o)
	}
	return o
}

func (o sortOptions) String() string {
	return fmt.Sprintf("descending %v, %d partitions", o.descending, o.partitions)
}
