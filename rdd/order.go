package rdd

import (
	"context"
	"slices"

	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Order is an order of rows by one key or several: Asc, Desc and Comparing make one of a key, and Then adds another
// key, which decides where those before it are equal.
//
//	by := rdd.Asc(func(o Sale) string { return o.Country }).Then(rdd.Desc(func(o Sale) time.Time { return o.At }))
type Order[T any] struct{ keys []exec.SortKey[T] }

// Asc orders rows by a key, the least first. NaN comes before all numbers, false before true.
func Asc[T any, K Ordered](key func(T) K) Order[T] {
	return Order[T]{[]exec.SortKey[T]{exec.SortKeyOf(key, false)}}
}

// Desc orders rows by a key, the greatest first.
func Desc[T any, K Ordered](key func(T) K) Order[T] {
	return Order[T]{[]exec.SortKey[T]{exec.SortKeyOf(key, true)}}
}

// Comparing orders rows by a function that returns below 0 if a comes first, and 0 if they are equal. It takes
// longer than keys do.
func Comparing[T any](compare func(a, b T) int) Order[T] {
	return Order[T]{[]exec.SortKey[T]{exec.SortKeyBy(compare)}}
}

// Then orders rows that are equal by this order by another one.
func (o Order[T]) Then(next Order[T]) Order[T] { return Order[T]{slices.Concat(o.keys, next.keys)} }

// Reversed returns the opposite order. Rows that are equal keep the order of the input in both.
func (o Order[T]) Reversed() Order[T] {
	out := make([]exec.SortKey[T], len(o.keys))
	for i, k := range o.keys {
		out[i] = k.Reversed()
	}
	return Order[T]{out}
}

// Compare returns below 0 if a comes before b, and 0 if they are equal: for TakeOrdered and slices.SortFunc.
func (o Order[T]) Compare(a, b T) int { return exec.CompareBy(o.keys, &a, &b) }

// keysOf returns the keys of an order, of which there must be one.
func (o Order[T]) keysOf(g *Graph, op string, descending bool) []exec.SortKey[T] {
	if descending {
		o = o.Reversed()
	}
	if len(o.keys) == 0 {
		g.fail("%s: the order has no key: begin with rdd.Asc, rdd.Desc or rdd.Comparing", op)
		return []exec.SortKey[T]{exec.SortKeyBy(func(T, T) int { return 0 })}
	}
	return o.keys
}

// SortWithinPartitions sorts the rows of each partition by an order. Nothing moves; rows that are equal keep the
// order of the input. What does not fit into memory is sorted on disk.
func SortWithinPartitions[T any](ds Dataset[T], by Order[T]) Dataset[T] {
	codec, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("sort within partitions: the rows cannot be encoded: %v", err)
	}
	order := exec.OrderByKeys(by.keysOf(ds.g, "sort within partitions", false))
	return preservesPartitioning(ds.spread, derive(ds, "sort-within-partitions",
		func(ctx context.Context, part int, yield func([]T) error) error {
			env, err := envOf(ctx)
			if err != nil {
				return err
			}
			s := exec.NewSorter(codec, order, env.packs)
			defer s.Close()
			if err := ds.each(ctx, part, s.AddAll); err != nil {
				return err
			}
			return s.Each(ctx, yield)
		}))
}

// RepartitionAndSortBy does what PartitionBy does, with each partition sorted by an order of pairs: a secondary sort
// where it begins with the key. All rows move.
func RepartitionAndSortBy[K comparable, V any](ds Dataset[Pair[K, V]], p Partitioner[K],
	by Order[Pair[K, V]]) Dataset[Pair[K, V]] {
	return SortWithinPartitions(PartitionBy(ds, p), by)
}
