//go:build soak

package soak

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// tags are those by which all kinds are compiled.
const tags = "-tags soak "

// kinds are all kinds of rows: keys and values of every type, and every operation with
// keys that are numbers or texts.
func kinds() []anyKind {
	return []anyKind{
		fullKind(wholes("int64", int64(-1)<<63, 1<<63-1), wholes("int", -1<<63, 1<<63-1)),
		fullKind(texts(), nesteds()),
		kindOf(floats("float64", 5e-324, true), lists(texts()), byKey[float64, []string](), ofTwo[float64, []string](),
			sorting[float64, []string]()),
		kindOf(times(), texts(), byKey[time.Time, string](), ofTwo[time.Time, string]()),
		kindOf(wholes("int8", int8(-128), 127), pointers(floats("float32", float32(1e-45), false)),
			spreading[int8, *float32](), sorting[int8, *float32]()),
		kindOf(hiddens(), halfHiddens(), byKey[hidden, halfHidden](), kept[hidden, halfHidden]()),
		kindOf(arrays(wholes("int16", int16(-32768), 32767)), lists(wholes("byte", byte(0), 255)),
			ofTwo[[2]int16, []byte]()),
		kindOf(wholes("uint32", 0, uint32(1<<32-1)), nulls(texts()), sorting[uint32, sql.Null[string]](),
			kept[uint32, sql.Null[string]]()),
		kindOf(spots(true), maps(), byKey[spot, map[string]int64]()),
		kindOf(bools(), times(), spreading[bool, time.Time](), kept[bool, time.Time]()),
		kindOf(floats("float32", float32(1e-45), true), lists(lists(wholes("int32", int32(-1)<<31, 1<<31-1))),
			byKey[float32, [][]int32](), sorting[float32, [][]int32]()),
		kindOf(wholes("uint64", 0, uint64(1<<64-1)), nothings(), byKey[uint64, nothing](), sorting[uint64, nothing]()),
		kindOf(pairsOf(texts(), floats("float64", 5e-324, true)), complexes(),
			ofTwo[rdd.Pair[string, float64], complex128]()),
		kindOf(wholes("uint16", uint16(0), 65535), bools(), narrow[uint16, bool]()),
	}
}

type nothing struct{}

// nulls are not valid now and then.
func nulls[T any](of domain[T]) domain[sql.Null[T]] {
	text := func(v sql.Null[T]) string {
		if !v.Valid {
			return "null"
		}
		return "=" + of.text(v.V)
	}
	return odd("sql.Null", text, func(n uint64) sql.Null[T] { return sql.Null[T]{V: of.of(n - 1), Valid: true} },
		sql.Null[T]{})
}

func nothings() domain[nothing] {
	return domain[nothing]{"struct{}", func(uint64) nothing { return nothing{} }, func(nothing) string { return "" }}
}

// pairsOf are keys of two parts.
func pairsOf[A comparable, B any](a domain[A], b domain[B]) domain[rdd.Pair[A, B]] {
	return domain[rdd.Pair[A, B]]{"pair", func(n uint64) rdd.Pair[A, B] {
		return rdd.Pair[A, B]{Key: a.of(n / 3), Value: b.of(n % 5)}
	},
		func(p rdd.Pair[A, B]) string { return joined([]string{a.text(p.Key), b.text(p.Value)}, texts().text) }}
}

func arrays[T any](of domain[T]) domain[[2]T] {
	return domain[[2]T]{"[2]" + of.name, func(n uint64) [2]T { return [2]T{of.of(n / 4), of.of(n % 4)} },
		func(a [2]T) string { return joined(a[:], of.text) }}
}

// maps are nil, empty, or have up to three entries.
func maps() domain[map[string]int64] {
	text := func(m map[string]int64) string {
		if m == nil {
			return "nil"
		}
		var all []string
		for k, v := range m {
			all = append(all, fmt.Sprintf("%q=%d", k, v))
		}
		slices.Sort(all)
		return fmt.Sprint(all)
	}
	return odd("map", text, func(n uint64) map[string]int64 {
		out := map[string]int64{}
		for i := range mix(n) % 4 {
			out[texts().of(both(n, i)%50)] = int64(n)
		}
		return out
	}, nil, map[string]int64{})
}

func complexes() domain[complex128] {
	part := floats("float64", math.SmallestNonzeroFloat64, false)
	return domain[complex128]{"complex128", func(n uint64) complex128 { return complex(part.of(n%9), part.of(n)) },
		func(c complex128) string { return part.text(real(c)) + " " + part.text(imag(c)) }}
}
