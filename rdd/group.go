package rdd

import (
	"context"
	"unsafe"

	"github.com/volley-engine/volley/internal/runner"
)

// shuffleByKey sends every pair to the partition of its key's hash, uncombined.
func shuffleByKey[K comparable, V any](ds Dataset[Pair[K, V]], op string, c keyed[K, V], o shuffleOptions, n func() int) (id int) {
	return ds.g.shuffle(op, typeName[Pair[K, V]](), o.String(), ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.Packs) (*written, error) {
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
	c       keyed[K, V]
	packs   runner.Packs
	table   *table[K, []V]
	most    int
	values  int // bytes of values in the table, about
	spilled *sorter[Pair[K, V]]
}

func newGrouper[K comparable, V any](c keyed[K, V], packs runner.Packs, share int) *grouper[K, V] {
	return &grouper[K, V]{c: c, packs: packs, table: newTable[K, []V](c.key, c.hash, 0), most: packs.Memory() / share}
}

// read takes in a partition of a shuffle, which is of so many bytes.
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
		return eachGroup(ctx, g.spilled, func(rows []Pair[K, V]) error {
			values := make([]V, len(rows))
			for i := range rows {
				values[i] = rows[i].Value
			}
			return yield(rows[0].Key, values)
		})
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

// GroupByKey brings all values of each key together, in the order of the input.
// All rows move: where the values are to be combined, ReduceByKey and
// AggregateByKey move less. The values of one key are in memory at once. Keys
// come in the order of their hashes.
func GroupByKey[K comparable, V any](ds Dataset[Pair[K, V]], options ...ShuffleOption) Dataset[Pair[K, []V]] {
	o, c := shuffleOptionsOf(options), keyedOf[K, V](ds.g, "group by key")
	n := o.count(ds.g, ds.id)
	id := shuffleByKey(ds, "group-by-key", c, o, n)
	ds.g.joinsSmall(id, o, id)
	return byKey(shuffledDataset(ds.g, id, id, o, n, oneByOne(func(ctx context.Context, part int, yield func(Pair[K, []V]) error) error {
		env, err := envOf(ctx)
		if err != nil {
			return err
		}
		g := newGrouper(c, env.packs, 2)
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
func CoGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], options ...ShuffleOption) Dataset[Pair[K, CoGrouped[V, W]]] {
	return coGroup(left, right, "cogroup", shuffleOptionsOf(options)).dataset()
}

// coGrouping are two shuffles whose partitions belong together.
type coGrouping[K comparable, V, W any] struct {
	g           *Graph
	left, right int // nodes of the shuffles
	id          int
	l           keyed[K, V]
	r           keyed[K, W]
	both        keyed[K, either[V, W]]
	o           shuffleOptions
	n           func() int
}

func coGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string, o shuffleOptions) *coGrouping[K, V, W] {
	c := &coGrouping[K, V, W]{g: left.g, o: o, n: o.count(left.g, left.id, right.id)}
	if bad := len(c.g.errs); bad == 0 {
		c.l, c.r = keyedOf[K, V](left.g, op), keyedOf[K, W](left.g, op)
		if len(c.g.errs) == bad {
			c.both = keyedOf[K, either[V, W]](left.g, op)
		}
	}
	c.left = shuffleByKey(left, op+"-left", c.l, o, c.n)
	c.right = shuffleByKey(right, op+"-right", c.r, o, c.n)
	c.id = left.g.add(node{kind: op, typ: typeName[Pair[K, CoGrouped[V, W]]](), inputs: []int{c.left, c.right}})
	left.g.joinsSmall(c.id, o, c.left, c.right)
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
	g := newGrouper(c.both, env.packs, 2)
	defer g.close()
	l, r := newGrouper(c.l, env.packs, 4), newGrouper(c.r, env.packs, 4)
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
func mergeTables[K comparable, V, W any](env *taskEnv, l *table[K, []V], r *table[K, []W], yield func(Pair[K, CoGrouped[V, W]]) error) error {
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
func (c *coGrouping[K, V, W]) bySorting(ctx context.Context, part int, g *grouper[K, either[V, W]], yield func(Pair[K, CoGrouped[V, W]]) error) error {
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
				if err := g.spilled.add(&Pair[K, either[V, W]]{p.Key, either[V, W]{IsRight: true, Right: p.Value}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return g.each(ctx, func(key K, values []either[V, W]) error {
		p := Pair[K, CoGrouped[V, W]]{Key: key}
		for _, e := range values {
			if e.IsRight {
				p.Value.Right = append(p.Value.Right, e.Right)
			} else {
				p.Value.Left = append(p.Value.Left, e.Left)
			}
		}
		return yield(p)
	})
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
