package rdd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
)

type (
	kv     = Pair[string, int64]
	joined = Pair[string, Joined[int64, *int64]]
)

// manyOperations is a plan of everything that moves rows.
type manyOperations struct {
	Reduced, Sorted, Falling, Dealt, Kept, InPlace, Ranged Action[[]kv]
	Grouped                                                Action[[]Pair[string, []int64]]
	Left                                                   Action[[]joined]
	Distinct, Minus                                        Action[[]string]
	Cogroup                                                Action[[]Pair[string, CoGrouped[int64, int64]]]
	Seen                                                   Counter
}

func buildOperations(g *Graph, partitions int, left, right []kv) manyOperations {
	seen := NewCounter()
	l := Tally(Parallelize(g, partitions, left...), seen, func(kv) int64 { return 1 })
	r := Parallelize(g, max(1, partitions/2), right...)
	add := func(a, b int64) int64 { return a + b }
	spread := Partitions(max(1, partitions))
	reduced := ReduceByKey(l, add)
	return manyOperations{
		Reduced: Collect(reduced), Grouped: Collect(GroupByKey(l, spread)),
		Left:   Collect(LeftJoin(l, ReduceByKey(r, add))),
		Sorted: Collect(SortByKey(l, spread)), Falling: Collect(SortBy(l, func(p kv) int64 { return p.Value },
			Descending())),
		Dealt: Collect(Union(Repartition(l, 3), Coalesce(reduced, 2))), Distinct: Collect(Distinct(Keys(l))),
		Minus:   Collect(Subtract(Keys(l), Keys(r))),
		Cogroup: Collect(CoGroup(l, r)), Kept: Collect(
			SortByKey(Cache(MapValues(reduced, func(v int64) int64 { return 2 * v })))),
		InPlace: Collect(MapValues(Join(ReduceByKey(l, add, spread), ReduceByKey(r, add, spread)),
			func(j Joined[int64, int64]) int64 { return j.Left - j.Right })),
		Ranged: Collect(RepartitionAndSort(l, RangePartitioner("key 3", "key 5"))), Seen: seen,
	}
}

// somePairs has many of some keys.
func somePairs(r *rand.Rand, n, keys int) []kv {
	out := make([]kv, n)
	for i := range out {
		out[i] = kv{Key: fmt.Sprint("key ", r.IntN(1+r.IntN(keys))), Value: r.Int64N(1000)}
	}
	return out
}

// TestOperationsWhileExecutorsAreLost: whatever the partitions, executors and
// memory, and whichever process dies meanwhile, the rows are those of a reference that
// knows only slices and maps.
func TestOperationsWhileExecutorsAreLost(t *testing.T) {
	for seed := range uint64(seeds.Of(3)) {
		for _, partitions := range []int{1, 7, 64} {
			for _, executors := range []int{1, 3} {
				for _, memory := range []int{1 << 16, 256 << 20} {
					name := fmt.Sprintf("seed %d, %d partitions, %d executors, %d bytes", seed, partitions, executors,
						memory)
					r := rand.New(rand.NewPCG(seed, uint64(partitions)))
					left, right := somePairs(r, r.IntN(3000), 400), somePairs(r, r.IntN(300), 600)
					g := NewGraph()
					p := buildOperations(g, partitions, left, right)
					if g.Err() != nil {
						t.Fatal(g.Err())
					}
					f := newFrail(t, g, executors, seed)
					f.deaths, f.memory = 4, memory
					p.check(t, name, NewSession(g, f, Config{TaskMemory: memory}), left, right)
					f.end()
				}
			}
		}
	}
}

func (p manyOperations) check(t *testing.T, name string, s *Session, left, right []kv) {
	ls, rs := map[string][]int64{}, map[string][]int64{}
	for _, r := range left {
		ls[r.Key] = append(ls[r.Key], r.Value)
	}
	for _, r := range right {
		rs[r.Key] = append(rs[r.Key], r.Value)
	}
	sum := func(values []int64) (n int64) {
		for _, v := range values {
			n += v
		}
		return n
	}
	var reduced, doubled, inPlace []kv
	var grouped []Pair[string, []int64]
	var cogrouped []Pair[string, CoGrouped[int64, int64]]
	for k, v := range ls {
		reduced, doubled, grouped = append(reduced, kv{Key: k, Value: sum(v)}),
			append(doubled, kv{Key: k, Value: 2 * sum(v)}),
			append(grouped, Pair[string, []int64]{Key: k, Value: v})
		if rs[k] != nil {
			inPlace = append(inPlace, kv{Key: k, Value: sum(v) - sum(rs[k])})
		}
		cogrouped = append(cogrouped, Pair[string, CoGrouped[int64, int64]]{Key: k,
			Value: CoGrouped[int64, int64]{Left: v, Right: rs[k]}})
	}
	for k, v := range rs {
		if ls[k] == nil {
			cogrouped = append(cogrouped, Pair[string, CoGrouped[int64, int64]]{Key: k,
				Value: CoGrouped[int64, int64]{Left: nil, Right: v}})
		}
	}
	var lefts []joined
	var minus []string
	for _, l := range left {
		j := joined{Key: l.Key, Value: Joined[int64, *int64]{Left: l.Value}}
		if v, ok := rs[l.Key]; ok {
			j.Value.Right = new(sum(v))
		} else {
			minus = append(minus, l.Key)
		}
		lefts = append(lefts, j)
	}
	byKey := func(a, b kv) int { return strings.Compare(a.Key, b.Key) }
	sorted, falling := slices.Clone(left), slices.Clone(left)
	slices.SortStableFunc(sorted, byKey)
	slices.SortStableFunc(falling, func(a, b kv) int { return cmp.Compare(b.Value, a.Value) })
	slices.SortFunc(doubled, byKey)
	agree(t, name+": reduce", s, p.Reduced, reduced, false)
	agree(t, name+": group", s, p.Grouped, grouped, false)
	agree(t, name+": left join", s, p.Left, lefts, false)
	agree(t, name+": sort", s, p.Sorted, sorted, true)
	agree(t, name+": sort, descending", s, p.Falling, falling, true)
	agree(t, name+": repartition, coalesce, union", s, p.Dealt, append(slices.Clone(left), reduced...), false)
	agree(t, name+": distinct", s, p.Distinct, slices.Collect(maps.Keys(ls)), false)
	agree(t, name+": subtract", s, p.Minus, minus, false)
	agree(t, name+": cogroup", s, p.Cogroup, cogrouped, false)
	agree(t, name+": cache", s, p.Kept, doubled, true)
	agree(t, name+": join in place", s, p.InPlace, inPlace, false)
	agree(t, name+": repartition and sort", s, p.Ranged, sorted, true)
	if n := p.Seen.Value(s); n != int64(len(left)) {
		t.Errorf("%s: %d rows were counted of %d", name, n, len(left))
	}
}

// agree runs an action and compares its rows, as sets unless they are ordered.
func agree[T any](t *testing.T, what string, s *Session, a Action[[]T], want []T, ordered bool) {
	t.Helper()
	rows, err := a.Run(context.Background(), s)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, expected := printed(rows), printed(want)
	if !ordered {
		slices.Sort(got)
		slices.Sort(expected)
	}
	if !slices.Equal(got, expected) {
		t.Fatalf("%s: %d rows, want %d, or others", what, len(got), len(expected))
	}
}

// printed are rows as text.
func printed[T any](rows []T) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		switch r := any(r).(type) {
		case joined:
			right := "none"
			if r.Value.Right != nil {
				right = fmt.Sprint(*r.Value.Right)
			}
			out[i] = fmt.Sprint(r.Key, " ", r.Value.Left, " ", right)
		default:
			out[i] = fmt.Sprintf("%v", r)
		}
	}
	return out
}
