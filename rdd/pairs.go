package rdd

import (
	"context"
	"fmt"
	"iter"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// KeyBy pairs every row with the key that f makes of it. Nothing moves; order
// is kept.
func KeyBy[K comparable, T any](ds Dataset[T], f func(T) K) Dataset[Pair[K, T]] {
	return Map(ds, func(row T) Pair[K, T] { return Pair[K, T]{Key: f(row), Value: row} })
}

// Keys returns the keys of pairs. Nothing moves; order is kept.
func Keys[K comparable, V any](ds Dataset[Pair[K, V]]) Dataset[K] {
	return Map(ds, func(p Pair[K, V]) K { return p.Key })
}

// Values returns the values of pairs. Nothing moves; order is kept.
func Values[K comparable, V any](ds Dataset[Pair[K, V]]) Dataset[V] {
	return Map(ds, func(p Pair[K, V]) V { return p.Value })
}

// MapValues applies f to every value. Nothing moves; order is kept.
func MapValues[K comparable, V, W any](ds Dataset[Pair[K, V]], f func(V) W) Dataset[Pair[K, W]] {
	return preservesPartitioning(ds.spread, Map(ds, func(p Pair[K, V]) Pair[K, W] {
		return Pair[K, W]{Key: p.Key, Value: f(p.Value)}
	}))
}

// FlatMapValues pairs each of the values that f makes of a value with its key.
// Nothing moves; order is kept.
func FlatMapValues[K comparable, V, W any](ds Dataset[Pair[K, V]], f func(V) []W) Dataset[Pair[K, W]] {
	return preservesPartitioning(ds.spread, FlatMapAppend(ds, func(out []Pair[K, W], p Pair[K, V]) []Pair[K, W] {
		for _, w := range f(p.Value) {
			out = append(out, Pair[K, W]{Key: p.Key, Value: w})
		}
		return out
	}))
}

// MapValuesWith does what MapValues does, under a parameter, which f must not change.
func MapValuesWith[K comparable, V, P, W any](ds Dataset[Pair[K, V]], p Param[P], f func(V, P) W) Dataset[Pair[K, W]] {
	return preservesPartitioning(ds.spread, MapWith(ds, p,
		func(r Pair[K, V], v P) Pair[K, W] { return Pair[K, W]{Key: r.Key, Value: f(r.Value, v)} }))
}

// preservesPartitioning notes that the pairs of a dataset are where those were that it was made
// of: what is spread alike can be joined where it is.
func preservesPartitioning[T any](spread int, ds Dataset[T]) Dataset[T] {
	ds.spread = spread
	return ds
}

// asKeys makes rows keys without values.
func asKeys[T comparable](ds Dataset[T]) Dataset[Pair[T, bool]] {
	return Map(ds, func(row T) Pair[T, bool] { return Pair[T, bool]{Key: row} })
}

// MapSplitsInPlace replaces the pairs of each partition by those that f makes of them, which have keys of that
// partition (Spark's mapPartitions with preservesPartitioning): where the pairs are partitioned by key, that stays
// known, and a join with others of the same partitioning moves nothing. A key of another partition fails the action.
func MapSplitsInPlace[K comparable, V, W any](ds Dataset[Pair[K, V]],
	f func(part int, rows iter.Seq[Pair[K, V]]) iter.Seq[Pair[K, W]]) Dataset[Pair[K, W]] {
	k := keyedOf[K, W](ds.g, "map splits in place")
	mapped := MapSplits(ds, f)
	if ds.spread == 0 {
		return mapped
	}
	return preservesPartitioning(ds.spread, derive(mapped, "in-place",
		func(ctx context.Context, part int, yield func([]Pair[K, W]) error) error {
			var hashes []uint64
			return mapped.each(ctx, part, func(rows []Pair[K, W]) error {
				hashes = row.Hashes(k.Hash, rows, hashes)
				for i, h := range hashes {
					if at := row.Partition(h, ds.spread); at != part {
						return fault.Newf(fault.UserCode, "map", fmt.Sprintf("partition %d", part),
							"the function of MapSplitsInPlace makes a pair of key %v, which is of partition %d",
							rows[i].Key, at).WithHint("MapSplits lets keys go anywhere, and a later join moves them")
					}
				}
				return yield(rows)
			})
		}))
}
