package rdd

import (
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Pair is a key with a value: a row of a dataset that can be grouped, reduced
// or joined by key.
type Pair[K comparable, V any] = row.Pair[K, V]

// CoGrouped are the values that a key has in two datasets.
type CoGrouped[V, W any] = exec.CoGrouped[V, W]

// Combiner defines how the values of a key are combined: Create makes an accumulator of the first value, Add
// adds a value, Merge merges the accumulators of two partitions. Add and Merge may change and return their first
// argument where Create has made it; a value that came from a dataset may be read by others and must not be changed.
type Combiner[V, C any] = exec.Combiner[V, C]

// Ordered are the keys that rows can be sorted by.
type Ordered = exec.Ordered

// Malformed, as the type of a field of CSV's rows, is the text of a record that
// is malformed, and empty in all others.
type Malformed = row.Malformed

// Encode returns the encoding of a value; the same value has the same bytes.
func Encode(v any) (raw []byte, err error) { return row.Encode(v) }

// Decode reads an encoded value into *v.
func Decode(raw []byte, v any) error { return row.Decode(raw, v) }

// AppendFloats appends numbers by their bits, eight bytes each, the least
// significant first: how Encode lays out numbers, for types that have a
// MarshalBinary of their own.
func AppendFloats(out []byte, x []float64) []byte { return row.AppendFloats(out, x) }

// ParseFloats reads what AppendFloats has written, into memory of its own.
func ParseFloats(raw []byte) ([]float64, error) { return row.ParseFloats(raw) }

// ViewFloats reads what AppendFloats has written, in place where that is possible: raw
// must stay as it is for as long as the numbers are in use, and they as they are.
func ViewFloats(raw []byte) ([]float64, error) { return row.ViewFloats(raw) }
