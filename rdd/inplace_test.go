package rdd_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// TestSplitsMappedInPlaceAreJoinedInPlace: pairs whose keys stay are joined without moving again, with the rows that a
// map of both sides has; a key that does not stay fails the action.
func TestSplitsMappedInPlaceAreJoinedInPlace(t *testing.T) {
	type pair = rdd.Pair[string, int64]
	by := rdd.HashPartitioner[string](4)
	sums := func(g *rdd.Graph) rdd.Dataset[pair] {
		return rdd.ReduceByKey(rdd.Map(rdd.Range(g, 0, 100, 3), func(n int64) pair {
			return pair{Key: fmt.Sprint(n % 20), Value: n}
		}), func(a, b int64) int64 { return a + b }, rdd.Partitions(4))
	}
	var explained [2]string
	for i, inPlace := range []bool{true, false} {
		got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]rdd.Pair[string, rdd.Joined[string, int64]]] {
			double := func(_ int, rows iter.Seq[pair]) iter.Seq[rdd.Pair[string, string]] {
				return func(yield func(rdd.Pair[string, string]) bool) {
					for p := range rows {
						if !yield(rdd.Pair[string, string]{Key: p.Key, Value: fmt.Sprint(2 * p.Value)}) {
							return
						}
					}
				}
			}
			left := rdd.MapSplits(sums(g), double)
			if inPlace {
				left = rdd.MapSplitsInPlace(sums(g), double)
			}
			joined := rdd.Join(left, rdd.PartitionBy(sums(g), by))
			explained[i] = g.Explain()
			return rdd.Collect(joined)
		})
		if err != nil || len(got) != 20 {
			t.Fatal(len(got), err)
		}
		for _, p := range got {
			if p.Value.Left != fmt.Sprint(2*p.Value.Right) {
				t.Errorf("%+v", p)
			}
		}
	}
	if !strings.Contains(explained[0], "join (in place)") || strings.Contains(explained[1], "join (in place)") {
		t.Errorf("what is in place is the other way round:\n%s\n%s", explained[0], explained[1])
	}
	_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.Count(rdd.MapSplitsInPlace(sums(g), func(_ int, rows iter.Seq[pair]) iter.Seq[pair] {
			return func(yield func(pair) bool) {
				for p := range rows {
					if !yield(pair{Key: p.Key + "!", Value: 1}) {
						return
					}
				}
			}
		}))
	})
	if err == nil || !strings.Contains(err.Error(), "which is of partition") {
		t.Errorf("keys that go elsewhere: %v", err)
	}
}
