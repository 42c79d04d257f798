package rdd

import (
	"context"

	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/exec"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// shuffleByKey sends every pair to the partition of its key's hash, uncombined.
func shuffleByKey[K comparable, V any](ds Dataset[Pair[K, V]], op string, c exec.Keyed[K, V], o shuffleOptions,
	n func() int) (id int) {
	return ds.g.shuffle(op, row.TypeName[Pair[K, V]](), o.String(), ds.id, &shuffleDecl{maps: ds.parts,
		write: func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
			parts := n()
			out := exec.NewWriter(packs, c.Row, parts)
			defer out.Close()
			var hot exec.HotKeys[K]
			var hashes []uint64
			err := ds.each(ctx, part, func(rows []Pair[K, V]) error {
				hashes = row.Hashes(c.Hash, rows, hashes)
				exec.Watch(&hot, rows, hashes)
				for i := range rows {
					if err := out.Add(row.Partition(hashes[i], parts), &rows[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			w, err := made(out.Finish())
			if err == nil {
				w.hot = hot.Hottest()
			}
			return w, err
		}})
}

// readGroups takes in a partition of a shuffle.
func readGroups[K comparable, V any](ctx context.Context, g *exec.Grouper[K, V], id, part int) error {
	r, err := openShuffle(ctx, id, part)
	if err != nil {
		return err
	}
	g.SortIfLarge(r.args.Bytes)
	return readShuffle(ctx, id, part, g.Keyed.Row, g.AddAll)
}

// GroupByKey brings all values of each key together, in the order of the input.
// All rows move: where the values are to be combined, ReduceByKey and
// AggregateByKey move less. The values of one key are in memory at once. Keys
// come in the order of their hashes.
func GroupByKey[K comparable, V any](ds Dataset[Pair[K, V]], options ...ShuffleOption) Dataset[Pair[K, []V]] {
	o, c := shuffleOptionsOf(ds.g, "group by key", options), keyedOf[K, V](ds.g, "group by key")
	n := o.count(ds.g, ds.id)
	id := shuffleByKey(ds, "group-by-key", c, o, n)
	ds.g.mayCoalesce(id, o, id)
	return byKey(shuffledDataset(ds.g, id, id, o, n,
		row.OneByOne(func(ctx context.Context, part int, yield func(Pair[K, []V]) error) error {
			env, err := envOf(ctx)
			if err != nil {
				return err
			}
			g := exec.NewGrouper("group by key", c, env.packs, 2)
			defer g.Close()
			if err := readGroups(ctx, g, id, part); err != nil {
				return err
			}
			return g.Each(ctx, env.expect, func(key K, values []V) error {
				return yield(Pair[K, []V]{Key: key, Value: values})
			})
		})))
}

// CoGroup brings the values of each key of two datasets together, in the order
// of their inputs. All rows of both move; the values of one key are in memory
// at once. Keys come in the order of their hashes.
func CoGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, CoGrouped[V, W]]] {
	return coGroup(left, right, "cogroup", shuffleOptionsOf(left.g, "cogroup", options)).dataset()
}

// coGrouping are two shuffles whose partitions belong together.
type coGrouping[K comparable, V, W any] struct {
	g           *Graph
	op          string
	left, right int // nodes of the shuffles
	id          int
	l           exec.Keyed[K, V]
	r           exec.Keyed[K, W]
	both        exec.Keyed[K, exec.Either[V, W]]
	o           shuffleOptions
	n           func() int
}

func coGroup[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]], op string,
	o shuffleOptions) *coGrouping[K, V, W] {
	c := &coGrouping[K, V, W]{g: sameGraph(op, left.g, right.g), op: op, o: o, n: o.count(left.g, left.id, right.id)}
	if bad := len(c.g.errs); bad == 0 {
		c.l, c.r = keyedOf[K, V](left.g, op), keyedOf[K, W](left.g, op)
		if len(c.g.errs) == bad {
			c.both = keyedOf[K, exec.Either[V, W]](left.g, op)
		}
	}
	c.left = shuffleByKey(left, op+"-left", c.l, o, c.n)
	c.right = shuffleByKey(right, op+"-right", c.r, o, c.n)
	c.id = left.g.add(node{kind: op, typ: row.TypeName[Pair[K, CoGrouped[V, W]]](), inputs: []int{c.left, c.right}})
	left.g.mayCoalesce(c.id, o, c.left, c.right)
	return c
}

func (c *coGrouping[K, V, W]) dataset() Dataset[Pair[K, CoGrouped[V, W]]] {
	return byKey(shuffledDataset(c.g, c.id, c.id, c.o, c.n, row.OneByOne(c.each)))
}

// each brings a partition of both shuffles together.
func (c *coGrouping[K, V, W]) each(ctx context.Context, part int, yield func(Pair[K, CoGrouped[V, W]]) error) error {
	env, err := envOf(ctx)
	if err != nil {
		return err
	}
	g := exec.NewGrouper(c.op, c.both, env.packs, 2)
	defer g.Close()
	l, r := exec.NewGrouper(c.op, c.l, env.packs, 4), exec.NewGrouper(c.op, c.r, env.packs, 4)
	if env.args.Shuffles[c.left][part].Bytes+env.args.Shuffles[c.right][part].Bytes > int64(g.Most)/2 {
		return c.bySorting(ctx, part, g, yield)
	}
	if err := readGroups(ctx, l, c.left, part); err != nil {
		return err
	}
	if err := readGroups(ctx, r, c.right, part); err != nil {
		return err
	}
	if l.Spilled != nil || r.Spilled != nil {
		l.Close()
		r.Close()
		return c.bySorting(ctx, part, g, yield)
	}
	return exec.MergeTables(l.Table, r.Table, env.expect, yield)
}

// bySorting groups what does not fit into memory: the rows of both are sorted
// together.
func (c *coGrouping[K, V, W]) bySorting(ctx context.Context, part int, g *exec.Grouper[K, exec.Either[V, W]],
	yield func(Pair[K, CoGrouped[V, W]]) error) error {
	g.Spill()
	err := readShuffle(ctx, c.left, part, c.l.Row, func(rows []Pair[K, V]) error {
		for _, p := range rows {
			either := Pair[K, exec.Either[V, W]]{Key: p.Key, Value: exec.Either[V, W]{Left: p.Value}}
			if err := g.Spilled.Add(&either); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = readShuffle(ctx, c.right, part, c.r.Row, func(rows []Pair[K, W]) error {
			for _, p := range rows {
				if err := g.Spilled.Add(&Pair[K, exec.Either[V, W]]{Key: p.Key,
					Value: exec.Either[V, W]{IsRight: true, Right: p.Value}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return exec.EachCoGrouped(ctx, g, yield)
}

// SubtractByKey returns what AntiJoin does: the pairs of the left whose keys the right does not have.
func SubtractByKey[K comparable, V, W any](left Dataset[Pair[K, V]], right Dataset[Pair[K, W]],
	options ...ShuffleOption) Dataset[Pair[K, V]] {
	return AntiJoin(left, right, options...)
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
