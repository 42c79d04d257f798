package soak

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/rdd"
)

// sizes are how many rows a source has.
func sizes(d *draw) int {
	return d.IntN(30) + one(d, 0, 1, d.limit/100, d.limit/20, d.limit/5, d.limit/3)
}

// source is a new dataset of a kind.
func (k *kind[K, V]) source(d *draw) stage {
	ways := []func(*draw) *node[row[K, V]]{k.parallelized, k.mappedRange, k.generated}
	out := one(d, ways...)(d)
	d.pool[k.name()] = append(d.pool[k.name()], out)
	return staged[K, V]{k, out}
}

// some are rows of a seed.
func (k *kind[K, V]) some(rows, keys int, seed uint64) []row[K, V] {
	out := make([]row[K, V], rows)
	for i := range out {
		out[i] = k.row(both(seed, uint64(i)), keys)
	}
	return out
}

func (k *kind[K, V]) parallelized(d *draw) *node[row[K, V]] {
	rows, keys, parts, seed := min(400, sizes(d)), one(d, 3, 60, 1000), 1+d.IntN(9), d.Uint64()
	return source(d, fmt.Sprintf("Parallelize, %d partitions of %s", parts, k.name()), rows,
		func(b *built) rdd.Dataset[row[K, V]] {
			return rdd.Parallelize(b.g, parts, k.some(rows, keys, seed)...)
		}, func() [][]row[K, V] { return [][]row[K, V]{k.some(rows, keys, seed)} })
}

func (k *kind[K, V]) mappedRange(d *draw) *node[row[K, V]] {
	rows, keys, parts, seed := sizes(d), one(d, 3, 60, 1000), 1+d.IntN(9), d.Uint64()
	f := func(i int64) row[K, V] { return k.row(both(seed, uint64(i)), keys) }
	return source(d, fmt.Sprintf("Map of Range, %d partitions of %s", parts, k.name()), rows,
		func(b *built) rdd.Dataset[row[K, V]] {
			return rdd.Map(rdd.Range(b.g, -5, int64(rows)-5, parts), f)
		}, func() [][]row[K, V] {
			var out []row[K, V]
			for i := range rows {
				out = append(out, f(int64(i)-5))
			}
			return [][]row[K, V]{out}
		})
}

// generated has partitions of other sizes, the first of them empty.
func (k *kind[K, V]) generated(d *draw) *node[row[K, V]] {
	parts, keys, seed := 1+d.IntN(6), one(d, 3, 60, 1000), d.Uint64()
	each := sizes(d) / (parts * parts)
	out := source(d, fmt.Sprintf("Generate, %d partitions of %s", parts, k.name()), each*parts*parts,
		func(b *built) rdd.Dataset[row[K, V]] {
			return rdd.Generate(b.g, parts, seed, func(part int, _ *rand.Rand) iter.Seq[row[K, V]] {
				return slices.Values(k.some(part*each, keys, both(seed, uint64(part))))
			})
		}, func() [][]row[K, V] {
			out := make([][]row[K, V], parts)
			for part := range out {
				out[part] = k.some(part*each, keys, both(seed, uint64(part)))
			}
			return out
		})
	out.cut = true
	return out
}
