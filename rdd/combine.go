package rdd

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/volley-engine/volley/internal/runner"
)

// Combiner says how the values of a key become one: Create begins with the
// first value, Add takes another in, Merge joins what two partitions came to. Add
// and Merge may change and return their first argument where Create has made it;
// a value that came from a dataset may be read by others and must not be changed.
type Combiner[V, C any] struct {
	Create func(V) C
	Add    func(C, V) C
	Merge  func(a, b C) C
}

// keyed is how pairs are written, and their keys hashed.
type keyed[K comparable, V any] struct {
	row  codec[Pair[K, V]]
	key  codec[K]
	hash hasher
}

func keyedOf[K comparable, V any](g *Graph, op string) keyed[K, V] {
	key, err := keyCodecOf[K]()
	if err != nil {
		g.fail("%s: this cannot be a key: %v", op, err)
	}
	if _, verr := codecOf[V](); err == nil && verr != nil {
		g.fail("%s: the value cannot be encoded: %v", op, verr)
		err = verr
	}
	k := keyed[K, V]{key: key, hash: hasherOf(key)}
	if err == nil {
		if k.row, err = pairCodecOf[K, V](key); err != nil {
			g.fail("%s: the rows cannot be encoded: %v", op, err)
		}
	}
	return k
}

// CombineByKey brings the values of each key together. They are combined where
// they are first, so that what moves is one value a key and partition, and
// again where they arrive. Keys come in the order of their hashes, the same one
// always. What does not fit into memory is sorted; the memory that accumulators
// refer to (slices, maps) is not counted.
func CombineByKey[K comparable, V, C any](ds Dataset[Pair[K, V]], by Combiner[V, C],
	options ...ShuffleOption) Dataset[Pair[K, C]] {
	o, c := shuffleOptionsOf(options), keyedOf[K, C](ds.g, "combine by key")
	n := o.count(ds.g, ds.id)
	maps, reduces := newAggregationPool[K, V, C](c), &tables[K, C]{keyed: c}
	id := ds.g.shuffle("combine-by-key", typeName[Pair[K, C]](), o.String(), ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			d := maps.get(packs.Memory() / 2)
			defer maps.put(d)
			return writeCombined(ctx, ds, part, by, c, d, packs, n())
		}})
	ds.g.mayCoalesce(id, o, id)
	return byKey(shuffledDataset(ds.g, id, id, o, n,
		func(ctx context.Context, part int, yield func([]Pair[K, C]) error) error {
			t := reduces.get()
			defer reduces.put(t)
			return readCombined(ctx, id, part, c, t, by.Merge, yield)
		}))
}

// mayCoalesce lets a node join small partitions of shuffles, unless their number
// was asked for.
func (g *Graph) mayCoalesce(id int, o shuffleOptions, shuffles ...int) {
	if o.partitions > 0 {
		return
	}
	g.nodes[id].joins = shuffles
	for _, sh := range shuffles {
		g.nodes[sh].family = id + 1
	}
}

// writeCombined is the map side: it combines window by window.
func writeCombined[K comparable, V, C any](ctx context.Context, ds Dataset[Pair[K, V]], part int, by Combiner[V, C],
	c keyed[K, C], d *partitionedAggregation[K, V, C], packs runner.TaskContext, parts int) (*written, error) {
	w := &combining[K, V, C]{by: by, c: c, d: d, packs: packs, out: newSpreader(packs, c.row, parts).unordered(),
		parts: parts}
	w.raw, w.fits = d.raw()
	defer w.close()
	w.begin()
	err := ds.each(ctx, part, func(rows []Pair[K, V]) error { return w.add(ctx, rows) })
	if err == nil {
		err = w.end(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w.out.finish()
}

// readCombined is the side where they arrive. What does not fit into memory is
// sorted by hash and combined as it is read.
func readCombined[K comparable, C any](ctx context.Context, id, part int, c keyed[K, C], t *table[K, C],
	merge func(a, b C) C, yield func([]Pair[K, C]) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	same := func(v C) C { return v }
	most := env.packs.Memory() / 2
	var spilled *sorter[Pair[K, C]]
	defer func() { spilled.close() }()
	err = readBuckets(ctx, id, part, c.row, func(rows []Pair[K, C]) error {
		if spilled != nil {
			return spilled.addAll(rows)
		}
		combineInto(t, rows, same, merge)
		if t.content() <= most {
			return nil
		}
		spilled = newHashSorter(c, env.packs)
		defer t.clear()
		return spilled.addAll(t.entries)
	})
	switch {
	case err != nil:
		return err
	case spilled == nil:
		return yieldByHash(env, t, yield)
	}
	return combineSorted(ctx, spilled, merge, yield)
}

// combineSorted combines the rows of each key as they are read.
func combineSorted[K comparable, C any](ctx context.Context, s *sorter[Pair[K, C]], merge func(a, b C) C,
	yield func([]Pair[K, C]) error) error {
	out := newBatcher(yield)
	var made []Pair[K, C] // of the key in hand, if there is one
	err := eachGroup(ctx, s, func(row *Pair[K, C], fresh bool) (err error) {
		switch {
		case !fresh:
			made[0].Value = merge(made[0].Value, row.Value)
			return nil
		case len(made) > 0:
			err = out.add(made[0])
		}
		made = append(made[:0], *row)
		return err
	})
	if err == nil && len(made) > 0 {
		err = out.add(made[0])
	}
	return firstError(err, out.flush())
}

// tables are for one task after the other, so that each begins with the memory
// that the one before it needed.
type tables[K comparable, C any] struct {
	keyed keyed[K, C]
	pool  sync.Pool
}

func (p *tables[K, C]) get() *table[K, C] {
	if t, ok := p.pool.Get().(*table[K, C]); ok {
		return t
	}
	return newTable[K, C](p.keyed.key, p.keyed.hash, 0)
}

func (p *tables[K, C]) put(t *table[K, C]) {
	if t.pooled() {
		t.clear()
		p.pool.Put(t)
	}
}

// yieldByHash hands out the entries of a table in the order of their hashes, and
// of equal ones in the order of their encodings.
func yieldByHash[K comparable, C any](env *taskEnv, t *table[K, C], yield func([]Pair[K, C]) error) error {
	order := t.byHash()
	env.expect(order)
	out := newBatcher(yield)
	for _, at := range order {
		if err := out.add(t.entries[at.row]); err != nil {
			return err
		}
	}
	return out.flush()
}

// byHash are the entries of a table in the order of their hashes, until the next time.
func (t *table[K, C]) byHash() []ranked {
	if cap(t.order[0]) < len(t.entries) {
		t.order[0], t.order[1] = make([]ranked, cap(t.entries)), make([]ranked, cap(t.entries))
	}
	order := t.order[0][:len(t.entries)]
	for i, h := range t.hashed() {
		order[i] = ranked{h, uint32(i)}
	}
	order = sortRankedIn(order, t.order[1][:len(order)])
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && order[to].rank == order[from].rank {
			to++
		}
		if to > from+1 {
			slices.SortStableFunc(order[from:to], func(a, b ranked) int {
				return cmp.Compare(string(t.codec.append(nil, &t.entries[a.row].Key)),
					string(t.codec.append(nil, &t.entries[b.row].Key)))
			})
		}
		from = to
	}
	return order
}

// ReduceByKey combines the values of each key with an associative function, which
// must not change them.
// What moves is one value a key and partition of the input.
func ReduceByKey[K comparable, V any](ds Dataset[Pair[K, V]], f func(a, b V) V,
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return CombineByKey(ds, Combiner[V, V]{Create: func(v V) V { return v }, Add: f, Merge: f}, options...)
}

// FoldByKey is ReduceByKey that begins, in each partition, with zero, which f must
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
