package soak

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// domain is a type of values as the pipelines have them: each is made of a number, and
// has a text, the same for values that are the same. Those made of the first few
// numbers are the odd ones.
type domain[T any] struct {
	name string
	of   func(uint64) T
	text func(T) string
}

// odd is a domain whose first values are given.
func odd[T any](name string, text func(T) string, of func(uint64) T, first ...T) domain[T] {
	return domain[T]{name, func(n uint64) T {
		if n < uint64(len(first)) {
			return first[n]
		}
		return of(n)
	}, text}
}

// mix spreads a number over all of its bits (the finalizer of splitmix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// both is one number of two, which is another if they change places.
func both(a, b uint64) uint64 { return mix(mix(a) + 3*b) }

// digest is a number made of a text (FNV-1a).
func digest(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mix(h)
}

type whole interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// wholes are the whole numbers of a type, the least and the greatest first.
func wholes[T whole](name string, least, greatest T) domain[T] {
	return odd(name, func(n T) string { return fmt.Sprint(n) }, func(n uint64) T { return T(n - 3) }, least, greatest,
		0)
}

// floats are the numbers of a type. As keys 0 and −0 are the same.
func floats[T ~float32 | ~float64](name string, least T, key bool) domain[T] {
	text := func(x T) string {
		if key && x == 0 {
			return "0"
		}
		return strconv.FormatFloat(float64(x), 'g', -1, 64)
	}
	zero := T(math.Copysign(0, -1))
	return odd(name, text, func(n uint64) T { return T(int64(n)) / 8 }, zero, 0, T(math.NaN()), -T(math.NaN()),
		T(math.Inf(1)), T(math.Inf(-1)), least)
}

// texts are empty, long, and of bytes that are no UTF-8; most are short.
func texts() domain[string] {
	return odd("string", func(s string) string { return s }, func(n uint64) string {
		if mix(n)%23 == 0 {
			return strings.Repeat(fmt.Sprint("long ", n, " "), int(n%97))
		}
		return fmt.Sprint("text ", n)
	}, "", "\xff\xfe\x00", "größer, \"quoted\"\n\ttwo lines\r", strings.Repeat("0123456789", 4),
		strings.Repeat("0123456789", 4)+"0")
}

var zones = []*time.Location{time.UTC, time.FixedZone("east", 3600), time.FixedZone("", -7*3600),
	time.FixedZone("odd", 61)}

// times are instants, two numbers of three with another one in another zone.
func times() domain[time.Time] {
	text := func(t time.Time) string { return fmt.Sprint(t.Unix(), ".", t.Nanosecond()) }
	return odd("time", text, func(n uint64) time.Time {
		return time.Unix(int64(n/3)*977, int64(n/3%1e9)).In(zones[n%4])
	}, time.Time{}, time.Time{}.In(zones[3]), time.Date(-400, 2, 3, 4, 5, 6, 7, zones[3]),
		time.Date(12345, 1, 1, 0, 0, 0, 1, time.UTC))
}

func bools() domain[bool] {
	return domain[bool]{"bool", func(n uint64) bool { return n%2 == 1 }, func(b bool) string { return fmt.Sprint(b) }}
}

// lists are nil, empty, or of up to four values.
func lists[T any](of domain[T]) domain[[]T] {
	text := func(all []T) string {
		if all == nil {
			return "nil"
		}
		return "[" + joined(all, of.text) + "]"
	}
	return odd("[]"+of.name, text, func(n uint64) []T {
		out := make([]T, mix(n)%5)
		for i := range out {
			out[i] = of.of(both(n, uint64(i)) % (n + 7))
		}
		return out
	}, nil, []T{})
}

// joined are texts with their lengths, so that no two lists have the same.
func joined[T any](all []T, text func(T) string) string {
	var b strings.Builder
	for _, v := range all {
		s := text(v)
		fmt.Fprint(&b, len(s), ":", s)
	}
	return b.String()
}

// pointers are nil now and then.
func pointers[T any](to domain[T]) domain[*T] {
	text := func(p *T) string {
		if p == nil {
			return "nil"
		}
		return "&" + to.text(*p)
	}
	return odd("*"+to.name, text, func(n uint64) *T { return new(to.of(n - 1)) }, nil)
}

// The types of rows that are structs: with fields that are not exported,
// and nested.
type (
	spot struct {
		X    float64
		Name string
	}
	hidden struct {
		a int32
		b string
	}
	halfHidden struct {
		Sum   float64
		n     uint16
		notes []string
	}
	nested struct {
		N    int16
		At   time.Time
		In   halfHidden
		List []spot
		Next *hidden
		Two  [2]bool
	}
)

func spots(key bool) domain[spot] {
	x, name := floats("float64", math.SmallestNonzeroFloat64, key), texts()
	return domain[spot]{"spot", func(n uint64) spot { return spot{x.of(n / 2), name.of(n % 2)} },
		func(s spot) string { return x.text(s.X) + " " + s.Name }}
}

func hiddens() domain[hidden] {
	return domain[hidden]{"hidden", func(n uint64) hidden { return hidden{int32(n / 3), texts().of(n % 3)} },
		func(h hidden) string { return fmt.Sprint(h.a, " ", h.b) }}
}

func halfHiddens() domain[halfHidden] {
	sum, notes := floats("float64", math.SmallestNonzeroFloat64, false), lists(texts())
	return domain[halfHidden]{"halfHidden", func(n uint64) halfHidden {
		return halfHidden{sum.of(n), uint16(n),
			notes.of(mix(n) % 9)}
	},
		func(h halfHidden) string { return fmt.Sprint(sum.text(h.Sum), " ", h.n, " ", notes.text(h.notes)) }}
}

func nesteds() domain[nested] {
	at, in, list, next := times(), halfHiddens(), lists(spots(false)), pointers(hiddens())
	return domain[nested]{"nested", func(n uint64) nested {
		return nested{int16(n), at.of(n), in.of(n), list.of(n), next.of(n % 5), [2]bool{n%2 == 0, n%3 == 0}}
	}, func(v nested) string {
		return joined([]string{fmt.Sprint(v.N), at.text(v.At), in.text(v.In), list.text(v.List), next.text(v.Next),
			fmt.Sprint(v.Two)}, texts().text)
	}}
}
