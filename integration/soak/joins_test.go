package soak

import (
	"slices"

	"github.com/volley-engine/volley/rdd"
)

// ofTwo are the operations on two datasets.
func ofTwo[K comparable, V any]() []op[K, V] {
	return []op[K, V]{united[K, V], joinedRows[K, V], leftJoined[K, V], rightJoined[K, V], fullJoined[K, V],
		broadcastJoined[K, V], joinedInPlace[K, V],
		cogrouped[K, V], subtracted[K, V], subtractedByKey[K, V], semiJoined[K, V], intersected[K, V]}
}

func united[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	if n.most+o.most > d.limit {
		return filtered(d, k, n)
	}
	out := combined(d, n, o, "Union", n.most+o.most,
		func(_ *built, l, r same[K, V]) same[K, V] { return rdd.Union(l, r) },
		func(l, r []row[K, V]) []row[K, V] { return slices.Concat(l, r) })
	out.ordered, out.moved = n.ordered && o.ordered, n.moved || o.moved
	return out
}

// fewOfEach are other rows, at most two of each key.
func (k *kind[K, V]) fewOfEach(d *draw) *node[row[K, V]] {
	two := func(values []V) []V {
		all := k.settled(values, false)
		return all[:min(2, len(all))]
	}
	return perKey(d, k, k.other(d), "FlatMapValues, two of each, of GroupByKey",
		func(ds same[K, V], o []rdd.ShuffleOption) same[K, V] {
			return rdd.FlatMapValues(rdd.GroupByKey(ds, o...), two)
		}, two)
}

// met is what a key has on both sides; nil where it has nothing.
func (k *kind[K, V]) met(l, r *V) V {
	var a, b uint64
	if l != nil {
		a = 1 + k.valueDigest(*l)
	}
	if r != nil {
		b = 1 + k.valueDigest(*r)
	}
	return k.value.of(both(a, b) % 1000)
}

// joins is the reference of all joins.
func (k *kind[K, V]) joins(left, right bool) func(l, r []row[K, V]) []row[K, V] {
	return func(l, r []row[K, V]) (out []row[K, V]) {
		found, met := map[string][]V{}, map[string]bool{}
		for _, x := range r {
			found[k.keyText(x)] = append(found[k.keyText(x)], x.Value)
		}
		for _, x := range l {
			partners := found[k.keyText(x)]
			met[k.keyText(x)] = true
			for i := range partners {
				out = append(out, row[K, V]{Key: x.Key, Value: k.met(&x.Value, &partners[i])})
			}
			if left && len(partners) == 0 {
				out = append(out, row[K, V]{Key: x.Key, Value: k.met(&x.Value, nil)})
			}
		}
		for _, x := range r {
			if right && !met[k.keyText(x)] {
				out = append(out, row[K, V]{Key: x.Key, Value: k.met(nil, &x.Value)})
			}
		}
		return out
	}
}

// join is a node that joins a dataset with few rows of each key.
func join[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]], words string, left, right bool,
	declare func(l, r same[K, V], o []rdd.ShuffleOption) same[K, V]) *node[row[K, V]] {
	if 2*n.most > d.limit {
		return reduced(d, k, n)
	}
	few := k.fewOfEach(d)
	to, options := spread(d)
	most := 2 * n.most
	if right {
		most += few.most
	}
	return combined(d, n, few, words+to, most,
		func(_ *built, l, r same[K, V]) same[K, V] { return declare(l, r, options) }, k.joins(left, right))
}

func joinedRows[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return join(d, k, n, "Join", false, false, func(l, r same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.Join(l, r, o...), func(j rdd.Joined[V, V]) V { return k.met(&j.Left, &j.Right) })
	})
}

func broadcastJoined[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return join(d, k, n, "BroadcastJoin", false, false, func(l, r same[K, V], _ []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.BroadcastJoin(l, r), func(j rdd.Joined[V, V]) V { return k.met(&j.Left, &j.Right) })
	})
}

// joinedInPlace joins what is spread alike.
func joinedInPlace[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	by := rdd.HashPartitioner[K](one(d, 1, 3, 9))
	return join(d, k, n, "Join in place", false, false, func(l, r same[K, V], _ []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.Join(rdd.PartitionBy(l, by), rdd.PartitionBy(r, by)),
			func(j rdd.Joined[V, V]) V { return k.met(&j.Left, &j.Right) })
	})
}

func leftJoined[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return join(d, k, n, "LeftJoin", true, false, func(l, r same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.LeftJoin(l, r, o...), func(j rdd.Joined[V, *V]) V { return k.met(&j.Left, j.Right) })
	})
}

func rightJoined[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return join(d, k, n, "RightJoin", false, true, func(l, r same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.RightJoin(l, r, o...), func(j rdd.Joined[*V, V]) V { return k.met(j.Left, &j.Right) })
	})
}

func fullJoined[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	return join(d, k, n, "FullJoin", true, true, func(l, r same[K, V], o []rdd.ShuffleOption) same[K, V] {
		return rdd.MapValues(rdd.FullJoin(l, r, o...), func(j rdd.Joined[*V, *V]) V { return k.met(j.Left, j.Right) })
	})
}

// valuesOf are the values of each key.
func (k *kind[K, V]) valuesOf(rows []row[K, V]) map[string][]V {
	out := map[string][]V{}
	for _, g := range k.groups(rows) {
		out[g.text] = g.values
	}
	return out
}

// cogrouped makes a row of all that a key has on both sides.
func cogrouped[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	to, options := spread(d)
	f := func(l, r []V) V {
		l, r = k.settled(l, n.ordered), k.settled(r, o.ordered)
		return k.value.of(digest(joined(l, k.value.text)+"|"+joined(r, k.value.text)) % 1000)
	}
	return combined(d, n, o, "MapValues of CoGroup"+to, n.most+o.most, func(_ *built, l, r same[K, V]) same[K, V] {
		return rdd.MapValues(rdd.CoGroup(l, r, options...), func(g rdd.CoGrouped[V, V]) V { return f(g.Left, g.Right) })
	}, func(l, r []row[K, V]) (out []row[K, V]) {
		lefts, rights := k.valuesOf(l), k.valuesOf(r)
		for _, g := range k.groups(slices.Concat(l, r)) {
			out = append(out, row[K, V]{Key: g.key, Value: f(lefts[g.text], rights[g.text])})
		}
		return out
	})
}

// having are the rows whose keys the right has, or has not.
func (k *kind[K, V]) having(has bool) func(l, r []row[K, V]) []row[K, V] {
	return func(l, r []row[K, V]) (out []row[K, V]) {
		rights := k.valuesOf(r)
		for _, x := range l {
			if (rights[k.keyText(x)] != nil) == has {
				out = append(out, x)
			}
		}
		return out
	}
}

func subtractedByKey[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	to, options := spread(d)
	return combined(d, n, o, "SubtractByKey"+to, n.most,
		func(_ *built, l, r same[K, V]) same[K, V] { return rdd.SubtractByKey(l, r, options...) }, k.having(false))
}

func semiJoined[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	to, options := spread(d)
	return combined(d, n, o, "SemiJoin"+to, n.most,
		func(_ *built, l, r same[K, V]) same[K, V] { return rdd.SemiJoin(l, r, options...) }, k.having(true))
}

// ofKeys are the rows made of the keys of others.
func (k *kind[K, V]) ofKeys(rows []row[K, V]) (out []row[K, V]) {
	for _, r := range rows {
		out = append(out, k.ofKey(r.Key))
	}
	return out
}

func subtracted[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	to, options := spread(d)
	return combined(d, n, o, "Subtract of Keys"+to, n.most, func(_ *built, l, r same[K, V]) same[K, V] {
		return rdd.Map(rdd.Subtract(rdd.Keys(l), rdd.Keys(r), options...), k.ofKey)
	}, func(l, r []row[K, V]) []row[K, V] { return k.ofKeys(k.having(false)(l, r)) })
}

func intersected[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) *node[row[K, V]] {
	o := k.other(d)
	to, options := spread(d)
	return combined(d, n, o, "Intersection of Keys"+to, min(n.most, o.most),
		func(_ *built, l, r same[K, V]) same[K, V] {
			return rdd.Map(rdd.Intersection(rdd.Keys(l), rdd.Keys(r), options...), k.ofKey)
		}, func(l, r []row[K, V]) (out []row[K, V]) {
			for _, g := range k.groups(k.having(true)(l, r)) {
				out = append(out, k.ofKey(g.key))
			}
			return out
		})
}
