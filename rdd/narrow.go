package rdd

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Parallelize returns a dataset of the given rows, in a number of partitions. They
// are part of the program: what is large belongs into a file.
func Parallelize[T any](g *Graph, partitions int, rows ...T) Dataset[T] {
	n := g.partitions("parallelize", partitions)
	mustEncode[T](g, "parallelize", "rows")
	digest, size := digestOf(rows)
	id := g.add(node{kind: "parallelize", typ: row.TypeName[T](), detail: fmt.Sprintf("%d %v", n, digest),
		bytes: func() int64 { return size }})
	return Dataset[T]{g: g, id: id, parts: func() int { return n },
		produce: func(_ context.Context, part int, yield func([]T) error) error {
			return row.InBatches(rows[part*len(rows)/n:(part+1)*len(rows)/n], yield)
		}}
}

// digestOf returns what tells other values apart, for the plan's fingerprint, and says how
// many bytes they are.
func digestOf(v any) (digest string, bytes int64) {
	raw, err := Encode(v)
	if err != nil {
		return err.Error(), 0
	}
	h := fnv.New64a()
	_, _ = h.Write(raw)
	return fmt.Sprintf("%d bytes %x", len(raw), h.Sum64()), int64(len(raw))
}

// Range returns a dataset of the whole numbers from `from` up to, but without, to.
func Range(g *Graph, from, to int64, partitions int) Dataset[int64] {
	n, rows := int64(g.partitions("range", partitions)), max(0, to-from)
	id := g.add(node{kind: "range", typ: "int64", detail: fmt.Sprint(from, to, n),
		bytes: func() int64 { return 8 * rows }})
	return Dataset[int64]{g: g, id: id, parts: func() int { return int(n) },
		produce: func(ctx context.Context, part int, yield func([]int64) error) error {
			p := int64(part)
			batch := make([]int64, row.BatchSize[int64]())
			for i, to := from+shareOf(rows, p, n), from+shareOf(rows, p+1, n); i < to; i += int64(len(batch)) {
				batch = batch[:min(int64(len(batch)), to-i)]
				for k := range batch {
					batch[k] = i + int64(k)
				}
				if err := cmp.Or(ctx.Err(), yield(batch)); err != nil {
					return err
				}
			}
			return nil
		}}
}

// shareOf returns where part p of n of some rows begins, without overflow.
func shareOf(rows, p, n int64) int64 { return rows/n*p + rows%n*p/n }

// Generate returns a dataset that f makes, a partition at a time, from a random
// number generator that is seeded for the partition: the same one always has
// the same rows.
func Generate[T any](g *Graph, partitions int, seed uint64, f func(part int, r *rand.Rand) iter.Seq[T]) Dataset[T] {
	n := g.partitions("generate", partitions)
	id := g.add(node{kind: "generate", typ: row.TypeName[T](), detail: fmt.Sprint(n, seed), user: true})
	return Dataset[T]{g: g, id: id, parts: func() int { return n },
		produce: func(_ context.Context, part int, yield func([]T) error) error {
			b := row.NewBatcher(yield)
			for row := range f(part, rand.New(rand.NewPCG(seed, uint64(part)))) {
				if err := b.Add(row); err != nil {
					return err
				}
			}
			return b.Flush()
		}}
}

// MapSplits replaces the rows of each partition by those that f makes of them.
// Nothing moves.
func MapSplits[T, U any](ds Dataset[T], f func(part int, rows iter.Seq[T]) iter.Seq[U]) Dataset[U] {
	return derive(ds, "map-splits", func(ctx context.Context, part int, yield func([]U) error) error {
		var failed error
		b := row.NewBatcher(yield)
		for u := range f(part, rowsUntil(ctx, ds, part, &failed)) {
			if failed != nil {
				break // what f makes of rows that are not all is no result
			}
			if err := b.Add(u); err != nil {
				return cmp.Or(failed, err)
			}
		}
		return cmp.Or(failed, b.Flush())
	})
}

// Glom makes one row of each partition: all of its rows, in memory at once.
func Glom[T any](ds Dataset[T]) Dataset[[]T] {
	return MapSplits(ds, func(_ int, rows iter.Seq[T]) iter.Seq[[]T] {
		return func(yield func([]T) bool) {
			all := []T{}
			for row := range rows {
				all = append(all, row)
			}
			yield(all)
		}
	})
}

// Sample keeps each row with a probability, decided by a generator that is
// seeded for the partition. Nothing moves; order is kept.
func Sample[T any](ds Dataset[T], fraction float64, seed uint64) Dataset[T] {
	ds.g.isShare("sample", fraction)
	return sampleBetween(ds, 0, fraction, seed)
}

// SampleByKey keeps each pair with the probability that its key has (Spark's sampleByKey, stratified), decided by a
// generator that is seeded for the partition. A key without a probability is an error. Nothing moves; order is kept.
func SampleByKey[K comparable, V any](ds Dataset[Pair[K, V]], fractions map[K]float64,
	seed uint64) Dataset[Pair[K, V]] {
	for _, f := range fractions {
		ds.g.isShare("sample by key", f)
	}
	out := preservesPartitioning(ds.spread, derive(ds, "sample-by-key",
		func(ctx context.Context, part int, yield func([]Pair[K, V]) error) error {
			r := rand.New(rand.NewPCG(seed, uint64(part)))
			b := row.NewBatcher(yield)
			err := ds.rows(ctx, part, func(p Pair[K, V]) error {
				share, ok := fractions[p.Key]
				if !ok {
					return fault.Newf(fault.UserCode, "sample by key", fmt.Sprintf("key %.100q", fmt.Sprint(p.Key)),
						"it has no fraction").WithHint("give each key one, 0 to leave it out")
				}
				if r.Float64() >= share {
					return nil
				}
				return b.Add(p)
			})
			return cmp.Or(err, b.Flush())
		}))
	ds.g.node(out.id).detail = fmt.Sprint(fractions, seed)
	return out
}

// sampleBetween keeps the rows whose random number is in [from, to).
func sampleBetween[T any](ds Dataset[T], from, to float64, seed uint64) Dataset[T] {
	out := derive(ds, "sample", func(ctx context.Context, part int, yield func([]T) error) error {
		r := rand.New(rand.NewPCG(seed, uint64(part)))
		b := row.NewBatcher(yield)
		err := ds.rows(ctx, part, func(row T) error {
			if x := r.Float64(); x < from || x >= to {
				return nil
			}
			return b.Add(row)
		})
		return cmp.Or(err, b.Flush())
	})
	ds.g.node(out.id).detail = fmt.Sprint(from, to, seed)
	return out
}

// RandomSplit deals the rows out to datasets in proportion to weights: every
// row is in exactly one. Nothing moves; order is kept.
func RandomSplit[T any](ds Dataset[T], seed uint64, weights ...float64) []Dataset[T] {
	total := 0.0
	for _, w := range weights {
		if total += w; !(w >= 0) || math.IsInf(w, 0) {
			ds.g.fail("random split: %v is not a weight of zero or more", w)
		}
	}
	if len(weights) > 0 && !(total > 0) {
		ds.g.fail("random split: the weights %v sum to zero", weights)
	}
	out := make([]Dataset[T], len(weights))
	from := 0.0
	for i, w := range weights {
		to := from + w/total
		if i == len(weights)-1 {
			to = 2 // whatever rounding has left over
		}
		out[i] = sampleBetween(ds, from, to, seed)
		from = to
	}
	return out
}

// Union returns the rows of all datasets, one after the other, duplicates included.
// Nothing moves; order is kept.
func Union[T any](first Dataset[T], others ...Dataset[T]) Dataset[T] {
	all := append([]Dataset[T]{first}, others...)
	var inputs []int
	for _, ds := range all {
		sameGraph("union", first.g, ds.g)
		inputs = append(inputs, ds.id)
	}
	// of finds the dataset that has a partition, and which of its own it is.
	of := func(part int) (k, own int) {
		for k, ds := range all {
			n := ds.parts()
			if part < n {
				return k, part
			}
			part -= n
		}
		return -1, 0
	}
	id := first.g.add(node{kind: "union", typ: row.TypeName[T](), inputs: inputs, reads: func(k, part int) []int {
		if at, own := of(part); at == k {
			return []int{own}
		}
		return nil
	}})
	parts := func() (n int) {
		for _, ds := range all {
			n += ds.parts()
		}
		return n
	}
	return Dataset[T]{g: first.g, id: id, parts: parts,
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			k, own := of(part)
			if k < 0 {
				return fault.Newf(fault.Internal, "read", "a union", "it has no partition %d", part)
			}
			return all[k].each(ctx, own, yield)
		}}
}

// Coalesce joins neighbouring partitions until there are at most n. Nothing
// moves; order is kept.
func Coalesce[T any](ds Dataset[T], n int) Dataset[T] {
	most := ds.g.partitions("coalesce", n)
	parts := func() int { return min(most, ds.parts()) }
	of := func(part int) (from, to int) {
		all, now := ds.parts(), parts()
		return part * all / now, (part + 1) * all / now
	}
	id := ds.g.add(node{kind: "coalesce", typ: row.TypeName[T](), detail: fmt.Sprint(most), inputs: []int{ds.id},
		reads: func(_, part int) []int {
			from, to := of(part)
			return between(from, to)
		}})
	return Dataset[T]{g: ds.g, id: id, parts: parts,
		produce: func(ctx context.Context, part int, yield func([]T) error) error {
			from, to := of(part)
			for p := from; p < to; p++ {
				if err := ds.each(ctx, p, yield); err != nil {
					return err
				}
			}
			return nil
		}}
}

// between returns the numbers from one to another, the latter left out.
func between(from, to int) (out []int) {
	for p := from; p < to; p++ {
		out = append(out, p)
	}
	return out
}

// Cartesian pairs every row of the left with every row of the right, whose
// partitions are computed again for each of the left's rows: both should be
// small, or cheap. Nothing moves.
func Cartesian[T, U any](left Dataset[T], right Dataset[U]) Dataset[Joined[T, U]] {
	id := sameGraph("cartesian", left.g, right.g).add(node{kind: "cartesian", typ: row.TypeName[Joined[T, U]](),
		inputs: []int{left.id, right.id},
		reads: func(k, part int) []int {
			if n := right.parts(); k == 0 {
				return []int{part / n}
			} else {
				return []int{part % n}
			}
		}})
	parts := func() int { return left.parts() * right.parts() }
	return Dataset[Joined[T, U]]{g: left.g, id: id, parts: parts,
		produce: func(ctx context.Context, part int, yield func([]Joined[T, U]) error) error {
			n := right.parts()
			b := row.NewBatcher(yield)
			err := left.rows(ctx, part/n, func(l T) error {
				return right.rows(ctx, part%n, func(r U) error { return b.Add(Joined[T, U]{l, r}) })
			})
			return cmp.Or(err, b.Flush())
		}}
}
