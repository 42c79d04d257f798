package soak

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/rdd"
)

// narrow are the operations that move no rows.
func narrow[K comparable, V any]() []op[K, V] {
	return []op[K, V]{mapped[K, V], mappedValues[K, V], rekeyed[K, V], filtered[K, V], flattened[K, V], appended[K, V],
		flatValues[K, V], tried[K, V],
		bySplits[K, V], underParam[K, V], valuesUnderParam[K, V], keyedBy[K, V], apart[K, V], split[K, V],
		coalesced[K, V], glommed[K, V],
		crossed[K, V], zipped[K, V], numbered[K, V], tallied[K, V], piped[K, V], batched[K, V], sampledWhole[K, V]}
}

// same is a kind's dataset.
type same[K comparable, V any] = rdd.Dataset[row[K, V]]

// again makes another row of a row, its key being one of the kind's first.
func (k *kind[K, V]) again(salt uint64) func(row[K, V]) row[K, V] {
	return func(r row[K, V]) row[K, V] { return k.row(both(k.digest(r), salt), 300) }
}

// revalued makes another value of a row's value.
func (k *kind[K, V]) revalued(salt uint64) func(V) V {
	return func(v V) V { return k.value.of(both(k.valueDigest(v), salt) % 1000) }
}

// rowOf is a reference that makes a row of every row.
func rowOf[T, U any](f func(T) U) func([][]T) [][]U {
	return eachRow(func(r T) []U { return []U{f(r)} })
}

func mapped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.again(d.Uint64())
	return derived(d, n, "Map", func(_ *built, ds same[K, V]) same[K, V] { return rdd.Map(ds, f) }, rowOf(f))
}

// onValues is a reference that makes another value of every value.
func onValues[K comparable, V any](f func(V) V) func([][]row[K, V]) [][]row[K, V] {
	return rowOf(func(r row[K, V]) row[K, V] { return row[K, V]{Key: r.Key, Value: f(r.Value)} })
}

func mappedValues[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.revalued(d.Uint64())
	return derived(d, n, "MapValues", func(_ *built, ds same[K, V]) same[K, V] { return rdd.MapValues(ds, f) },
		onValues[K](f))
}

// rekeyed has few keys, or many.
func rekeyed[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	keys := one(d, uint64(1), 4, 50, 5000)
	f := func(r row[K, V]) row[K, V] { return row[K, V]{Key: k.key.of(k.digest(r) % keys), Value: r.Value} }
	return derived(d, n, fmt.Sprintf("Map to %d keys", keys),
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.Map(ds, f) }, rowOf(f))
}

func filtered[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	salt, share := d.Uint64(), one(d, uint64(0), 1, 5, 9)
	keep := func(r row[K, V]) bool { return both(k.digest(r), salt)%10 >= share }
	return derived(d, n, fmt.Sprintf("Filter of %d in 10", 10-share),
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.Filter(ds, keep) },
		eachRow(func(r row[K, V]) []row[K, V] {
			if keep(r) {
				return []row[K, V]{r}
			}
			return nil
		}))
}

// several makes up to two rows of a row.
func (k *kind[K, V]) several(salt uint64) func(row[K, V]) []row[K, V] {
	return func(r row[K, V]) (out []row[K, V]) {
		for i := range both(k.digest(r), salt) % 3 {
			out = append(out, k.again(salt+i)(r))
		}
		return out
	}
}

func flattened[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	if 2*n.most > d.limit {
		return filtered(d, k, n)
	}
	f := k.several(d.Uint64())
	return derived(d, n, "FlatMap", func(_ *built, ds same[K, V]) same[K, V] { return rdd.FlatMap(ds, f) },
		eachRow(f)).upTo(2 * n.most)
}

func appended[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	if 2*n.most > d.limit {
		return filtered(d, k, n)
	}
	f := k.several(d.Uint64())
	return derived(d, n, "FlatMapAppend", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.FlatMapAppend(ds, func(out []row[K, V], r row[K, V]) []row[K, V] { return append(out, f(r)...) })
	}, eachRow(f)).upTo(2 * n.most)
}

func flatValues[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	salt := d.Uint64()
	f := func(v V) []V { return slices.Repeat([]V{k.revalued(salt)(v)}, int(k.valueDigest(v)%2)) }
	return derived(d, n, "FlatMapValues", func(_ *built, ds same[K, V]) same[K, V] { return rdd.FlatMapValues(ds, f) },
		eachRow(func(r row[K, V]) (out []row[K, V]) {
			for _, v := range f(r.Value) {
				out = append(out, row[K, V]{Key: r.Key, Value: v})
			}
			return out
		}))
}

func tried[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.again(d.Uint64())
	return derived(d, n, "MapErr", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.MapErr(ds, func(r row[K, V]) (row[K, V], error) { return f(r), nil })
	}, rowOf(f))
}

// bySplits takes every second row of each partition, and says in which place it was.
// Where partitions are nobody's promise it passes them on.
func bySplits[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	known := n.cut && n.ordered
	f := func(part int, rows iter.Seq[row[K, V]]) iter.Seq[row[K, V]] {
		return func(yield func(row[K, V]) bool) {
			i := 0
			for r := range rows {
				if known {
					r.Value = k.revalued(both(uint64(part), uint64(i)))(r.Value)
				}
				if i++; (!known || i%2 == 1) && !yield(r) {
					return
				}
			}
		}
	}
	return derived(d, n, "MapSplits", func(_ *built, ds same[K, V]) same[K, V] { return rdd.MapSplits(ds, f) },
		func(parts [][]row[K, V]) [][]row[K, V] {
			out := make([][]row[K, V], len(parts))
			for i, part := range parts {
				out[i] = slices.Collect(f(i, slices.Values(part)))
			}
			return out
		})
}

// param is a parameter with its value, which is set before anything is asked.
func param(b *built, salt uint64) rdd.Param[halfHidden] {
	p := rdd.NewParam[halfHidden](b.g, fmt.Sprint("salt ", len(b.ready)))
	b.ready = append(b.ready, func(_ context.Context, s *rdd.Session) error { return p.Set(s, saltOf(salt)) })
	return p
}

func saltOf(salt uint64) halfHidden { return halfHiddens().of(salt % 1e6) }

func underParam[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	salt := d.Uint64()
	f := func(r row[K, V], p halfHidden) row[K, V] { return k.again(digest(halfHiddens().text(p)))(r) }
	return derived(d, n, "MapWith a Param", func(b *built, ds same[K, V]) same[K,
		V] {
		return rdd.MapWith(ds, param(b, salt), f)
	},
		rowOf(func(r row[K, V]) row[K, V] { return f(r, saltOf(salt)) }))
}

func valuesUnderParam[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	salt := d.Uint64()
	f := func(v V, p halfHidden) V { return k.revalued(digest(halfHiddens().text(p)))(v) }
	return derived(d, n, "MapValuesWith a Param",
		func(b *built, ds same[K, V]) same[K, V] { return rdd.MapValuesWith(ds, param(b, salt), f) },
		onValues[K](func(v V) V { return f(v, saltOf(salt)) }))
}

func keyedBy[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	by := func(r row[K, V]) K { return k.key.of(k.digest(r) % 200) }
	return derived(d, n, "KeyBy", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.KeyBy(ds, by), func(r rdd.Pair[K, row[K, V]]) row[K,
			V] {
			return row[K, V]{Key: r.Key, Value: r.Value.Value}
		})
	}, rowOf(func(r row[K, V]) row[K, V] { return row[K, V]{Key: by(r), Value: r.Value} }))
}

// joinSides makes a row of both sides of a pair by place.
func joinSides[K comparable, V any](j rdd.Joined[K, V]) row[K, V] {
	return row[K, V]{Key: j.Left, Value: j.Right}
}

func apart[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return derived(d, n, "Zip of Keys and Values", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.Zip(rdd.Keys(ds), rdd.Values(ds)), joinSides[K, V])
	}, func(parts [][]row[K, V]) [][]row[K, V] { return parts })
}

func split[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	seed := d.Uint64()
	out := derived(d, n, "Union of a RandomSplit", func(_ *built, ds same[K, V]) same[K, V] {
		parts := rdd.RandomSplit(ds, seed, 1, 2, 0.5)
		return rdd.Union(parts[2], parts[0], parts[1])
	}, func(parts [][]row[K, V]) [][]row[K, V] { return parts }).uncut()
	out.ordered = false
	return out
}

func coalesced[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to := 1 + d.IntN(4)
	return derived(d, n, fmt.Sprint("Coalesce to ", to),
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.Coalesce(ds, to) },
		func(parts [][]row[K, V]) [][]row[K, V] { return parts }).uncut()
}

func glommed[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return derived(d, n, "FlatMap of Glom", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.FlatMap(rdd.Glom(ds), func(rows []row[K, V]) []row[K, V] { return rows })
	}, func(parts [][]row[K, V]) [][]row[K, V] { return parts })
}

func crossed[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	if 3*n.most > d.limit {
		return filtered(d, k, n)
	}
	f := func(r row[K, V], i int64) row[K, V] { return k.again(uint64(i))(r) }
	out := derived(d, n, "Cartesian with a Range", func(b *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.Cartesian(ds, rdd.Range(b.g, 0, 3, 2)),
			func(j rdd.Joined[row[K, V], int64]) row[K, V] { return f(j.Left, j.Right) })
	}, eachRow(func(r row[K, V]) []row[K, V] { return []row[K, V]{f(r, 0), f(r, 1), f(r, 2)} })).uncut().upTo(
		3 * n.most)
	out.ordered = false
	return out
}

func zipped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.again(d.Uint64())
	f2 := func(a, b row[K, V]) row[K, V] { return row[K, V]{Key: a.Key, Value: b.Value} }
	return derived(d, n, "Zip with a Map of itself", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.Zip(ds, rdd.Map(ds, f)),
			func(j rdd.Joined[row[K, V], row[K, V]]) row[K, V] { return f2(j.Left, j.Right) })
	}, rowOf(func(r row[K, V]) row[K, V] { return f2(r, f(r)) }))
}

// numbered mixes the numbers of rows into their values, where they have an order.
func numbered[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	known := n.ordered
	f := func(i int64, r row[K, V]) row[K, V] {
		if known {
			r.Value = k.revalued(uint64(i))(r.Value)
		}
		return r
	}
	return derived(d, n, "ZipWithIndex", func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.ZipWithIndex(ds), func(p rdd.Pair[int64, row[K, V]]) row[K, V] { return f(p.Key, p.Value) })
	}, func(parts [][]row[K, V]) [][]row[K, V] {
		i := int64(-1)
		return rowOf(func(r row[K, V]) row[K, V] { i++; return f(i, r) })(parts)
	})
}

// tallied counts rows, and is asked in the end how many there were.
func tallied[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := func(r row[K, V]) int64 { return int64(k.digest(r) % 7) }
	out := derived(d, n, "Tally", func(b *built, ds same[K, V]) same[K, V] {
		c := rdd.NewCounter()
		b.after = append(b.after, func(_ context.Context, s *rdd.Session) error {
			var want int64
			for _, r := range n.rows() {
				want += f(r)
			}
			if got := c.Value(s); got != want {
				return fmt.Errorf("the counter after d%d has %d, want %d", n.id, got, want)
			}
			return nil
		})
		return rdd.Tally(ds, c, f)
	}, func(parts [][]row[K, V]) [][]row[K, V] { return parts })
	return out
}

// piped sends digests through a program and back.
func piped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := func(r row[K, V]) string { return fmt.Sprintf("a%xa", k.digest(r)) }
	g := func(r row[K, V], line string) row[K, V] {
		return row[K, V]{Key: r.Key, Value: k.value.of(digest(line) % 1000)}
	}
	return derived(d, n, "Zip with a Pipe", func(_ *built, ds same[K, V]) same[K, V] {
		lines := rdd.Pipe(rdd.Map(ds, f), "tr", "a", "z")
		return rdd.Map(rdd.Zip(ds, lines), func(j rdd.Joined[row[K, V], string]) row[K,
			V] {
			return g(j.Left, j.Right)
		})
	}, rowOf(func(r row[K, V]) row[K, V] { return g(r, translated(f(r))) }))
}

// translated is what tr makes of a line.
func translated(s string) string {
	out := []byte(s)
	for i := range out {
		if out[i] == 'a' {
			out[i] = 'z'
		}
	}
	return string(out)
}

// sampledWhole keeps all, or nothing.
func sampledWhole[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	seed := d.Uint64()
	return derived(d, n, "Sample of all", func(_ *built, ds same[K, V]) same[K, V] { return rdd.Sample(ds, 1, seed) },
		func(parts [][]row[K, V]) [][]row[K, V] { return parts })
}

// doubled is what a batch of numbers comes to, each of them twice itself.
func doubled(in arrow.Record) (arrow.Record, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	col := in.Column(0).(*array.Int64)
	for i := range col.Len() {
		b.Append(2 * col.Value(i))
	}
	out := b.NewArray()
	defer out.Release()
	return array.NewRecord(in.Schema(), []arrow.Array{out}, int64(col.Len())), nil
}

func batched[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := func(r row[K, V]) int64 { return int64(k.digest(r)) }
	g := func(r row[K, V], twice int64) row[K, V] {
		return row[K, V]{Key: r.Key, Value: k.value.of(uint64(twice) % 1000)}
	}
	return derived(d, n, "Zip with MapBatches", func(_ *built, ds same[K, V]) same[K, V] {
		twice := rdd.MapBatches[int64, int64](rdd.Map(ds, f), doubled)
		return rdd.Map(rdd.Zip(ds, twice), func(j rdd.Joined[row[K, V], int64]) row[K, V] { return g(j.Left, j.Right) })
	}, rowOf(func(r row[K, V]) row[K, V] { return g(r, 2*f(r)) }))
}
