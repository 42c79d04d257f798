package rdd

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// GroupBy brings all rows of the same key together, in the order of the input; see GroupByKey. Where they are to be
// combined, KeyBy and ReduceByKey or AggregateByKey move less.
func GroupBy[K comparable, T any](ds Dataset[T], f func(T) K, options ...ShuffleOption) Dataset[Pair[K, []T]] {
	return GroupByKey(KeyBy(ds, f), options...)
}

// DistinctBy keeps of rows that have the same key the one that comes first in the input.
func DistinctBy[K comparable, T any](ds Dataset[T], f func(T) K, options ...ShuffleOption) Dataset[T] {
	return Values(ReduceByKey(KeyBy(ds, f), func(a, _ T) T { return a }, options...))
}

// TopByKey returns of each key the n values that come first by an order, in that order; of equal ones those that
// come first in the input. What moves is n values a key and partition.
func TopByKey[K comparable, V any](ds Dataset[Pair[K, V]], n int, by Order[V],
	options ...ShuffleOption) Dataset[Pair[K, []V]] {
	ds.g.notNegative("top by key", n)
	by.keysOf(ds.g, "top by key", false)
	trim := func(rows []V) []V {
		slices.SortStableFunc(rows, by.Compare)
		return slices.Clip(rows[:min(n, len(rows))])
	}
	most := 2*min(n, math.MaxInt/4) + 16
	add := func(rows []V, v V) []V {
		if rows = append(rows, v); len(rows) >= most {
			return trim(rows)
		}
		return rows
	}
	tops := AggregateByKey(ds, func() []V { return nil }, add,
		func(a, b []V) []V { return trim(slices.Concat(a, b)) }, options...)
	return MapValues(tops, func(rows []V) []V { return trim(slices.Clone(rows)) })
}

// FlatMapSortedGroups replaces the values of each key, which f sees in an order, by what f makes of them. They are
// read from disk where they do not fit into memory, so that a key may have any number of values: running totals,
// gaps between events, sessions. Values that are equal by the order keep that of the input. f need not read all of
// them, and can read each once. All rows move; keys come in the order of their hashes.
func FlatMapSortedGroups[K comparable, V, U any](ds Dataset[Pair[K, V]], by Order[V],
	f func(key K, values iter.Seq[V]) iter.Seq[U], options ...ShuffleOption) Dataset[U] {
	s := sortGroups(ds, "flat-map-sorted-groups", by, options)
	return derive(s.dataset(), "flat-map", func(ctx context.Context, part int, yield func([]U) error) error {
		b, p := row.NewBatcher(yield), livenessOf(ctx)
		err := s.eachGroup(ctx, part, func(key K, values iter.Seq[V], failed *error) error {
			for u := range f(key, values) {
				if *failed != nil {
					return *failed // what f makes of values that are not all is no result
				}
				if err := b.Add(u); err != nil {
					return err
				}
				p.moved(1)
			}
			return *failed
		})
		return cmp.Or(err, b.Flush())
	})
}

// groupSort brings the values of each key together, in an order.
type groupSort[K comparable, V any] struct {
	g    *Graph
	op   string
	id   int
	c    exec.Keyed[K, V]
	keys []exec.SortKey[V]
	o    shuffleOptions
	n    func() int
}

func sortGroups[K comparable, V any](ds Dataset[Pair[K, V]], op string, by Order[V],
	options []ShuffleOption) *groupSort[K, V] {
	s := &groupSort[K, V]{g: ds.g, op: op, c: keyedOf[K, V](ds.g, op), o: sortOptionsOf(ds.g, op, options)}
	s.keys, s.n = by.keysOf(ds.g, op, s.o.descending), s.o.count(ds.g, ds.id)
	s.id = shuffleByKey(ds, op, s.c, s.o, s.n)
	ds.g.mayCoalesce(s.id, s.o, s.id)
	return s
}

// dataset returns the rows of the shuffle, as they are.
func (s *groupSort[K, V]) dataset() Dataset[Pair[K, V]] {
	return shuffledDataset(s.g, s.id, s.id, s.o, s.n,
		func(ctx context.Context, part int, yield func([]Pair[K, V]) error) error {
			return readShuffle(ctx, s.id, part, s.c.Row, yield)
		})
}

// eachGroup calls do with the sorted values of each key of a partition: a table has them where they fit into memory,
// and else they are sorted on disk. An error while they are read ends values, and is noted.
func (s *groupSort[K, V]) eachGroup(ctx context.Context, part int,
	do func(key K, values iter.Seq[V], failed *error) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	g := exec.NewGrouper(s.op, s.c, env.packs, 2)
	defer g.Close()
	err = readShuffle(ctx, s.id, part, s.c.Row, func(rows []Pair[K, V]) error {
		if g.Spilled != nil {
			return errEnough
		}
		return g.AddAll(rows)
	})
	switch {
	case g.Spilled != nil && (err == nil || errors.Is(err, errEnough)): // they do not fit into memory: read once more
		g.Close()
		return s.eachGroupOnDisk(ctx, part, env.packs, do)
	case err != nil:
		return err
	}
	sorter := exec.NewValueSorter(s.keys)
	return g.Each(ctx, env.expect, func(key K, values []V) error {
		var failed error
		rest := sorter.Sort(values)
		defer func() { rest = nil }() // the next key's values take their place
		return do(key, func(yield func(V) bool) {
			for len(rest) > 0 { // each is read once, as those on disk are
				v := rest[0]
				if rest = rest[1:]; !yield(v) {
					return
				}
			}
		}, &failed)
	})
}

// eachGroupOnDisk sorts the pairs of a partition by their keys' hashes, and reads one key after the other.
func (s *groupSort[K, V]) eachGroupOnDisk(ctx context.Context, part int, packs runner.TaskContext,
	do func(key K, values iter.Seq[V], failed *error) error) error {
	sorter := exec.NewGroupSorter(s.c, s.keys, packs)
	defer sorter.Close()
	if err := readShuffle(ctx, s.id, part, s.c.Row, sorter.AddAll); err != nil {
		return err
	}
	next, stop := iter.Pull2(pulled(func(yield func([]Pair[K, V]) error) error { return sorter.Each(ctx, yield) }))
	defer stop()
	g := &groupReader[K, V]{next: next, equal: func(a, b *K) bool { return *a == *b || s.c.Key.Equal(a, b) }}
	for g.more() {
		key := g.rows[0].Key
		if err := do(key, g.values(key), &g.err); err != nil {
			return err
		}
		for range g.values(key) { // those that were not read
		}
	}
	return g.err
}

// groupReader reads pairs whose keys are together.
type groupReader[K comparable, V any] struct {
	next  func() ([]Pair[K, V], error, bool)
	equal func(a, b *K) bool
	rows  []Pair[K, V] // not read yet
	err   error
}

// more reports whether there is another pair.
func (g *groupReader[K, V]) more() bool {
	for len(g.rows) == 0 && g.err == nil {
		rows, err, ok := g.next()
		if !ok {
			return false
		}
		g.rows, g.err = rows, err
	}
	return g.err == nil
}

// values yields the values of a key, from the next one on.
func (g *groupReader[K, V]) values(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		for g.more() && g.equal(&g.rows[0].Key, &key) {
			v := g.rows[0].Value
			g.rows = g.rows[1:]
			if !yield(v) {
				return
			}
		}
	}
}

// Window is one row among those of its key, in their order: what the window functions of SQL see.
type Window[V any] struct {
	rows        []V
	at          int
	rank, dense int
	tiesOf      int // rank whose rows end at tied
	tied        int
	compare     func(a, b V) int
}

// Row returns the row itself.
func (w *Window[V]) Row() V { return w.rows[w.at] }

// Size returns how many rows the key has.
func (w *Window[V]) Size() int { return len(w.rows) }

// RowNumber returns the place of the row, from 1.
func (w *Window[V]) RowNumber() int { return w.at + 1 }

// Rank returns the place of the first of the rows that are equal to this one, from 1.
func (w *Window[V]) Rank() int { return w.rank }

// DenseRank returns how many different rows there are up to this one.
func (w *Window[V]) DenseRank() int { return w.dense }

// PercentRank returns the share of the other rows that come before those equal to this one; 0 where it is the only one.
func (w *Window[V]) PercentRank() float64 {
	if len(w.rows) == 1 {
		return 0
	}
	return float64(w.rank-1) / float64(len(w.rows)-1)
}

// CumeDist returns the share of rows up to the last that is equal to this one.
func (w *Window[V]) CumeDist() float64 {
	if w.tiesOf != w.rank {
		w.tiesOf, w.tied = w.rank, w.at+1
		for w.tied < len(w.rows) && w.compare(w.rows[w.at], w.rows[w.tied]) == 0 {
			w.tied++
		}
	}
	return float64(w.tied) / float64(len(w.rows))
}

// NTile returns in which of n parts of about the same size the row is, from 1; the first parts are the larger ones.
func (w *Window[V]) NTile(n int) int {
	size, more := len(w.rows)/n, len(w.rows)%n
	if w.at < more*(size+1) {
		return w.at/(size+1) + 1
	}
	return more + (w.at-more*(size+1))/size + 1
}

// Lag returns the row n places before this one, if there is one.
func (w *Window[V]) Lag(n int) (row V, ok bool) { return w.Lead(-n) }

// Lead returns the row n places after this one, if there is one.
func (w *Window[V]) Lead(n int) (row V, ok bool) {
	if at := w.at + n; at >= 0 && at < len(w.rows) {
		return w.rows[at], true
	}
	return row, false
}

// Between returns the rows from some places before this one, which are below 0, through some after it: a frame. It
// must not be changed. For a total of all rows up to this one, FlatMapSortedGroups takes each row once.
func (w *Window[V]) Between(from, through int) []V {
	lo := max(0, w.at+max(from, -len(w.rows)))
	hi := max(0, min(len(w.rows), w.at+max(-len(w.rows), min(through, len(w.rows)))+1))
	return w.rows[min(lo, hi):hi]
}

// WindowByKey maps every value of a key by a function that sees it among all values of the key, in an order:
// ranks, neighbours and frames. The values of one key are in memory at once. All rows move; those of one key come
// in the order.
func WindowByKey[K comparable, V, U any](ds Dataset[Pair[K, V]], by Order[V], f func(w *Window[V]) U,
	options ...ShuffleOption) Dataset[Pair[K, U]] {
	return FlatMapSortedGroups(ds, by, func(key K, values iter.Seq[V]) iter.Seq[Pair[K, U]] {
		return func(yield func(Pair[K, U]) bool) {
			w := Window[V]{rows: slices.Collect(values), compare: by.Compare}
			for w.at = range w.rows {
				if w.at == 0 || by.Compare(w.rows[w.at-1], w.rows[w.at]) != 0 {
					w.rank, w.dense = w.at+1, w.dense+1
				}
				if !yield(Pair[K, U]{Key: key, Value: f(&w)}) {
					return
				}
			}
		}
	}, options...)
}

// CollectAsMap brings all pairs to the driver's side as a map; of a key with several values it has the last.
func CollectAsMap[K comparable, V any](ds Dataset[Pair[K, V]]) Action[map[K]V] {
	return Then(Collect(ds), func(pairs []Pair[K, V]) map[K]V {
		out := make(map[K]V, len(pairs))
		for _, p := range pairs {
			out[p.Key] = p.Value
		}
		return out
	})
}

// CoGrouped3 are the values that a key has in three datasets.
type CoGrouped3[U, V, W any] struct {
	First  []U
	Second []V
	Third  []W
}

// oneOf is a value of one of three datasets.
type oneOf[U, V, W any] struct {
	Which  uint8
	First  U
	Second V
	Third  W
}

// CoGroup3 brings the values of each key of three datasets together, in the order of their inputs. All rows move, once;
// the values of one key are in memory at once. Keys come in the order of their hashes.
func CoGroup3[K comparable, U, V, W any](first Dataset[Pair[K, U]], second Dataset[Pair[K, V]],
	third Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, CoGrouped3[U, V, W]]] {
	type one = oneOf[U, V, W]
	all := Union(
		MapValues(first, func(v U) one { return one{Which: 0, First: v} }),
		MapValues(second, func(v V) one { return one{Which: 1, Second: v} }),
		MapValues(third, func(v W) one { return one{Which: 2, Third: v} }))
	return MapValues(GroupByKey(all, options...), func(values []one) (out CoGrouped3[U, V, W]) {
		for i := range values {
			switch v := &values[i]; v.Which {
			case 0:
				out.First = append(out.First, v.First)
			case 1:
				out.Second = append(out.Second, v.Second)
			default:
				out.Third = append(out.Third, v.Third)
			}
		}
		return out
	})
}
