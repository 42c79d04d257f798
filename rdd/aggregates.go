package rdd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Aggregated aggregates all rows (Spark's aggregate): in each partition seq adds the rows to an accumulator
// that begins as zero(), and comb merges the accumulators of the partitions, in their order.
func Aggregated[T, A any](ds Dataset[T], zero func() A, seq func(A, T) A, comb func(a, b A) A) Action[A] {
	mustEncode[A](ds.g, "aggregated", "result")
	task := func(ctx context.Context, part int, _ []byte, _ runner.TaskContext) ([]byte, error) {
		acc := zero()
		err := ds.each(ctx, part, func(rows []T) error {
			for i := range rows {
				acc = seq(acc, rows[i])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return Encode(acc)
	}
	return action(ds, "aggregated", task, func(ctx context.Context, s *Session, id int) (A, error) {
		acc := zero()
		raws, err := callAll(ctx, s, id, ds.parts)
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

// CountByValue counts how often each row is there. The counts are in memory. Rows are told
// apart as keys are: NaN is one value.
func CountByValue[T comparable](ds Dataset[T]) Action[map[T]int64] {
	ones := Map(ds, func(row T) Pair[T, int64] { return Pair[T, int64]{Key: row, Value: 1} })
	counts := Collect(ReduceByKey(ones, func(a, b int64) int64 { return a + b }))
	return Action[map[T]int64]{g: counts.g, id: counts.id, name: "count-by-value",
		run: func(ctx context.Context, s *Session) (map[T]int64, error) {
			pairs, err := counts.Run(ctx, s)
			if err != nil {
				return nil, err
			}
			out := make(map[T]int64, len(pairs))
			for _, p := range pairs {
				out[p.Key] = p.Value
			}
			return out, nil
		}}
}

// CountByKey counts the values of each key. The counts are in memory.
func CountByKey[K comparable, V any](ds Dataset[Pair[K, V]]) Action[map[K]int64] {
	return CountByValue(Keys(ds))
}

// TakeOrdered returns the n rows that come first by an order, in that order; of
// equal ones those that come first in the input.
func TakeOrdered[T any](ds Dataset[T], n int, order func(a, b T) int) Action[[]T] {
	ds.g.notNegative("take ordered", n)
	// Rows are kept until there are twice too many, and then cut: a heap's worth
	// of memory, without a heap.
	trim := func(rows []T) []T {
		slices.SortStableFunc(rows, order)
		return rows[:min(n, len(rows))]
	}
	return Then(Aggregated(ds, func() []T { return nil }, func(rows []T, row T) []T {
		if rows = append(rows, row); len(rows) >= 2*n+16 {
			rows = trim(rows)
		}
		return rows
	}, func(a, b []T) []T { return trim(append(a, b...)) }), trim)
}

// Top returns the n greatest rows, the greatest first.
func Top[T cmp.Ordered](ds Dataset[T], n int) Action[[]T] {
	return TakeOrdered(ds, n, func(a, b T) int { return cmp.Compare(b, a) })
}

// Lookup returns the values of a key, in the order of the input. Every partition
// is read.
func Lookup[K comparable, V any](ds Dataset[Pair[K, V]], key K) Action[[]V] {
	c, _ := row.KeyCodecOf[K]() // keys that cannot be encoded are compared by == alone
	return Collect(Values(Filter(ds, func(p Pair[K, V]) bool {
		return p.Key == key || c.Put != nil &&
			c.Equal(&p.Key, &key)
	})))
}

// ForEach calls f with every row, where the row is. A task that is tried again
// calls it again.
func ForEach[T any](ds Dataset[T], f func(T) error) Action[int64] {
	return Count(MapErr(ds, func(row T) (bool, error) { return true, f(row) }))
}

// ForEachPartition calls f with the rows of each partition, where they are, and returns how many there were: for what
// is opened once for many rows, such as a connection. A task that is tried again calls it again. f must read all rows
// unless it fails.
func ForEachPartition[T any](ds Dataset[T], f func(part int, rows iter.Seq[T]) error) Action[int64] {
	counts := derive(ds, "for-each-partition", func(ctx context.Context, part int, yield func([]int64) error) error {
		var n int64
		var failed error
		err := f(part, func(more func(T) bool) {
			failed = ds.rows(ctx, part, func(r T) error {
				n++
				if !more(r) {
					return errEnough
				}
				return nil
			})
		})
		if failed != nil {
			err = failed
		}
		switch {
		case errors.Is(err, errEnough):
			return fault.Newf(fault.UserCode, "for each partition", fmt.Sprintf("partition %d", part),
				"the function read %d of its rows and returned no error", n)
		case err != nil && failed == nil:
			return fault.New(fault.UserCode, "for each partition", fmt.Sprintf("partition %d", part), err)
		case err != nil:
			return err
		}
		return yield([]int64{n})
	})
	return Fold(counts, 0, func(a, b int64) int64 { return a + b })
}

// TreeReduce does what Reduce does, but combines in two steps, the first of them on the executors: for values that
// are large, or very many partitions.
func TreeReduce[T any](ds Dataset[T], f func(a, b T) T) Action[T] {
	some := TreeAggregate(ds, func() []T { return nil }, func(acc []T, r T) []T {
		if len(acc) == 0 {
			return []T{r}
		}
		acc[0] = f(acc[0], r)
		return acc
	}, func(a, b []T) []T {
		if len(a) == 0 || len(b) == 0 {
			return append(a, b...)
		}
		return []T{f(a[0], b[0])}
	})
	return thenErr(some, func(acc []T) (T, error) {
		if len(acc) == 0 {
			var none T
			return none, isEmpty("the reduction")
		}
		return acc[0], nil
	})
}

// drawn is a row with the random number that decides whether it is taken.
type drawn[T any] struct {
	At  uint64
	Row T
}

// TakeSample returns n rows, each as likely as any other, drawn without putting back,
// in the order of their drawing. The same seed draws the same rows.
func TakeSample[T any](ds Dataset[T], n int, seed uint64) Action[[]T] {
	numbered := MapSplits(ds, func(part int, rows iter.Seq[T]) iter.Seq[drawn[T]] {
		return func(yield func(drawn[T]) bool) {
			r := rand.New(rand.NewPCG(seed, uint64(part)))
			for row := range rows {
				if !yield(drawn[T]{r.Uint64(), row}) {
					return
				}
			}
		}
	})
	taken := TakeOrdered(numbered, n, func(a, b drawn[T]) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return Then(taken, func(rows []drawn[T]) []T {
		out := make([]T, len(rows))
		for i := range rows {
			out[i] = rows[i].Row
		}
		return out
	})
}

// Then returns an action whose result is f of another's result.
func Then[R, Q any](a Action[R], f func(R) Q) Action[Q] {
	return Action[Q]{g: a.g, id: a.id, name: a.name, run: func(ctx context.Context, s *Session) (Q, error) {
		r, err := a.run(ctx, s)
		if err != nil {
			var zero Q
			return zero, err
		}
		return f(r), nil
	}}
}

// TreeAggregate does what Aggregated does, but its partial results are combined in two steps,
// the first of them on the executors: for accumulators that are large, or very
// many partitions.
func TreeAggregate[T, A any](ds Dataset[T], zero func() A, seq func(A, T) A, comb func(a, b A) A) Action[A] {
	width := func() int { return int(intSqrt(ds.parts())) }
	partials := MapSplits(ds, func(part int, rows iter.Seq[T]) iter.Seq[Pair[int, A]] {
		return func(yield func(Pair[int, A]) bool) {
			acc := zero()
			for row := range rows {
				acc = seq(acc, row)
			}
			yield(Pair[int, A]{Key: part / max(1, width()), Value: acc})
		}
	})
	combined := Collect(ReduceByKey(partials, comb))
	return Then(combined, func(all []Pair[int, A]) A {
		byKey := map[int]A{}
		for _, p := range all {
			byKey[p.Key] = p.Value
		}
		acc := zero()
		for i := 0; len(byKey) > 0; i++ {
			if a, ok := byKey[i]; ok {
				acc = comb(acc, a)
				delete(byKey, i)
			}
		}
		return acc
	})
}

// intSqrt returns the least number whose square is at least n.
func intSqrt(n int) int {
	r := 0
	for r*r < n {
		r++
	}
	return r
}
