package rdd

import (
	"context"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// shuffleRows adds a shuffle that sends each row where to says, which is made
// anew for each partition of the input.
func shuffleRows[T any](ds Dataset[T], kind, detail string, parts int, to func(part int) func(*T) int) (id int,
	codec row.Codec[T]) {
	codec, err := row.CodecOf[T]()
	if err != nil {
		ds.g.fail("%s: the rows cannot be encoded: %v", kind, err)
	}
	id = ds.g.shuffle(kind, row.TypeName[T](), detail, ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			out := exec.NewWriter(packs, codec, parts)
			defer out.Close()
			where := to(part)
			err := ds.each(ctx, part, func(rows []T) error {
				for i := range rows {
					if err := out.Add(where(&rows[i]), &rows[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			return made(out.Finish())
		}})
	return id, codec
}

// Repartition deals the rows out to a number of partitions, which come to have
// as many rows each. All rows move; those of one partition keep their order.
func Repartition[T any](ds Dataset[T], n int) Dataset[T] {
	parts := ds.g.partitions("repartition", n)
	id, row := shuffleRows(ds, "repartition", fmt.Sprint(parts), parts, func(part int) func(*T) int {
		next := part % parts
		return func(*T) int {
			next = (next + 1) % parts
			return next
		}
	})
	return Dataset[T]{g: ds.g, id: id, parts: func() int { return parts },
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			return readShuffle(ctx, id, part, row, yield)
		}}
}

// Partitioner says which partition a key belongs to.
type Partitioner[K comparable] struct {
	n      int
	asked  int // partitions
	hashed bool
	detail string
	of     func(*K) int
}

// HashPartitioner spreads keys over n partitions by their hashes.
func HashPartitioner[K comparable](n int) Partitioner[K] {
	c, _ := row.KeyCodecOf[K]() // PartitionBy says what is wrong with it
	hash := row.HasherOf(c)
	parts := min(max(1, n), mostPartitions)
	return Partitioner[K]{n: parts, asked: n, hashed: true, detail: fmt.Sprintf("hash %d", parts), of: func(k *K) int {
		var out [1]uint64
		one := []Pair[K, struct{}]{{Key: *k}}
		return row.Partition(row.Hashes(hash, one, out[:0:1])[0], parts)
	}}
}

// RangePartitioner cuts keys at ascending bounds: each begins a partition.
func RangePartitioner[K interface {
	comparable
	Ordered
}](bounds ...K) Partitioner[K] {
	o := exec.KeyOrderOf[K](false)
	n := len(bounds) + 1
	return Partitioner[K]{n: n, asked: n, detail: fmt.Sprintf("range %v", bounds), of: func(k *K) int {
		at, found := slices.BinarySearchFunc(bounds, *k, o.Cmp)
		if found {
			return at + 1
		}
		return at
	}}
}

// PartitionerFunc sends keys where f says: a number from 0 up to n, n left out.
// The name tells plans apart.
func PartitionerFunc[K comparable](name string, n int, f func(K) int) Partitioner[K] {
	parts := min(max(1, n), mostPartitions)
	return Partitioner[K]{n: parts, asked: n, detail: fmt.Sprintf("%s %d", name, parts), of: func(k *K) int {
		p := f(*k)
		if p < 0 || p >= parts {
			panic(fmt.Sprintf("partitioner %s: partition %d of key %v is not one of %d", name, p, *k, parts))
		}
		return p
	}}
}

// PartitionBy moves every pair to the partition that a partitioner gives its
// key. All rows move; those of one partition keep their order.
func PartitionBy[K comparable, V any](ds Dataset[Pair[K, V]], p Partitioner[K]) Dataset[Pair[K, V]] {
	ds.g.partitions("partition by", p.asked)
	if _, err := row.KeyCodecOf[K](); err != nil {
		ds.g.fail("partition by: this cannot be a key: %v", err)
	}
	id, row := shuffleRows(ds, "partition-by", p.detail, p.n, func(int) func(*Pair[K, V]) int {
		return func(r *Pair[K, V]) int { return p.of(&r.Key) }
	})
	out := Dataset[Pair[K, V]]{g: ds.g, id: id, parts: func() int { return p.n },
		produce: func(ctx context.Context, part int, yield func([]Pair[K, V]) error) error {
			return readShuffle(ctx, id, part, row, yield)
		}}
	if p.hashed {
		out.spread = p.n
	}
	return out
}

// RepartitionAndSort does what PartitionBy does, with each partition sorted by key; pairs of
// equal keys keep their order. All rows move.
func RepartitionAndSort[K interface {
	comparable
	Ordered
}, V any](ds Dataset[Pair[K, V]], p Partitioner[K], options ...ShuffleOption) Dataset[Pair[K, V]] {
	ds.g.partitions("repartition and sort", p.asked)
	k := exec.KeyOrderOf[K](sortOptionsOf(ds.g, "repartition and sort", options).descending)
	o := exec.OrderBy(k, func(r *Pair[K, V]) K { return r.Key })
	id, row := shuffleRows(ds, "repartition-and-sort", p.detail, p.n, func(int) func(*Pair[K, V]) int {
		return func(r *Pair[K, V]) int { return p.of(&r.Key) }
	})
	return Dataset[Pair[K, V]]{g: ds.g, id: id, parts: func() int { return p.n },
		produce: func(ctx context.Context, part int, yield func([]Pair[K, V]) error) error {
			env, err := envOf(ctx)
			if err != nil {
				return err
			}
			s := exec.NewSorter(row, o, env.packs)
			defer s.Close()
			if err := readShuffle(ctx, id, part, row, s.AddAll); err != nil {
				return err
			}
			return s.Each(ctx, yield)
		}}
}
