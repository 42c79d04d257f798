package soak

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// byKey are the operations on one dataset that bring the values of a key together.
func byKey[K comparable, V any]() []op[K, V] {
	return []op[K, V]{grouped[K, V], groupsMoved[K, V], reduced[K, V], firstOfEach[K, V], folded[K, V],
		aggregated[K, V], listed[K, V], combinedByKey[K, V], distinct[K, V], sortedGroups[K, V]}
}

// spreading are those that deal rows out, or bring them into an order.
func spreading[K comparable, V any]() []op[K, V] {
	return []op[K, V]{repartitioned[K, V], hashed[K, V], sentTo[K, V], sortedBy[K, V], sortedByNumber[K, V],
		sortedByAll[K, V], orderedBy[K, V]}
}

// sortable are keys that both the engine and the reference put into an order.
type sortable interface {
	rdd.Ordered
	cmp.Ordered
}

// sorting are those for keys that have an order.
func sorting[K sortable, V any]() []op[K, V] {
	return []op[K, V]{sortedByKey[K, V], sortedWithin[K, V], ranged[K, V]}
}

// spread are the options of a shuffle: a number of partitions, or none.
func spread(d *draw) (words string, options []rdd.ShuffleOption) {
	if n := one(d, 0, 0, 1, 3, 8, 40); n > 0 {
		return fmt.Sprint(" to ", n), []rdd.ShuffleOption{rdd.Partitions(n)}
	}
	return "", nil
}

// group is a key with its values, in the order of the input.
type group[K comparable, V any] struct {
	key    K
	text   string
	values []V
}

// groups are rows brought together by key.
func (k *kind[K, V]) groups(rows []row[K, V]) (all []*group[K, V]) {
	at := map[string]*group[K, V]{}
	for _, r := range rows {
		text := k.keyText(r)
		if at[text] == nil {
			at[text] = &group[K, V]{key: r.Key, text: text}
			all = append(all, at[text])
		}
		at[text].values = append(at[text].values, r.Value)
	}
	return all
}

// settled are the values of a group in an order that does not go by that of the input
// where that has none.
func (k *kind[K, V]) settled(values []V, ordered bool) []V {
	if ordered {
		return values
	}
	return sortedRows(values, func(a, b V) int { return strings.Compare(k.value.text(a), k.value.text(b)) })
}

// perKey is a node that has a row, or some, for every key.
func perKey[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]], words string,
	declare func(ds same[K, V], options []rdd.ShuffleOption) same[K, V], refer func(values []V) []V) *node[row[K, V]] {
	to, options := spread(d)
	return derived(d, n, words+to, func(_ *built, ds same[K, V]) same[K, V] { return declare(ds, options) },
		allRows(func(rows []row[K, V]) (out []row[K, V]) {
			for _, g := range k.groups(rows) {
				for _, v := range refer(g.values) {
					out = append(out, row[K, V]{Key: g.key, Value: v})
				}
			}
			return out
		})).dealt()
}

// placed mixes the place of a value within its group into it.
func (k *kind[K, V]) placed(ordered bool) func([]V) []V {
	return func(values []V) []V {
		out := make([]V, 0, len(values))
		for i, v := range k.settled(values, ordered) {
			out = append(out, k.revalued(uint64(i))(v))
		}
		return out
	}
}

func grouped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.placed(n.ordered)
	return perKey(d, k, n, "FlatMapValues of GroupByKey", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.FlatMapValues(rdd.GroupByKey(ds, o...), f)
	}, f)
}

// groupsMoved has the groups themselves be rows that move.
func groupsMoved[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f, way := k.placed(n.ordered), d.IntN(3)
	words := []string{"Repartition", "SortBy", "Cache"}[way]
	return perKey(d, k, n, "FlatMapValues of "+words+" of GroupByKey",
		func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
			all := rdd.GroupByKey(ds, o...)
			switch way {
			case 0:
				all = rdd.Repartition(all, 3)
			case 1:
				all = rdd.SortBy(all, func(g rdd.Pair[K, []V]) int { return -len(g.Value) })
			default:
				all = rdd.Cache(all)
			}
			return rdd.FlatMapValues(all, f)
		}, f)
}

// lesser is the one of two values whose text comes first.
func (k *kind[K, V]) lesser(a, b V) V {
	if k.value.text(b) < k.value.text(a) {
		return b
	}
	return a
}

// least is the value whose text comes first.
func (k *kind[K, V]) least(values []V) []V {
	out := values[0]
	for _, v := range values {
		out = k.lesser(out, v)
	}
	return []V{out}
}

func reduced[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return perKey(d, k, n, "ReduceByKey to the least", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.ReduceByKey(ds, k.lesser, o...)
	}, k.least)
}

// firstOfEach is a function that is associative, and no more.
func firstOfEach[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	if !n.ordered {
		return reduced(d, k, n)
	}
	return perKey(d, k, n, "ReduceByKey to the first", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.ReduceByKey(ds, func(a, _ V) V { return a }, o...)
	}, func(values []V) []V { return values[:1] })
}

func folded[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	zero := k.value.of(d.Uint64() % 1000)
	return perKey(d, k, n, "FoldByKey to the least", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.FoldByKey(ds, zero, k.lesser, o...)
	}, func(values []V) []V { return k.least(append([]V{zero}, values...)) })
}

// tally is an accumulator whose fields are its own business.
type tally struct {
	n   int64
	sum uint64
}

func addTallies(a, b tally) tally { return tally{a.n + b.n, a.sum + b.sum} }

func aggregated[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	add := func(a tally, v V) tally { return tally{a.n + 1, a.sum + k.valueDigest(v)} }
	end := func(a tally) V { return k.value.of(both(uint64(a.n), a.sum) % 1000) }
	return perKey(d, k, n, "AggregateByKey to a sum", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.AggregateByKey(ds, func() tally { return tally{} }, add, addTallies, o...), end)
	}, func(values []V) []V {
		var a tally
		for _, v := range values {
			a = add(a, v)
		}
		return []V{end(a)}
	})
}

// listed is an aggregate that is associative, and no more.
func listed[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	if !n.ordered {
		return aggregated(d, k, n)
	}
	end := func(list []string) V { return k.value.of(digest(strings.Join(list, ",")) % 1000) }
	add := func(list []string, v V) []string { return append(list, k.value.text(v)) }
	return perKey(d, k, n, "AggregateByKey to a list", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		lists := rdd.AggregateByKey(ds, func() []string { return nil }, add,
			func(a, b []string) []string { return append(a, b...) }, o...)
		return rdd.MapValues(lists, end)
	}, func(values []V) []V {
		var list []string
		for _, v := range values {
			list = add(list, v)
		}
		return []V{end(list)}
	})
}

// combinedByKey changes the accumulators that it has made, as it may.
func combinedByKey[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	by := rdd.Combiner[V, *tally]{
		Create: func(v V) *tally { return &tally{1, k.valueDigest(v)} },
		Add:    func(a *tally, v V) *tally { a.n, a.sum = a.n+1, a.sum+k.valueDigest(v); return a },
		Merge:  func(a, b *tally) *tally { *a = addTallies(*a, *b); return a },
	}
	end := func(a *tally) V { return k.value.of(both(a.sum, uint64(a.n)) % 1000) }
	return perKey(d, k, n, "CombineByKey", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.CombineByKey(ds, by, o...), end)
	}, func(values []V) []V {
		a := by.Create(values[0])
		for _, v := range values[1:] {
			a = by.Add(a, v)
		}
		return []V{end(a)}
	})
}

// ofKey is the row that is made of a key.
func (k *kind[K, V]) ofKey(key K) row[K, V] {
	return row[K, V]{Key: key, Value: k.value.of(digest(k.key.text(key)) % 1000)}
}

func distinct[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, options := spread(d)
	return derived(d, n, "Distinct of Keys"+to, func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.Map(rdd.Distinct(rdd.Keys(ds), options...), k.ofKey)
	}, allRows(func(rows []row[K, V]) (out []row[K, V]) {
		for _, g := range k.groups(rows) {
			out = append(out, k.ofKey(g.key))
		}
		return out
	})).dealt()
}

// asTheyAre is a reference to which only the order changes.
func asTheyAre[T any](parts [][]T) [][]T { return parts }

func repartitioned[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to := one(d, 1, 2, 5, 17)
	return derived(d, n, fmt.Sprint("Repartition to ", to),
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.Repartition(ds, to) }, asTheyAre[row[K, V]]).dealt()
}

func hashed[K comparable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to := one(d, 1, 4, 11)
	return derived(d, n, fmt.Sprint("PartitionBy hash to ", to), func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.PartitionBy(ds, rdd.HashPartitioner[K](to))
	}, asTheyAre[row[K, V]]).dealt()
}

// sentTo knows where every row goes, and so in which order they come.
func sentTo[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to := one(d, 1, 3, 7)
	at := func(key K) int { return int(digest(k.key.text(key)) % uint64(to)) }
	out := derived(d, n, fmt.Sprint("PartitionBy a function to ", to), func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.PartitionBy(ds, rdd.PartitionerFunc("digest", to, at))
	}, partsBy(to, func(r row[K, V]) int { return at(r.Key) }))
	out.cut, out.moved = true, true
	return out
}

// partsBy is a reference that sends rows to partitions.
func partsBy[T any](n int, at func(T) int) func([][]T) [][]T {
	return func(parts [][]T) [][]T {
		out := make([][]T, n)
		for _, r := range slices.Concat(parts...) {
			out[at(r)] = append(out[at(r)], r)
		}
		return out
	}
}

// falling are the options of a sort that falls now and then.
func falling(d *draw) (words string, falls bool, options []rdd.ShuffleOption) {
	words, options = spread(d)
	if d.IntN(2) == 0 {
		return words + ", descending", true, append(options, rdd.Descending())
	}
	return words, false, options
}

// sortedBy sorts by a text that a few rows have in common.
func sortedBy[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, falls, options := falling(d)
	out := derived(d, n, "SortBy the text of keys"+to,
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.SortBy(ds, k.keyText, options...) },
		allRows(func(rows []row[K, V]) []row[K, V] {
			return sortedRows(rows, order(falls, func(a,
				b row[K, V]) int {
				return strings.Compare(k.keyText(a), k.keyText(b))
			}))
		})).uncut()
	out.moved = true
	return out
}

// orderedBy sorts by a number that many rows have in common, then by the text of keys.
func orderedBy[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, falls, options := falling(d)
	few := func(r row[K, V]) int8 { return int8(k.digest(r) % 3) }
	by := rdd.Desc(few).Then(rdd.Asc(k.keyText))
	out := derived(d, n, "OrderBy a small number, falling, then the text of keys"+to,
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.OrderBy(ds, by, options...) },
		allRows(func(rows []row[K, V]) []row[K, V] {
			return sortedRows(rows, order(falls, func(a, b row[K, V]) int {
				return cmp.Or(cmp.Compare(few(b), few(a)), strings.Compare(k.keyText(a), k.keyText(b)))
			}))
		})).uncut()
	out.moved = true
	return out
}

// sortedGroups mixes the place of a value among those of its key, in the order of their texts, into it.
func sortedGroups[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	f := k.placed(false)
	return perKey(d, k, n, "FlatMapSortedGroups", func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.FlatMapSortedGroups(ds, rdd.Asc(k.value.text),
			func(key K, values iter.Seq[V]) iter.Seq[row[K, V]] {
				return func(yield func(row[K, V]) bool) {
					place := uint64(0)
					for v := range values {
						if !yield(row[K, V]{Key: key, Value: k.revalued(place)(v)}) {
							return
						}
						place++
					}
				}
			}, o...)
	}, f)
}

// sortedByNumber sorts by a number that many rows have in common.
func sortedByNumber[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, falls, options := falling(d)
	by := func(r row[K, V]) int8 { return int8(k.digest(r) % 7) }
	out := derived(d, n, "SortBy a small number"+to,
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.SortBy(ds, by, options...) },
		allRows(func(rows []row[K, V]) []row[K, V] {
			return sortedRows(rows, order(falls, func(a, b row[K, V]) int { return cmp.Compare(by(a), by(b)) }))
		})).uncut()
	out.moved = true
	return out
}

// sortedByAll gives rows an order, whatever it was before.
func sortedByAll[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, falls, options := falling(d)
	out := derived(d, n, "SortBy the text of rows"+to,
		func(_ *built, ds same[K, V]) same[K, V] { return rdd.SortBy(ds, k.text, options...) },
		allRows(func(rows []row[K, V]) []row[K, V] { return sortedRows(rows, order(falls, k.byText)) })).uncut()
	out.ordered, out.moved = true, true
	return out
}

func sortedByKey[K sortable, V any](d *draw, _ *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	to, falls, options := falling(d)
	out := derived(d, n, "SortByKey"+to, func(_ *built, ds same[K, V]) same[K,
		V] {
		return rdd.SortByKey(ds, options...)
	},
		allRows(func(rows []row[K, V]) []row[K, V] { return sortedRows(rows, order(falls, byKeys[K, V])) })).uncut()
	out.moved = true
	return out
}

// bounds are keys in ascending order, without NaN.
func bounds[K sortable, V any](d *draw, k *kind[K, V]) (out []K) {
	for range 1 + d.IntN(4) {
		if b := k.key.of(d.Uint64() % 300); b == b && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	return out
}

// within is the partition of a key between bounds, each of which begins one.
func within[K sortable](bounds []K, key K) (part int) {
	for _, b := range bounds {
		if key >= b {
			part++
		}
	}
	return part
}

func ranged[K sortable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	at := bounds(d, k)
	out := derived(d, n, fmt.Sprintf("PartitionBy %d bounds", len(at)), func(_ *built, ds same[K, V]) same[K, V] {
		return rdd.PartitionBy(ds, rdd.RangePartitioner(at...))
	}, partsBy(len(at)+1, func(r row[K, V]) int { return within(at, r.Key) }))
	out.cut, out.moved = true, true
	return out
}

func sortedWithin[K sortable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	at, falls := bounds(d, k), d.IntN(2) == 0
	var options []rdd.ShuffleOption
	if falls {
		options = append(options, rdd.Descending())
	}
	out := derived(d, n, fmt.Sprintf("RepartitionAndSort by %d bounds, falling: %v", len(at), falls),
		func(_ *built, ds same[K, V]) same[K, V] {
			return rdd.RepartitionAndSort(ds, rdd.RangePartitioner(at...), options...)
		}, func(parts [][]row[K, V]) [][]row[K, V] {
			out := partsBy(len(at)+1, func(r row[K, V]) int { return within(at, r.Key) })(parts)
			for i := range out {
				out[i] = sortedRows(out[i], order(falls, byKeys[K, V]))
			}
			return out
		})
	out.cut, out.moved = true, true
	return out
}
