package rdd

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// plans are those whose stages are known.
var plans = map[string]func(g *Graph){
	"word-count": func(g *Graph) {
		words := FlatMap(TextFile(g, "text"), strings.Fields)
		counts := ReduceByKey(Map(words, func(w string) Pair[string, int64] {
			return Pair[string, int64]{Key: w, Value: 1}
		}),
			func(a, b int64) int64 { return a + b })
		SaveText(SortByKey(counts), "/out")
	},
	"joins": func(g *Graph) {
		a := KeyBy(Range(g, 0, 10, 2), func(i int64) int64 { return i })
		b := KeyBy(Range(g, 0, 20, 3), func(i int64) int64 { return i })
		Collect(Join(a, b))
		alike := Partitions(4)
		Collect(Join(GroupByKey(a, alike), ReduceByKey(b, func(x, _ int64) int64 { return x }, alike)))
	},
	"loop": func(g *Graph) {
		first := KeyBy(Range(g, 0, 10, 2), func(i int64) int64 { return i })
		p := NewParam[int64](g, "step")
		loop := NewLoop(first, func(now Dataset[Pair[int64, int64]]) Dataset[Pair[int64, int64]] {
			return MapValuesWith(ReduceByKey(now, func(a, b int64) int64 { return a + b }), p,
				func(v, step int64) int64 { return v + step })
		})
		Count(Cache(loop.Now()))
	},
	"union of two stages": func(g *Graph) {
		numbers := Range(g, 0, 10, 2)
		Count(Coalesce(Union(Distinct(numbers), numbers, Repartition(numbers, 3)), 2))
	},
}

// TestPlansFallIntoStages as they are written down.
func TestPlansFallIntoStages(t *testing.T) {
	datadriven.RunTest(t, "testdata/plans", func(t *testing.T, d *datadriven.TestData) string {
		build := plans[strings.TrimSpace(d.Input)]
		if build == nil {
			t.Fatalf("%s: no plan %q", d.Pos, d.Input)
		}
		g := NewGraph()
		build(g)
		if err := g.Err(); err != nil {
			return err.Error()
		}
		return g.Explain()
	})
}
