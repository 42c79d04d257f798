package rdd_test

import (
	"fmt"
	"iter"

	"github.com/volley-engine/volley/rdd"
)

func ExampleReduceByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.ReduceByKey(prices(g), func(a, b int) int { return a + b })
	})
	// Output:
	// {fig 7}
	// {plum 9}
}

func ExampleFoldByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.FoldByKey(prices(g), 1, func(a, b int) int { return a * b })
	})
	// Output:
	// {fig 7}
	// {plum 24}
}

func ExampleGroupByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, []int]] {
		return rdd.GroupByKey(prices(g))
	})
	// Output:
	// {fig [7]}
	// {plum [3 2 4]}
}

func ExampleGroupBy() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[bool, []int]] {
		return rdd.GroupBy(numbers(g), func(n int) bool { return n > 3 })
	})
	// Output:
	// {false [1 2 3]}
	// {true [4 5]}
}

func ExampleAggregateByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.AggregateByKey(prices(g), func() int { return 0 },
			func(most, price int) int { return max(most, price) }, func(a, b int) int { return max(a, b) })
	})
	// Output:
	// {fig 7}
	// {plum 4}
}

func ExampleCombineByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, []int]] {
		return rdd.CombineByKey(prices(g), rdd.Combiner[int, []int]{
			Create: func(price int) []int { return []int{price} },
			Add:    func(all []int, price int) []int { return append(all, price) },
			Merge:  func(a, b []int) []int { return append(a, b...) },
		})
	})
	// Output:
	// {fig [7]}
	// {plum [3 2 4]}
}

func ExampleSumByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SumByKey(prices(g))
	})
	// Output:
	// {fig 7}
	// {plum 9}
}

func ExampleStatsByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, float64]] {
		return rdd.MapValues(rdd.StatsByKey(prices(g)), func(s rdd.Summary) float64 { return s.Mean })
	})
	// Output:
	// {fig 7}
	// {plum 3}
}

func ExampleMaxByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.MaxByKey(prices(g), cheapest)
	})
	// Output:
	// {fig 7}
	// {plum 4}
}

func ExampleMinByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.MinByKey(prices(g), cheapest)
	})
	// Output:
	// {fig 7}
	// {plum 2}
}

func ExampleTopByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, []int]] {
		return rdd.TopByKey(prices(g), 2, cheapest)
	})
	// Output:
	// {fig [7]}
	// {plum [2 3]}
}

func ExampleFlatMapSortedGroups() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.FlatMapSortedGroups(prices(g), cheapest, func(fruit string, prices iter.Seq[int]) iter.Seq[string] {
			return func(yield func(string) bool) {
				last := 0
				for p := range prices {
					if last > 0 && !yield(fmt.Sprintf("%s: from %d to %d", fruit, last, p)) {
						return
					}
					last = p
				}
			}
		})
	})
	// Output:
	// plum: from 2 to 3
	// plum: from 3 to 4
}

func ExampleWindowByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, string]] {
		return rdd.WindowByKey(prices(g), cheapest, func(w *rdd.Window[int]) string {
			return fmt.Sprintf("%d is number %d", w.Row(), w.RowNumber())
		})
	})
	// Output:
	// {fig 7 is number 1}
	// {plum 2 is number 1}
	// {plum 3 is number 2}
	// {plum 4 is number 3}
}

func ExampleDistinct() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.Distinct(rdd.Keys(prices(g)))
	})
	// Output:
	// fig
	// plum
}

func ExampleDistinctBy() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.DistinctBy(numbers(g), func(n int) int { return n % 3 })
	})
	// Output:
	// 1
	// 2
	// 3
}

func ExampleCountApproxDistinctByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, int64]] {
		return rdd.CountApproxDistinctByKey(prices(g))
	})
	// Output:
	// {fig 1}
	// {plum 3}
}

func ExampleSortBy() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.SortBy(numbers(g), func(n int) int { return -n })
	})
	// Output:
	// 5
	// 4
	// 3
	// 2
	// 1
}

func ExampleSortByKey() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SortByKey(prices(g))
	})
	// Output:
	// {fig 7}
	// {plum 3}
	// {plum 2}
	// {plum 4}
}

func ExampleOrderBy() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.OrderBy(prices(g), rdd.Asc(func(p price) string { return p.Key }).
			Then(rdd.Desc(func(p price) int { return p.Value })))
	})
	// Output:
	// {fig 7}
	// {plum 4}
	// {plum 3}
	// {plum 2}
}

func ExampleSortWithinPartitions() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.SortWithinPartitions(numbers(g), rdd.Desc(func(n int) int { return n }))
	})
	// Output:
	// 2
	// 1
	// 5
	// 4
	// 3
}

func ExampleRepartition() {
	rows(func(g *rdd.Graph) rdd.Dataset[bool] {
		spread := rdd.Glom(rdd.Repartition(rdd.Range(g, 0, 600, 1), 2))
		return rdd.Map(spread, func(rows []int64) bool { return len(rows) > 200 })
	})
	// Output:
	// true
	// true
}

func ExampleJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, rdd.Joined[int, int]]] {
		return rdd.Join(prices(g), stock(g))
	})
	// Output:
	// {plum {2 12}}
	// {plum {3 12}}
	// {plum {4 12}}
}

func ExampleJoinWith() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.JoinWith(prices(g), stock(g),
			func(fruit string, price, pieces int) string { return fmt.Sprintf("%d %s at %d", pieces, fruit, price) })
	})
	// Output:
	// 12 plum at 2
	// 12 plum at 3
	// 12 plum at 4
}

func ExampleLeftJoinWith() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.LeftJoinWith(prices(g), stock(g), func(fruit string, price int, pieces *int) string {
			if pieces == nil {
				return fruit + " is sold out"
			}
			return fmt.Sprintf("%d %s at %d", *pieces, fruit, price)
		})
	})
	// Output:
	// 12 plum at 2
	// 12 plum at 3
	// 12 plum at 4
	// fig is sold out
}

func ExampleSemiJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SemiJoin(prices(g), stock(g))
	})
	// Output:
	// {plum 2}
	// {plum 3}
	// {plum 4}
}

func ExampleAntiJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.AntiJoin(prices(g), stock(g))
	})
	// Output:
	// {fig 7}
}

func ExampleCoGroup() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, rdd.CoGrouped[int, int]]] {
		return rdd.CoGroup(prices(g), stock(g))
	})
	// Output:
	// {fig {[7] []}}
	// {plum {[3 2 4] [12]}}
}

func ExampleBroadcastJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[string, rdd.Joined[int, int]]] {
		return rdd.BroadcastJoin(prices(g), stock(g))
	})
	// Output:
	// {plum {2 12}}
	// {plum {3 12}}
	// {plum {4 12}}
}

func ExampleSubtractByKey() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SubtractByKey(prices(g), stock(g))
	})
	// Output:
	// {fig 7}
}

func ExampleSubtract() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Subtract(numbers(g), rdd.Parallelize(g, 1, 2, 3))
	})
	// Output:
	// 1
	// 4
	// 5
}

func ExampleMapSplitsInPlace() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[price] {
		dear := func(_ int, rows iter.Seq[price]) iter.Seq[price] {
			return func(yield func(price) bool) {
				for p := range rows {
					if p.Value > 3 && !yield(p) {
						return
					}
				}
			}
		}
		return rdd.MapSplitsInPlace(rdd.PartitionBy(prices(g), rdd.HashPartitioner[string](2)), dear)
	})
	// Output:
	// {fig 7}
	// {plum 4}
}

func ExampleIntersection() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Intersection(numbers(g), rdd.Parallelize(g, 1, 2, 3, 9))
	})
	// Output:
	// 2
	// 3
}
