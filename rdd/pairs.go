package rdd

import (
	"context"
	"errors"
	"fmt"

	"github.com/volley-engine/volley/storage"
)

// Pair is a key with a value: a row of a dataset that can be grouped, reduced
// or joined by key.
type Pair[K comparable, V any] struct {
	Key   K
	Value V
}

// KeyBy pairs every row with the key that f makes of it. Nothing moves; order
// is kept.
func KeyBy[K comparable, T any](ds Dataset[T], f func(T) K) Dataset[Pair[K, T]] {
	return Map(ds, func(row T) Pair[K, T] { return Pair[K, T]{f(row), row} })
}

// Keys are the keys of pairs. Nothing moves; order is kept.
func Keys[K comparable, V any](ds Dataset[Pair[K, V]]) Dataset[K] {
	return Map(ds, func(p Pair[K, V]) K { return p.Key })
}

// Values are the values of pairs. Nothing moves; order is kept.
func Values[K comparable, V any](ds Dataset[Pair[K, V]]) Dataset[V] {
	return Map(ds, func(p Pair[K, V]) V { return p.Value })
}

// MapValues applies f to every value. Nothing moves; order is kept.
func MapValues[K comparable, V, W any](ds Dataset[Pair[K, V]], f func(V) W) Dataset[Pair[K, W]] {
	return Map(ds, func(p Pair[K, V]) Pair[K, W] { return Pair[K, W]{p.Key, f(p.Value)} })
}

// FlatMapValues pairs each of the values that f makes of a value with its key.
// Nothing moves; order is kept.
func FlatMapValues[K comparable, V, W any](ds Dataset[Pair[K, V]], f func(V) []W) Dataset[Pair[K, W]] {
	return FlatMap(ds, func(p Pair[K, V]) []Pair[K, W] {
		var out []Pair[K, W]
		for _, w := range f(p.Value) {
			out = append(out, Pair[K, W]{p.Key, w})
		}
		return out
	})
}

// ReduceByKey combines the values of each key with an associative function.
// What moves is one value a key and partition of the input.
func ReduceByKey[K comparable, V any](ds Dataset[Pair[K, V]], f func(a, b V) V, options ...ShuffleOption) Dataset[Pair[K, V]] {
	return CombineByKey(ds, Combiner[V, V]{Create: func(v V) V { return v }, Add: f, Merge: f}, options...)
}

// FoldByKey is ReduceByKey that begins, in each partition, with zero.
func FoldByKey[K comparable, V any](ds Dataset[Pair[K, V]], zero V, f func(a, b V) V, options ...ShuffleOption) Dataset[Pair[K, V]] {
	return CombineByKey(ds, Combiner[V, V]{Create: func(v V) V { return f(zero, v) }, Add: f, Merge: f}, options...)
}

// AggregateByKey combines the values of each key into something else: seq takes
// a value in, beginning with what zero returns, and comb joins what partitions
// came to.
func AggregateByKey[K comparable, V, C any](ds Dataset[Pair[K, V]], zero func() C, seq func(C, V) C, comb func(a, b C) C, options ...ShuffleOption) Dataset[Pair[K, C]] {
	return CombineByKey(ds, Combiner[V, C]{Create: func(v V) C { return seq(zero(), v) }, Add: seq, Merge: comb}, options...)
}

// shuffleByKey sends every pair to the partition of its key's hash, uncombined.
func shuffleByKey[K comparable, V any](ds Dataset[Pair[K, V]], op string, c keyed[K, V], parts int) (id int) {
	return ds.g.shuffle(op, typeName[Pair[K, V]](), fmt.Sprint(parts), ds.id, &shuffleDecl{maps: ds.parts, partitions: parts,
		write: func(ctx context.Context, part int, _ []byte, out *storage.Sorter) error {
			var key, value []byte
			return ds.each(ctx, part, func(p Pair[K, V]) error {
				var hash uint64
				key, hash = c.hashed(key[:0], &p.Key)
				value = c.value.append(value[:0], &p.Value)
				return out.Add(partition(hash, parts), key, value)
			})
		}})
}

// GroupByKey brings all values of each key together, in the order of the input.
// All rows move: where the values are to be combined, ReduceByKey and
// AggregateByKey move less. The values of one key are in memory at once.
func GroupByKey[K comparable, V any](ds Dataset[Pair[K, V]], options ...ShuffleOption) Dataset[Pair[K, []V]] {
	o, c := shuffleOptionsOf(options), keyedOf[K, V](ds.g, "group by key")
	id := shuffleByKey(ds, "group-by-key", c, o.partitions)
	return shuffledDataset(ds.g, id, o.partitions, func(ctx context.Context, part int, yield func(Pair[K, []V]) error) error {
		return readGroups(ctx, id, part, c, func(key K, g *groups[K, V]) error {
			values, err := g.all()
			if err != nil {
				return err
			}
			return yield(Pair[K, []V]{key, values})
		})
	})
}

// Distinct keeps one of rows that are equal. What moves is one row of each kind
// and partition.
func Distinct[T comparable](ds Dataset[T], options ...ShuffleOption) Dataset[T] {
	return Keys(ReduceByKey(asKeys(ds), func(a, _ bool) bool { return a }, options...))
}

// CoGrouped are the values that a key has in two datasets.
type CoGrouped[V, W any] struct {
	Left  []V
	Right []W
}

// CoGroup brings the values of each key of two datasets together, in the order
// of their inputs. All rows of both move; the values of one key are in memory
// at once.
func CoGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, CoGrouped[V, W]]] {
	o := shuffleOptionsOf(options)
	cl, cr := keyedOf[K, V](left.g, "cogroup"), keyedOf[K, W](right.g, "cogroup")
	l, r := shuffleByKey(left, "cogroup-left", cl, o.partitions), shuffleByKey(right, "cogroup-right", cr, o.partitions)
	id := left.g.add(node{kind: "cogroup", typ: typeName[Pair[K, CoGrouped[V, W]]](), inputs: []int{l, r}})
	return shuffledDataset(left.g, id, o.partitions, func(ctx context.Context, part int, yield func(Pair[K, CoGrouped[V, W]]) error) error {
		a, err := openGroups(ctx, l, part, cl)
		if err != nil {
			return err
		}
		defer a.r.Close()
		b, err := openGroups(ctx, r, part, cr)
		if err != nil {
			return err
		}
		defer b.r.Close()
		return mergeGroups(a, b, yield)
	})
}

// mergeGroups walks two sorted partitions side by side.
func mergeGroups[K comparable, V, W any](a *groups[K, V], b *groups[K, W], yield func(Pair[K, CoGrouped[V, W]]) error) error {
	hasA, hasB := a.next(), b.next()
	for hasA || hasB {
		var p Pair[K, CoGrouped[V, W]]
		var errs [3]error
		takeA := hasA && (!hasB || string(a.raw) <= string(b.raw))
		takeB := hasB && (!hasA || string(b.raw) <= string(a.raw))
		if takeA {
			p.Key, errs[0] = a.key()
			p.Value.Left, errs[1] = a.all()
		}
		if takeB {
			p.Key, errs[0] = b.key()
			p.Value.Right, errs[2] = b.all()
		}
		err := errors.Join(errs[:]...)
		if err == nil {
			err = yield(p)
		}
		if err != nil {
			return err
		}
		if takeA {
			hasA = a.next()
		}
		if takeB {
			hasB = b.next()
		}
	}
	return errors.Join(a.r.Err(), b.r.Err())
}

// Joined is a row of a join: a value of each side.
type Joined[V, W any] struct {
	Left  V
	Right W
}

// Join pairs every value that a key has on the left with every one it has on
// the right. All rows of both move.
func Join[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, Joined[V, W]]] {
	return FlatMap(CoGroup(left, right, options...), func(p Pair[K, CoGrouped[V, W]]) []Pair[K, Joined[V, W]] {
		out := make([]Pair[K, Joined[V, W]], 0, len(p.Value.Left)*len(p.Value.Right))
		for _, v := range p.Value.Left {
			for _, w := range p.Value.Right {
				out = append(out, Pair[K, Joined[V, W]]{p.Key, Joined[V, W]{v, w}})
			}
		}
		return out
	})
}

// orNil are pointers to values, or one nil pointer where there are none.
func orNil[V any](values []V) []*V {
	out := make([]*V, 0, max(1, len(values)))
	for i := range values {
		out = append(out, &values[i])
	}
	if len(out) == 0 {
		out = append(out, nil)
	}
	return out
}

// FullJoin is Join that also keeps the rows that have no partner: the other
// side is nil there.
func FullJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, Joined[*V, *W]]] {
	return FlatMap(CoGroup(left, right, options...), func(p Pair[K, CoGrouped[V, W]]) []Pair[K, Joined[*V, *W]] {
		var out []Pair[K, Joined[*V, *W]]
		for _, v := range orNil(p.Value.Left) {
			for _, w := range orNil(p.Value.Right) {
				out = append(out, Pair[K, Joined[*V, *W]]{p.Key, Joined[*V, *W]{v, w}})
			}
		}
		return out
	})
}

// LeftJoin is Join that also keeps the rows of the left that have no partner:
// the right is nil there.
func LeftJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, Joined[V, *W]]] {
	return FlatMap(CoGroup(left, right, options...), func(p Pair[K, CoGrouped[V, W]]) []Pair[K, Joined[V, *W]] {
		var out []Pair[K, Joined[V, *W]]
		for _, v := range p.Value.Left {
			for _, w := range orNil(p.Value.Right) {
				out = append(out, Pair[K, Joined[V, *W]]{p.Key, Joined[V, *W]{v, w}})
			}
		}
		return out
	})
}

// RightJoin is LeftJoin from the other side.
func RightJoin[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, Joined[*V, W]]] {
	return MapValues(LeftJoin(right, left, options...), func(j Joined[W, *V]) Joined[*V, W] { return Joined[*V, W]{j.Right, j.Left} })
}

// SubtractByKey keeps the pairs of the left whose keys the right does not have.
func SubtractByKey[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, V]] {
	return FlatMap(CoGroup(left, right, options...), func(p Pair[K, CoGrouped[V, W]]) []Pair[K, V] {
		if len(p.Value.Right) > 0 {
			return nil
		}
		var out []Pair[K, V]
		for _, v := range p.Value.Left {
			out = append(out, Pair[K, V]{p.Key, v})
		}
		return out
	})
}

// asKeys makes rows keys without values.
func asKeys[T comparable](ds Dataset[T]) Dataset[Pair[T, bool]] {
	return Map(ds, func(row T) Pair[T, bool] { return Pair[T, bool]{Key: row} })
}

// Subtract keeps the rows of the left that the right does not have, as often as
// the left has them.
func Subtract[T comparable](left, right Dataset[T], options ...ShuffleOption) Dataset[T] {
	return Keys(SubtractByKey(asKeys(left), asKeys(right), options...))
}

// Intersection keeps, once, the rows that both have.
func Intersection[T comparable](left, right Dataset[T], options ...ShuffleOption) Dataset[T] {
	both := Filter(CoGroup(asKeys(left), asKeys(right), options...), func(p Pair[T, CoGrouped[bool, bool]]) bool {
		return len(p.Value.Left) > 0 && len(p.Value.Right) > 0
	})
	return Keys(both)
}
