package rdd

import (
	"cmp"
	"context"
	"slices"

	"github.com/volley-engine/volley/internal/runner"
)

// Aggregated combines all rows into something else: seq takes a row in,
// beginning with what zero returns in each partition, and comb joins what the
// partitions came to, in their order.
func Aggregated[T, A any](ds Dataset[T], zero func() A, seq func(A, T) A, comb func(a, b A) A) Action[A] {
	task := func(ctx context.Context, part int, _ []byte, _ runner.Packs) ([]byte, error) {
		acc := zero()
		err := ds.each(ctx, part, func(row T) error { acc = seq(acc, row); return nil })
		if err != nil {
			return nil, err
		}
		return Encode(acc)
	}
	return action(ds, "aggregated", task, func(ctx context.Context, s *Session, id int) (A, error) {
		acc := zero()
		raws, err := callAll(ctx, s, id, ds.parts())
		for _, raw := range raws {
			var a A
			if err := Decode(raw, &a); err != nil {
				return acc, err
			}
			acc = comb(acc, a)
		}
		return acc, err
	})
}

// Fold combines all rows with an associative function, beginning with zero in
// each partition.
func Fold[T any](ds Dataset[T], zero T, f func(a, b T) T) Action[T] {
	return Aggregated(ds, func() T { return zero }, f, f)
}

// CountByValue counts how often each row is there. The counts are in memory.
func CountByValue[T comparable](ds Dataset[T]) Action[map[T]int64] {
	return Aggregated(ds, func() map[T]int64 { return map[T]int64{} },
		func(m map[T]int64, row T) map[T]int64 { m[row]++; return m },
		func(a, b map[T]int64) map[T]int64 {
			for k, n := range b {
				a[k] += n
			}
			return a
		})
}

// CountByKey counts the values of each key. The counts are in memory.
func CountByKey[K comparable, V any](ds Dataset[Pair[K, V]]) Action[map[K]int64] {
	return CountByValue(Keys(ds))
}

// TakeOrdered are the n rows that come first by an order, in that order; of
// equal ones those that come first in the input.
func TakeOrdered[T any](ds Dataset[T], n int, order func(a, b T) int) Action[[]T] {
	// Rows are kept until there are twice too many, and then cut: a heap's worth
	// of memory, without a heap.
	trim := func(rows []T) []T {
		slices.SortStableFunc(rows, order)
		return rows[:min(n, len(rows))]
	}
	return finishAction(Aggregated(ds, func() []T { return nil }, func(rows []T, row T) []T {
		if rows = append(rows, row); len(rows) >= 2*n+16 {
			rows = trim(rows)
		}
		return rows
	}, func(a, b []T) []T { return trim(append(a, b...)) }), trim)
}

// finishAction applies a function to what an action came to.
func finishAction[R any](a Action[R], f func(R) R) Action[R] {
	run := a.run
	a.run = func(ctx context.Context, s *Session) (R, error) {
		r, err := run(ctx, s)
		if err != nil {
			return r, err
		}
		return f(r), nil
	}
	return a
}

// Top are the n greatest rows, the greatest first.
func Top[T cmp.Ordered](ds Dataset[T], n int) Action[[]T] {
	return TakeOrdered(ds, n, func(a, b T) int { return cmp.Compare(b, a) })
}

// Lookup are the values of a key, in the order of the input. Every partition
// is read.
func Lookup[K comparable, V any](ds Dataset[Pair[K, V]], key K) Action[[]V] {
	return Collect(Values(Filter(ds, func(p Pair[K, V]) bool { return p.Key == key })))
}

// ForEach calls f with every row, where the row is. A task that is tried again
// calls it again.
func ForEach[T any](ds Dataset[T], f func(T) error) Action[int64] {
	return Count(MapErr(ds, func(row T) (bool, error) { return true, f(row) }))
}
