package rdd_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

func ExampleCollect() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Collect(numbers(g))
	})
	// Output:
	// [1 2 3 4 5]
}

func ExampleCount() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.Count(lines(g))
	})
	// Output:
	// 2
}

func ExampleCountByKey() {
	result(func(g *rdd.Graph) rdd.Action[map[string]int64] {
		return rdd.CountByKey(prices(g))
	})
	// Output:
	// map[fig:1 plum:3]
}

func ExampleCountByValue() {
	result(func(g *rdd.Graph) rdd.Action[map[string]int64] {
		return rdd.CountByValue(rdd.FlatMap(lines(g), strings.Fields))
	})
	// Output:
	// map[be:2 not:1 or:1 to:2]
}

func ExampleCollectAsMap() {
	result(func(g *rdd.Graph) rdd.Action[map[string]int] {
		return rdd.CollectAsMap(stock(g))
	})
	// Output:
	// map[plum:12]
}

func ExampleFirst() {
	result(func(g *rdd.Graph) rdd.Action[string] {
		return rdd.First(lines(g))
	})
	// Output:
	// to be or
}

func ExampleTake() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Take(numbers(g), 2)
	})
	// Output:
	// [1 2]
}

func ExampleTakeOrdered() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.TakeOrdered(numbers(g), 2, func(a, b int) int { return cmp.Compare(b, a) })
	})
	// Output:
	// [5 4]
}

func ExampleTop() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Top(numbers(g), 3)
	})
	// Output:
	// [5 4 3]
}

func ExampleSum() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.Sum(numbers(g))
	})
	// Output:
	// 15
}

func ExampleMean() {
	result(func(g *rdd.Graph) rdd.Action[float64] {
		return rdd.Mean(numbers(g))
	})
	// Output:
	// 3
}

func ExampleMax() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.Max(numbers(g))
	})
	// Output:
	// 5
}

func ExampleMin() {
	result(func(g *rdd.Graph) rdd.Action[string] {
		return rdd.Min(lines(g))
	})
	// Output:
	// not to be
}

func ExampleIsEmpty() {
	result(func(g *rdd.Graph) rdd.Action[bool] {
		return rdd.IsEmpty(rdd.Filter(numbers(g), func(n int) bool { return n > 9 }))
	})
	// Output:
	// true
}

func ExampleReduce() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.Reduce(numbers(g), func(a, b int) int { return a * b })
	})
	// Output:
	// 120
}

func ExampleFold() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.Fold(numbers(g), 0, func(a, b int) int { return a + b })
	})
	// Output:
	// 15
}

func ExampleTreeReduce() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.TreeReduce(numbers(g), func(a, b int) int { return max(a, b) })
	})
	// Output:
	// 5
}

func ExampleAggregated() {
	result(func(g *rdd.Graph) rdd.Action[string] {
		return rdd.Aggregated(numbers(g), func() string { return "" },
			func(all string, n int) string { return all + fmt.Sprint(n) }, func(a, b string) string { return a + b })
	})
	// Output:
	// 12345
}

func ExampleLookup() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Lookup(prices(g), "plum")
	})
	// Output:
	// [3 2 4]
}

func ExampleHistogram() {
	result(func(g *rdd.Graph) rdd.Action[[]int64] {
		return rdd.Then(rdd.Histogram(numbers(g), 0, 3, 6), func(b rdd.Bins) []int64 { return b.Counts })
	})
	// Output:
	// [2 3]
}

func ExampleThen() {
	result(func(g *rdd.Graph) rdd.Action[string] {
		return rdd.Then(rdd.Count(numbers(g)), func(n int64) string { return fmt.Sprint(n, " rows") })
	})
	// Output:
	// 5 rows
}
