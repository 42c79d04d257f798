package rdd

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/runner"
)

// shuffleByKey sends every pair to the partition of its key's hash, uncombined.
func shuffleByKey[K comparable, V any](ds Dataset[Pair[K, V]], op string, c keyed[K, V], o shuffleOptions,
	n func() int) (id int) {
	return ds.g.shuffle(op, typeName[Pair[K, V]](), o.String(), ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			parts := n()
			out := newSpreader(packs, c.row, parts)
			defer out.Close()
			var hot hotKeys[K]
			var hashes []uint64
			err := ds.each(ctx, part, func(rows []Pair[K, V]) error {
				hashes = hashOf(c.hash, rows, hashes)
				watch(&hot, rows, hashes)
				for i := range rows {
					if err := out.add(partition(hashes[i], parts), &rows[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			w, err := out.finish()
			if err == nil {
				w.hot = hot.hottest()
			}
			return w, err
		}})
}

// grouper brings the values of each key of a partition together, in memory as
// long as they fit, and else by sorting.
type grouper[K comparable, V any] struct {
	op      string
	c       keyed[K, V]
	packs   runner.TaskContext
	table   *table[K, []V]
	most    int
	values  int // bytes of values in the table, about
	spilled *sorter[Pair[K, V]]
}

func newGrouper[K comparable, V any](op string, c keyed[K, V], packs runner.TaskContext, share int) *grouper[K, V] {
	return &grouper[K, V]{op: op, c: c, packs: packs, table: newTable[K, []V](c.key, c.hash, 0),
		most: packs.Memory() / share}
}

// read takes in a partition of a shuffle, which is of the given size.
func (g *grouper[K, V]) read(ctx context.Context, id, part int) error {
	r, err := openShuffle(ctx, id, part)
	if err != nil {
		return err
	}
	var v V
	if heavy := r.args.Bytes * int64(1+unsafe.Sizeof(v)/8); heavy/2 > int64(g.most) {
		g.spill()
	}
	return readBuckets(ctx, id, part, g.c.row, func(rows []Pair[K, V]) error {
		if g.spilled != nil {
			return g.spilled.addAll(rows)
		}
		combineInto(g.table, rows, func(v V) []V { return []V{v} }, func(all []V, v V) []V { return append(all, v) })
		if g.values += len(rows) * int(unsafe.Sizeof(v)+16); g.table.content()+g.values > g.most {
			return g.toSorter()
		}
		return nil
	})
}

// toSorter hands what the table has to a sorter, which takes what comes after it.
func (g *grouper[K, V]) toSorter() error {
	entries := g.table.entries
	g.spill()
	for _, e := range entries {
		for _, v := range e.Value {
			if err := g.spilled.add(&Pair[K, V]{e.Key, v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill makes a sorter take what comes.
func (g *grouper[K, V]) spill() {
	g.spilled, g.table = newHashSorter(g.c, g.packs), nil
}

func (g *grouper[K, V]) close() { g.spilled.close() }

// each hands out the keys in the order of their hashes, each with its values in
// the order in which they came.
func (g *grouper[K, V]) each(ctx context.Context, yield func(key K, values []V) error) error {
	if g.spilled != nil {
		return g.eachSorted(ctx, yield)
	}
	order := g.table.byHash()
	if env, err := envOf(ctx); err == nil {
		env.expect(order)
	}
	for _, at := range order {
		e := &g.table.entries[at.row]
		if err := yield(e.Key, e.Value); err != nil {
			return err
		}
		e.Value = nil
	}
	return nil
}

// eachSorted is each of what went to the sorter.
func (g *grouper[K, V]) eachSorted(ctx context.Context, yield func(key K, values []V) error) error {
	var key K
	var values []V
	end := func() error {
		if len(values) == 0 {
			return nil
		}
		list := values
		if len(values) <= clonedMost {
			list = slices.Clone(values)
			clear(values)
			values = values[:0]
		} else {
			values = nil
		}
		return yield(key, list)
	}
	sizes := newWeighing(g.op, g.c, g.packs)
	err := eachGroup(ctx, g.spilled, func(row *Pair[K, V], fresh bool) (err error) {
		if fresh {
			err = end()
			key = row.Key
		}
		values = append(values, row.Value)
		return firstError(err, sizes.take(row, fresh))
	})
	if err != nil {
		return err
	}
	return end()
}

// clonedMost is how many values a list has that is given away as a copy, so that the memory
// in which it was gathered is there for the next one.
const clonedMost = 1 << 12

// weighing counts what the values of a key take, for those of more than a task may hold to be
// refused.
type weighing[K comparable, V any] struct {
	op    string
	row   codec[Pair[K, V]]
	most  int // 0 is no limit
	bytes int // of the key in hand
	raw   []byte
}

func newWeighing[K comparable, V any](op string, c keyed[K, V], packs runner.TaskContext) *weighing[K, V] {
	return &weighing[K, V]{op: op, row: c.row, most: packs.Held()}
}

// take counts one value more.
func (w *weighing[K, V]) take(row *Pair[K, V], fresh bool) error {
	if w.most == 0 {
		return nil
	}
	if fresh {
		w.bytes = 0
	}
	w.bytes += int(unsafe.Sizeof(row.Value))
	if w.row.flat == 0 {
		w.raw = w.row.append(w.raw[:0], row)
		w.bytes += len(w.raw)
	}
	if w.bytes <= w.most {
		return nil
	}
	return fault.Newf(fault.NoResources, w.op, "key "+shortKey(row.Key),
		"its values alone take more than the %d MiB that a task may hold", w.most>>20).
		WithHint("raise --memory, or combine them: ReduceByKey and AggregateByKey hold no lists of values")
}

// shortKey is a key in an error.
func shortKey(key any) string {
	const most = 60
	text := []rune(fmt.Sprintf("%v", key))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// GroupByKey brings all values of each key together, in the order of the input.
// All rows move: where the values are to be combined, ReduceByKey and
// AggregateByKey move less. The values of one key are in memory at once. Keys
// come in the order of their hashes.
func GroupByKey[K comparable, V any](ds Dataset[Pair[K, V]], options ...ShuffleOption) Dataset[Pair[K, []V]] {
	o, c := shuffleOptionsOf(options), keyedOf[K, V](ds.g, "group by key")
	n := o.count(ds.g, ds.id)
	id := shuffleByKey(ds, "group-by-key", c, o, n)
	ds.g.mayCoalesce(id, o, id)
	return byKey(shuffledDataset(ds.g, id, id, o, n,
		oneByOne(func(ctx context.Context, part int, yield func(Pair[K, []V]) error) error {
			env, err := envOf(ctx)
			if err != nil {
				return err
			}
			g := newGrouper("group by key", c, env.packs, 2)
			defer g.close()
			if err := g.read(ctx, id, part); err != nil {
				return err
			}
			return g.each(ctx, func(key K, values []V) error { return yield(Pair[K, []V]{key, values}) })
		})))
}

// CoGrouped are the values that a key has in two datasets.
type CoGrouped[V, W any] struct {
	Left  []V
	Right []W
}

// either is a row of one of two datasets.
type either[V, W any] struct {
	IsRight bool
	Left    V
	Right   W
}

// CoGroup brings the values of each key of two datasets together, in the order
// of their inputs. All rows of both move; the values of one key are in memory
// at once. Keys come in the order of their hashes.
func CoGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, CoGrouped[V, W]]] {
	return coGroup(left, right, "cogroup", shuffleOptionsOf(options)).dataset()
}

// coGrouping are two shuffles whose partitions belong together.
type coGrouping[K comparable, V, W any] struct {
	g           *Graph
	op          string
	left, right int // nodes of the shuffles
	id          int
	l           keyed[K, V]
	r           keyed[K, W]
	both        keyed[K, either[V, W]]
	o           shuffleOptions
	n           func() int
}

func coGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	o shuffleOptions) *coGrouping[K, V, W] {
	c := &coGrouping[K, V, W]{g: left.g, op: op, o: o, n: o.count(left.g, left.id, right.id)}
	if bad := len(c.g.errs); bad == 0 {
		c.l, c.r = keyedOf[K, V](left.g, op), keyedOf[K, W](left.g, op)
		if len(c.g.errs) == bad {
			c.both = keyedOf[K, either[V, W]](left.g, op)
		}
	}
	c.left = shuffleByKey(left, op+"-left", c.l, o, c.n)
	c.right = shuffleByKey(right, op+"-right", c.r, o, c.n)
	c.id = left.g.add(node{kind: op, typ: typeName[Pair[K, CoGrouped[V, W]]](), inputs: []int{c.left, c.right}})
	left.g.mayCoalesce(c.id, o, c.left, c.right)
	return c
}

func (c *coGrouping[K, V, W]) dataset() Dataset[Pair[K, CoGrouped[V, W]]] {
	return byKey(shuffledDataset(c.g, c.id, c.id, c.o, c.n, oneByOne(c.each)))
}

// each brings a partition of both shuffles together.
func (c *coGrouping[K, V, W]) each(ctx context.Context, part int, yield func(Pair[K, CoGrouped[V, W]]) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	g := newGrouper(c.op, c.both, env.packs, 2)
	defer g.close()
	l, r := newGrouper(c.op, c.l, env.packs, 4), newGrouper(c.op, c.r, env.packs, 4)
	if env.args.Shuffles[c.left][part].Bytes+env.args.Shuffles[c.right][part].Bytes > int64(g.most)/2 {
		return c.bySorting(ctx, part, g, yield)
	}
	if err := l.read(ctx, c.left, part); err != nil {
		return err
	}
	if err := r.read(ctx, c.right, part); err != nil {
		return err
	}
	if l.spilled != nil || r.spilled != nil {
		l.close()
		r.close()
		return c.bySorting(ctx, part, g, yield)
	}
	return mergeTables(env, l.table, r.table, yield)
}

// mergeTables walks the keys of two tables in the order of their hashes.
func mergeTables[K comparable, V, W any](env *taskEnv, l *table[K, []V], r *table[K, []W],
	yield func(Pair[K, CoGrouped[V, W]]) error) error {
	all := newTable[K, CoGrouped[V, W]](l.codec, l.hash, len(l.entries)+len(r.entries))
	for i, h := range l.hashed() {
		at, _ := all.insert(&l.entries[i].Key, h)
		all.entries[at].Value.Left = l.entries[i].Value
	}
	for i, h := range r.hashed() {
		at, _ := all.insert(&r.entries[i].Key, h)
		all.entries[at].Value.Right = r.entries[i].Value
	}
	order := all.byHash()
	env.expect(order)
	for _, at := range order {
		if err := yield(all.entries[at.row]); err != nil {
			return err
		}
	}
	return nil
}

// bySorting is for what does not fit into memory: the rows of both are sorted
// together.
func (c *coGrouping[K, V, W]) bySorting(ctx context.Context, part int, g *grouper[K, either[V, W]],
	yield func(Pair[K, CoGrouped[V, W]]) error) error {
	g.spill()
	err := readBuckets(ctx, c.left, part, c.l.row, func(rows []Pair[K, V]) error {
		for _, p := range rows {
			if err := g.spilled.add(&Pair[K, either[V, W]]{p.Key, either[V, W]{Left: p.Value}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = readBuckets(ctx, c.right, part, c.r.row, func(rows []Pair[K, W]) error {
			for _, p := range rows {
				if err := g.spilled.add(&Pair[K, either[V, W]]{p.Key,
					either[V, W]{IsRight: true, Right: p.Value}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return eachCoGrouped(ctx, g, yield)
}

// eachCoGrouped hands out the keys of rows of both that were sorted together.
func eachCoGrouped[K comparable, V, W any](ctx context.Context, g *grouper[K, either[V, W]],
	yield func(Pair[K, CoGrouped[V, W]]) error) error {
	var p Pair[K, CoGrouped[V, W]]
	end := func() error {
		if len(p.Value.Left)+len(p.Value.Right) == 0 {
			return nil
		}
		return yield(p)
	}
	sizes := newWeighing(g.op, g.c, g.packs)
	err := eachGroup(ctx, g.spilled, func(row *Pair[K, either[V, W]], fresh bool) (err error) {
		if fresh {
			err = end()
			p = Pair[K, CoGrouped[V, W]]{Key: row.Key}
		}
		if row.Value.IsRight {
			p.Value.Right = append(p.Value.Right, row.Value.Right)
		} else {
			p.Value.Left = append(p.Value.Left, row.Value.Left)
		}
		return firstError(err, sizes.take(row, fresh))
	})
	if err != nil {
		return err
	}
	return end()
}

// SubtractByKey keeps the pairs of the left whose keys the right does not have.
func SubtractByKey[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, V]] {
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
