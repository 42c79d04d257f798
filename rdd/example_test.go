package rdd_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// The examples have one executor and these rows.

type price = rdd.Pair[string, int]

func numbers(g *rdd.Graph) rdd.Dataset[int] { return rdd.Parallelize(g, 2, 1, 2, 3, 4, 5) }

func lines(g *rdd.Graph) rdd.Dataset[string] { return rdd.Parallelize(g, 2, "to be or", "not to be") }

func prices(g *rdd.Graph) rdd.Dataset[price] {
	return rdd.Parallelize(g, 2, price{Key: "plum", Value: 3}, price{Key: "fig", Value: 7},
		price{Key: "plum", Value: 2}, price{Key: "plum", Value: 4})
}

func stock(g *rdd.Graph) rdd.Dataset[price] {
	return rdd.Parallelize(g, 1, price{Key: "plum", Value: 12})
}

var cheapest = rdd.Asc(func(price int) int { return price })

// result prints what an action comes to.
func result[R any](build func(g *rdd.Graph) rdd.Action[R]) {
	r, err := resultOf(build)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r)
}

func resultOf[R any](build func(g *rdd.Graph) rdd.Action[R]) (r R, err error) {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	_, err = volley.Run(context.Background(), volley.Config{Executors: 1, DataDir: dir}, "example", 0,
		func(g *rdd.Graph, _ int) rdd.Action[R] { return build(g) },
		func(ctx context.Context, s *rdd.Session, _ int, a rdd.Action[R]) (_ string, err error) {
			r, err = a.Run(ctx, s)
			return "", err
		})
	return r, err
}

// rows prints the rows of a dataset, in their order.
func rows[T any](build func(g *rdd.Graph) rdd.Dataset[T]) {
	for _, line := range shownRows(build) {
		fmt.Println(line)
	}
}

// anyOrder prints the rows of a dataset whose order depends on hashes, sorted.
func anyOrder[T any](build func(g *rdd.Graph) rdd.Dataset[T]) {
	out := shownRows(build)
	slices.Sort(out)
	for _, line := range out {
		fmt.Println(line)
	}
}

func shownRows[T any](build func(g *rdd.Graph) rdd.Dataset[T]) (out []string) {
	all, err := resultOf(func(g *rdd.Graph) rdd.Action[[]T] { return rdd.Collect(build(g)) })
	if err != nil {
		return []string{err.Error()}
	}
	for _, r := range all {
		out = append(out, fmt.Sprint(r))
	}
	return out
}

func ExampleMap() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Map(numbers(g), func(n int) int { return n * n })
	})
	// Output:
	// 1
	// 4
	// 9
	// 16
	// 25
}

func ExampleFilter() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Filter(numbers(g), func(n int) bool { return n%2 == 0 })
	})
	// Output:
	// 2
	// 4
}

func ExampleFlatMap() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.FlatMap(lines(g), strings.Fields)
	})
	// Output:
	// to
	// be
	// or
	// not
	// to
	// be
}

func ExampleFlatMapAppend() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.FlatMapAppend(numbers(g), func(out []int, n int) []int { return append(out, n, -n) })
	})
	// Output:
	// 1
	// -1
	// 2
	// -2
	// 3
	// -3
	// 4
	// -4
	// 5
	// -5
}

func ExampleKeyBy() {
	rows(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[int, string]] {
		return rdd.KeyBy(lines(g), func(line string) int { return len(line) })
	})
	// Output:
	// {8 to be or}
	// {9 not to be}
}

func ExampleKeys() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.Keys(prices(g))
	})
	// Output:
	// plum
	// fig
	// plum
	// plum
}

func ExampleValues() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Values(prices(g))
	})
	// Output:
	// 3
	// 7
	// 2
	// 4
}

func ExampleMapValues() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.MapValues(prices(g), func(price int) int { return 2 * price })
	})
	// Output:
	// {plum 6}
	// {fig 14}
	// {plum 4}
	// {plum 8}
}

func ExampleFlatMapValues() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.FlatMapValues(prices(g), func(price int) []int { return []int{price, -price} })
	})
	// Output:
	// {plum 3}
	// {plum -3}
	// {fig 7}
	// {fig -7}
	// {plum 2}
	// {plum -2}
	// {plum 4}
	// {plum -4}
}

func ExampleGlom() {
	rows(func(g *rdd.Graph) rdd.Dataset[[]int] {
		return rdd.Glom(numbers(g))
	})
	// Output:
	// [1 2]
	// [3 4 5]
}

func ExampleMapSplits() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.MapSplits(numbers(g), func(part int, rows iter.Seq[int]) iter.Seq[string] {
			return func(yield func(string) bool) {
				sum := 0
				for n := range rows {
					sum += n
				}
				yield(fmt.Sprintf("partition %d: %d", part, sum))
			}
		})
	})
	// Output:
	// partition 0: 3
	// partition 1: 12
}

func ExampleUnion() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Union(numbers(g), rdd.Parallelize(g, 1, 10, 20))
	})
	// Output:
	// 1
	// 2
	// 3
	// 4
	// 5
	// 10
	// 20
}

func ExampleZip() {
	rows(func(g *rdd.Graph) rdd.Dataset[rdd.Joined[int, string]] {
		return rdd.Zip(numbers(g), rdd.Map(numbers(g), func(n int) string { return strings.Repeat("*", n) }))
	})
	// Output:
	// {1 *}
	// {2 **}
	// {3 ***}
	// {4 ****}
	// {5 *****}
}

func ExampleZipWithIndex() {
	rows(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[int64, string]] {
		return rdd.ZipWithIndex(rdd.FlatMap(lines(g), strings.Fields))
	})
	// Output:
	// {0 to}
	// {1 be}
	// {2 or}
	// {3 not}
	// {4 to}
	// {5 be}
}

func ExampleZipWithUniqueID() {
	rows(func(g *rdd.Graph) rdd.Dataset[rdd.Pair[int64, int]] {
		return rdd.ZipWithUniqueID(numbers(g))
	})
	// Output:
	// {0 1}
	// {2 2}
	// {1 3}
	// {3 4}
	// {5 5}
}

func ExampleRange() {
	rows(func(g *rdd.Graph) rdd.Dataset[int64] {
		return rdd.Range(g, 3, 7, 2)
	})
	// Output:
	// 3
	// 4
	// 5
	// 6
}

func ExampleCartesian() {
	rows(func(g *rdd.Graph) rdd.Dataset[rdd.Joined[int, string]] {
		return rdd.Cartesian(rdd.Parallelize(g, 1, 1, 2), rdd.Parallelize(g, 1, "a", "b"))
	})
	// Output:
	// {1 a}
	// {1 b}
	// {2 a}
	// {2 b}
}

func ExampleCoalesce() {
	rows(func(g *rdd.Graph) rdd.Dataset[[]int] {
		return rdd.Glom(rdd.Coalesce(rdd.Parallelize(g, 4, 1, 2, 3, 4), 2))
	})
	// Output:
	// [1 2]
	// [3 4]
}
