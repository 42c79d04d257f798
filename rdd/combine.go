package rdd

import (
	"context"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// keyedOf returns how pairs are written; what cannot be is a mistake in the plan.
func keyedOf[K comparable, V any](g *Graph, op string) exec.Keyed[K, V] {
	k, err := exec.KeyedOf[K, V]()
	if err != nil {
		g.fail("%s: %v", op, err)
	}
	return k
}

// windowBytes is after how many bytes of rows a map task looks whether it hands on what they
// have come to: it does so if they have many keys. That bounds what a table takes, and is the
// same whatever memory there is: where one window ends and the next begins shows in how sums
// of floating-point numbers are rounded, and in what order functions see values.
var windowBytes = 64 << 20 // a variable for tests, in which few rows fill many windows

// CombineByKey brings the values of each key together. They are combined where
// they are first, so that what moves is one value a key and partition, and
// again where they arrive. Keys come in the order of their hashes, the same one
// always. What does not fit into memory is sorted; the memory that accumulators
// refer to (slices, maps) is not counted.
func CombineByKey[K comparable, V, C any](ds Dataset[Pair[K, V]], by Combiner[V, C],
	options ...ShuffleOption) Dataset[Pair[K, C]] {
	o, c := shuffleOptionsOf(ds.g, "combine by key", options), keyedOf[K, C](ds.g, "combine by key")
	n := o.count(ds.g, ds.id)
	maps, reduces := exec.NewAggregationPool[K, V, C](c), &exec.TablePool[K, C]{Keyed: c}
	id := ds.g.shuffle("combine-by-key", row.TypeName[Pair[K, C]](), o.String(), ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			d := maps.Get(packs.Memory()/2, windowBytes)
			defer maps.Put(d)
			return writeCombined(ctx, ds, part, by, c, d, packs, n())
		}})
	ds.g.mayCoalesce(id, o, id)
	return byKey(shuffledDataset(ds.g, id, id, o, n,
		func(ctx context.Context, part int, yield func([]Pair[K, C]) error) error {
			t := reduces.Get()
			defer reduces.Put(t)
			return readCombined(ctx, id, part, c, t, by.Merge, yield)
		}))
}

// mayCoalesce lets a node join small partitions of shuffles, unless their number
// was asked for.
func (g *Graph) mayCoalesce(id int, o shuffleOptions, shuffles ...int) {
	if o.partitions > 0 {
		return
	}
	g.node(id).joins = shuffles
	for _, sh := range shuffles {
		g.node(sh).family = id + 1
	}
}

// writeCombined runs the map side: it combines window by window.
func writeCombined[K comparable, V, C any](ctx context.Context, ds Dataset[Pair[K, V]], part int, by Combiner[V, C],
	c exec.Keyed[K, C], d *exec.PartitionedAggregation[K, V, C], packs runner.TaskContext,
	parts int) (*written, error) {
	w := exec.NewMapCombine(by, c, d, packs, parts, windowBytes)
	defer w.Close()
	p := livenessOf(ctx)
	err := ds.pull(ctx, part, func(rows []Pair[K, V]) error {
		p.moved(len(rows))
		return w.Add(ctx, rows)
	})
	if err != nil {
		return nil, err
	}
	return made(w.Finish(ctx))
}

// readCombined runs the reduce side. What does not fit into memory is
// sorted by hash and combined as it is read.
func readCombined[K comparable, C any](ctx context.Context, id, part int, c exec.Keyed[K, C], t *exec.Table[K, C],
	merge func(a, b C) C, yield func([]Pair[K, C]) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	same := func(v C) C { return v }
	most := env.packs.Memory() / 2
	var spilled *exec.Sorter[Pair[K, C]]
	defer func() { spilled.Close() }()
	err = readShuffle(ctx, id, part, c.Row, func(rows []Pair[K, C]) error {
		if spilled != nil {
			return spilled.AddAll(rows)
		}
		exec.CombineInto(t, rows, same, merge)
		if t.Content() <= most {
			return nil
		}
		spilled = exec.NewHashSorter(c, env.packs)
		defer t.Clear()
		return spilled.AddAll(t.Entries)
	})
	switch {
	case err != nil:
		return err
	case spilled == nil:
		return exec.YieldByHash(t, env.expect, yield)
	}
	return exec.CombineSorted(ctx, spilled, merge, yield)
}

// ReduceByKey combines the values of each key with an associative function, which
// must not change them.
// What moves is one value a key and partition of the input.
func ReduceByKey[K comparable, V any](ds Dataset[Pair[K, V]], f func(a, b V) V,
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return CombineByKey(ds, Combiner[V, V]{Create: func(v V) V { return v }, Add: f, Merge: f}, options...)
}

// FoldByKey reduces by key and begins, in each partition, with zero, which f must
// not change.
func FoldByKey[K comparable, V any](ds Dataset[Pair[K, V]], zero V, f func(a, b V) V,
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return CombineByKey(ds, Combiner[V, V]{Create: func(v V) V { return f(zero, v) }, Add: f, Merge: f}, options...)
}

// AggregateByKey combines the values of each key into something else: seq takes
// a value in, beginning with what zero returns, and comb joins what partitions
// came to.
func AggregateByKey[K comparable, V, C any](ds Dataset[Pair[K, V]], zero func() C, seq func(C, V) C,
	comb func(a, b C) C, options ...ShuffleOption) Dataset[Pair[K, C]] {
	return CombineByKey(ds, Combiner[V, C]{Create: func(v V) C { return seq(zero(), v) }, Add: seq, Merge: comb},
		options...)
}

// Distinct keeps one of rows that are equal. What moves is one row of each kind
// and partition.
func Distinct[T comparable](ds Dataset[T], options ...ShuffleOption) Dataset[T] {
	return Keys(ReduceByKey(asKeys(ds), func(a, _ bool) bool { return a }, options...))
}
