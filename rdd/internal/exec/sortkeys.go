package exec

import (
	"cmp"
	"slices"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// SortKey is one of the keys by which rows are ordered: by its rank, and of equal ranks by compare; nil where
// equal ranks are equal keys.
type SortKey[T any] struct {
	rank    func(*T) uint64
	compare func(a, b *T) int
}

// SortKeyOf returns the key that a function makes of a row.
func SortKeyOf[T any, K Ordered](of func(T) K, descending bool) SortKey[T] {
	k := KeyOrderOf[K](descending)
	key := SortKey[T]{rank: func(r *T) uint64 { return k.rank(of(*r)) }}
	if k.compare != nil {
		key.compare = func(a, b *T) int { return k.compare(of(*a), of(*b)) }
	}
	return key
}

// SortKeyBy returns the key of a comparison: rows that compare as 0 are equal.
func SortKeyBy[T any](compare func(a, b T) int) SortKey[T] {
	return SortKey[T]{rank: func(*T) uint64 { return 0 }, compare: func(a, b *T) int { return compare(*a, *b) }}
}

// Reversed returns the key of the opposite order.
func (k SortKey[T]) Reversed() SortKey[T] {
	out := SortKey[T]{rank: func(r *T) uint64 { return ^k.rank(r) }}
	if k.compare != nil {
		out.compare = func(a, b *T) int { return k.compare(b, a) }
	}
	return out
}

// Cmp compares two rows: below 0 if a comes first.
func (k *SortKey[T]) Cmp(a, b *T) int {
	if c := cmp.Compare(k.rank(a), k.rank(b)); c != 0 || k.compare == nil {
		return c
	}
	return k.compare(a, b)
}

// OfValues returns the key of pairs by their values.
func OfValues[K comparable, V any](k SortKey[V]) SortKey[row.Pair[K, V]] {
	out := SortKey[row.Pair[K, V]]{rank: func(p *row.Pair[K, V]) uint64 { return k.rank(&p.Value) }}
	if k.compare != nil {
		out.compare = func(a, b *row.Pair[K, V]) int { return k.compare(&a.Value, &b.Value) }
	}
	return out
}

// CompareBy compares two rows by several keys.
func CompareBy[T any](keys []SortKey[T], a, b *T) int {
	for i := range keys {
		if c := keys[i].Cmp(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// OrderByKeys returns the order of rows by several keys, of which there is at least one.
func OrderByKeys[T any](keys []SortKey[T]) Order[T] {
	o := Order[T]{rank: keys[0].rank, compare: keys[0].compare, keys: keys}
	if first := keys[0].compare; len(keys) > 1 {
		o.compare = func(a, b *T) int {
			if first != nil {
				if c := first(a, b); c != 0 {
					return c
				}
			}
			return CompareBy(keys[1:], a, b)
		}
	}
	return o
}

// RowOrder returns the same order, of rows that are their own keys.
func RowOrder[T any](codec row.Codec[T], keys []SortKey[T]) KeyOrder[T] {
	return KeyOrder[T]{codec: codec, rank: func(r T) uint64 { return keys[0].rank(&r) },
		compare: func(a, b T) int { return CompareBy(keys, &a, &b) }}
}

// NewGroupSorter returns a sorter that brings the pairs of each key together, by the hash of the key, with their
// values in an order.
func NewGroupSorter[K comparable, V any](c Keyed[K, V], by []SortKey[V],
	packs runner.TaskContext) *Sorter[row.Pair[K, V]] {
	hashed := hashOrder(c)
	keys := []SortKey[row.Pair[K, V]]{{rank: hashed.rank, compare: hashed.compare}}
	for _, k := range by {
		keys = append(keys, OfValues[K](k))
	}
	return NewSorter(c.Row, OrderByKeys(keys), packs)
}

// sortByKeys sorts rows whose first keys have one rank, and keeps the order of equal ones.
func (s *Sorter[T]) sortByKeys(list []Ranked) error {
	k := &s.byKeys
	k.keys, k.rows = s.order.keys, slices.Grow(k.rows[:0], len(list))[:len(list)]
	clear(k.rows)
	k.at, k.spare = slices.Grow(k.at[:0], len(list))[:len(list)], slices.Grow(k.spare[:0], len(list))[:len(list)]
	k.places = slices.Grow(k.places[:0], len(list))[:len(list)]
	var text row.Arena
	for i := range list {
		if _, err := s.row.Parse(s.bytesAt(list[i].row), &k.rows[i], &text); err != nil {
			return row.Corrupt(err)
		}
	}
	for i := range list {
		k.at[i].row, k.places[i] = uint32(i), list[i].row
	}
	k.compared(k.at, 0)
	for i := range list {
		list[i].row = k.places[k.at[i].row]
	}
	return nil
}

// keySorter sorts the indices of rows, key by key. Its memory is that of one run after the other.
type keySorter[T any] struct {
	keys      []SortKey[T]
	rows      []T
	at, spare []Ranked
	places    []uint32
}

// compared sorts rows that are equal by the keys before the i-th, and whose i-th has one rank.
func (k *keySorter[T]) compared(at []Ranked, i int) {
	by := k.keys[i].compare
	first := &k.rows[at[0].row]
	if by == nil || !slices.ContainsFunc(at[1:], func(o Ranked) bool { return by(first, &k.rows[o.row]) != 0 }) {
		k.ranked(at, i+1)
		return
	}
	slices.SortFunc(at, func(a, b Ranked) int {
		return cmp.Or(by(&k.rows[a.row], &k.rows[b.row]), int(int64(a.row)-int64(b.row)))
	})
	k.eachRun(at, func(a, b Ranked) bool { return by(&k.rows[a.row], &k.rows[b.row]) == 0 },
		func(run []Ranked) { k.ranked(run, i+1) })
}

// ranked sorts rows that are equal by the keys before the i-th.
func (k *keySorter[T]) ranked(at []Ranked, i int) {
	if i == len(k.keys) {
		return
	}
	for j := range at {
		at[j].Rank = k.keys[i].rank(&k.rows[at[j].row])
	}
	if sorted := sortRankedIn(at, k.spare[:len(at)]); &sorted[0] != &at[0] {
		copy(at, sorted)
	}
	if k.keys[i].compare == nil && i+1 == len(k.keys) {
		return
	}
	k.eachRun(at, func(a, b Ranked) bool { return a.Rank == b.Rank }, func(run []Ranked) { k.compared(run, i) })
}

// eachRun calls do with each run of two or more that are the same.
func (k *keySorter[T]) eachRun(at []Ranked, same func(a, b Ranked) bool, do func(run []Ranked)) {
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && same(at[from], at[to]) {
			to++
		}
		if to > from+1 {
			do(at[from:to])
		}
		from = to
	}
}

// ValueSorter sorts lists of values, one after the other.
type ValueSorter[V any] struct {
	k   keySorter[V]
	out []V
}

// NewValueSorter returns a sorter by several keys.
func NewValueSorter[V any](keys []SortKey[V]) *ValueSorter[V] {
	return &ValueSorter[V]{k: keySorter[V]{keys: keys}}
}

// Sort returns the values in order, in memory that the next call uses; equal ones keep theirs.
func (s *ValueSorter[V]) Sort(values []V) []V {
	if len(values) == 0 {
		return nil
	}
	k := &s.k
	k.rows = values
	k.at = slices.Grow(k.at[:0], len(values))[:len(values)]
	k.spare = slices.Grow(k.spare[:0], len(values))[:len(values)]
	for i := range k.at {
		k.at[i].row = uint32(i)
	}
	k.ranked(k.at, 0)
	s.out = s.out[:0]
	for _, e := range k.at {
		s.out = append(s.out, values[e.row])
	}
	return s.out
}
