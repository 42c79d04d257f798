package rdd_test

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	inputrows "github.com/volley-engine/volley/storage/input/rows"
)

func ExampleParallelize() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.Parallelize(g, 2, "plum", "fig", "melon")
	})
	// Output:
	// plum
	// fig
	// melon
}

func ExampleSample() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.Sample(numbers(g), 0.4, 3)
	})
	// Output:
	// 5
}

func ExampleSampleByKey() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SampleByKey(prices(g), map[string]float64{"plum": 1, "fig": 0}, 1)
	})
	// Output:
	// {plum 3}
	// {plum 2}
	// {plum 4}
}

func ExampleRightJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.Map(rdd.RightJoin(stock(g), prices(g)), func(p rdd.Pair[string, rdd.Joined[*int, int]]) string {
			return fmt.Sprint(p.Key, " ", p.Value.Right, " ", p.Value.Left != nil)
		})
	})
	// Output:
	// fig 7 false
	// plum 2 true
	// plum 3 true
	// plum 4 true
}

func ExampleCoGroup3() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		all := rdd.CoGroup3(prices(g), stock(g), stock(g))
		return rdd.Map(all, func(p rdd.Pair[string, rdd.CoGrouped3[int, int, int]]) string {
			return fmt.Sprint(p.Key, p.Value)
		})
	})
	// Output:
	// fig{[7] [] []}
	// plum{[3 2 4] [12] [12]}
}

func ExamplePartitions() {
	result(func(g *rdd.Graph) rdd.Action[[][]rdd.Pair[string, int]] {
		return rdd.Collect(rdd.Glom(rdd.SortByKey(prices(g), rdd.Partitions(2))))
	})
	// Output:
	// [[{fig 7} {plum 3} {plum 2} {plum 4}] []]
}

func ExampleDescending() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.SortByKey(prices(g), rdd.Descending())
	})
	// Output:
	// {plum 3}
	// {plum 2}
	// {plum 4}
	// {fig 7}
}

func ExampleAsc() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		byName, byPrice := rdd.Asc(func(p price) string { return p.Key }), rdd.Asc(func(p price) int { return p.Value })
		return rdd.OrderBy(prices(g), byName.Then(byPrice))
	})
	// Output:
	// {fig 7}
	// {plum 2}
	// {plum 3}
	// {plum 4}
}

func ExampleDesc() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.OrderBy(prices(g), rdd.Desc(func(p price) int { return p.Value }))
	})
	// Output:
	// {fig 7}
	// {plum 4}
	// {plum 3}
	// {plum 2}
}

func ExampleComparing() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] {
		longest := rdd.Comparing(func(a, b string) int { return len(b) - len(a) })
		return rdd.OrderBy(rdd.FlatMap(lines(g), strings.Fields), longest)
	})
	// Output:
	// not
	// to
	// be
	// or
	// to
	// be
}

func ExampleHashPartitioner() {
	result(func(g *rdd.Graph) rdd.Action[[]int] {
		moved := rdd.PartitionBy(prices(g), rdd.HashPartitioner[string](3))
		return rdd.Then(rdd.Collect(rdd.Glom(moved)), func(parts [][]price) []int {
			var sizes []int
			for _, p := range parts {
				sizes = append(sizes, len(p))
			}
			slices.Sort(sizes)
			return sizes
		})
	})
	// Output:
	// [0 1 3]
}

func ExampleRangePartitioner() {
	result(func(g *rdd.Graph) rdd.Action[[][]price] {
		return rdd.Collect(rdd.Glom(rdd.PartitionBy(prices(g), rdd.RangePartitioner("m"))))
	})
	// Output:
	// [[{fig 7}] [{plum 3} {plum 2} {plum 4}]]
}

func ExamplePartitionerFunc() {
	result(func(g *rdd.Graph) rdd.Action[[][]price] {
		byLength := rdd.PartitionerFunc("by length", 2, func(key string) int { return len(key) % 2 })
		return rdd.Collect(rdd.Glom(rdd.PartitionBy(prices(g), byLength)))
	})
	// Output:
	// [[{plum 3} {plum 2} {plum 4}] [{fig 7}]]
}

func ExampleRepartitionAndSort() {
	result(func(g *rdd.Graph) rdd.Action[[][]price] {
		return rdd.Collect(rdd.Glom(rdd.RepartitionAndSort(prices(g), rdd.RangePartitioner("m"))))
	})
	// Output:
	// [[{fig 7}] [{plum 3} {plum 2} {plum 4}]]
}

func ExampleCountApproxDistinct() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.CountApproxDistinct(rdd.FlatMap(lines(g), strings.Fields))
	})
	// Output:
	// 4
}

func ExampleHistogramOf() {
	result(func(g *rdd.Graph) rdd.Action[rdd.Bins] {
		return rdd.HistogramOf(numbers(g), 2)
	})
	// Output:
	// {[1 3 5] [2 3]}
}

func ExampleForEach() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.ForEach(rdd.Coalesce(lines(g), 1), func(line string) error {
			_, err := fmt.Println(line)
			return err
		})
	})
	// Output:
	// to be or
	// not to be
	// 2
}

func ExampleForEachPartition() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.ForEachPartition(rdd.Coalesce(lines(g), 1), func(part int, rows iter.Seq[string]) error {
			_, err := fmt.Println("partition", part, "has", len(slices.Collect(rows)), "rows")
			return err
		})
	})
	// Output:
	// partition 0 has 2 rows
	// 2
}

func ExampleMapBatches() {
	rows(func(g *rdd.Graph) rdd.Dataset[int64] {
		return rdd.MapBatches[int64, int64](rdd.Range(g, 0, 6, 1), func(r arrow.Record) (arrow.Record, error) {
			return r.NewSlice(1, r.NumRows()), nil // all but the first row of each batch
		})
	})
	// Output:
	// 1
	// 2
	// 3
	// 4
	// 5
}

func ExamplePersist() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.Count(rdd.Persist(rdd.Map(numbers(g), func(n int) int { return n * n }), rdd.Disk, 2))
	})
	// Output:
	// 5
}

func ExampleBinaryFiles() {
	inDir(func(dir string) {
		file(dir, "plum.bin", "\x00\x01")
		rows(func(g *rdd.Graph) rdd.Dataset[string] {
			return rdd.Map(rdd.BinaryFiles(g, dir), func(f rdd.Pair[string, []byte]) string {
				return fmt.Sprint(filepath.Base(f.Key), f.Value)
			})
		})
	})
	// Output:
	// plum.bin[0 1]
}

func ExampleCheckpoint() {
	inDir(func(dir string) {
		result(func(g *rdd.Graph) rdd.Action[int64] {
			kept := rdd.Checkpoint(rdd.Map(numbers(g), func(n int) int { return n * n }), filepath.Join(dir, "squares"))
			return rdd.Count(kept)
		})
	})
	// Output:
	// 5
}

func ExampleCompressed() {
	inDir(func(dir string) {
		result(func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveText(lines(g), filepath.Join(dir, "out"), rdd.Compressed("zstd"))
		})
		rows(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.TextFile(g, filepath.Join(dir, "out")) })
	})
	// Output:
	// 2
	// to be or
	// not to be
}

func ExampleDurable() {
	inDir(func(dir string) {
		result(func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveText(lines(g), filepath.Join(dir, "out"), rdd.Durable())
		})
	})
	// Output:
	// 2
}

func ExampleFilterPartitions() {
	type order struct {
		Country string `col:"country"`
		Sum     int    `col:"sum"`
	}
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] {
			all := rdd.Parallelize(g, 1, order{"DE", 3}, order{"FR", 4}, order{"DE", 5})
			return rdd.SaveParquet(all, out, rdd.PartitionedBy("country"))
		})
		rows(func(g *rdd.Graph) rdd.Dataset[order] {
			return rdd.FilterPartitions(rdd.Parquet[order](g, out), func(o order) bool { return o.Country == "DE" })
		})
	})
	// Output:
	// 3
	// {DE 3}
	// {DE 5}
}

func ExampleParquet() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveParquet(soldFruits(g), out) })
		rows(func(g *rdd.Graph) rdd.Dataset[sold] { return rdd.Parquet[sold](g, out) })
	})
	// Output:
	// 3
	// {plum 2.5}
	// {fig 7}
	// {melon 3}
}

func ExampleArrow() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveArrow(soldFruits(g), out) })
		rows(func(g *rdd.Graph) rdd.Dataset[sold] { return rdd.Arrow[sold](g, out) })
	})
	// Output:
	// 3
	// {plum 2.5}
	// {fig 7}
	// {melon 3}
}

func ExamplePoints() {
	inDir(func(dir string) {
		path := file(dir, "points.csv", "height,width,label\n1,2,yes\n3,4,no\n")
		rows(func(g *rdd.Graph) rdd.Dataset[string] {
			return rdd.Map(rdd.Points(g, rdd.Input{Label: "label"}, path), func(p rdd.Point) string {
				return fmt.Sprint(p.Class, p.Values)
			})
		})
	})
	// Output:
	// yes[1 2]
	// no[3 4]
}

func ExampleChunks() {
	inDir(func(dir string) {
		path := file(dir, "points.csv", "height,width\n1,2\n3,4\n")
		rows(func(g *rdd.Graph) rdd.Dataset[float64] {
			return rdd.Chunks(g, rdd.Input{NoLabel: true}, []string{path},
				func(*input.Source) (func(*inputrows.Chunk, func(float64) error) error, error) {
					return func(c *inputrows.Chunk, yield func(float64) error) error {
						for r := range c.Rows() {
							if err := yield(c.Values[r*c.Width] * c.Values[r*c.Width+1]); err != nil {
								return err
							}
						}
						return nil
					}, nil
				})
		})
	})
	// Output:
	// 2
	// 12
}

func ExampleLIBSVM() {
	inDir(func(dir string) {
		path := file(dir, "points.svm", "1 1:0.5 3:2\n-1 2:1\n")
		rows(func(g *rdd.Graph) rdd.Dataset[string] {
			return rdd.Map(rdd.LIBSVM(g, path), func(p rdd.Point) string {
				return fmt.Sprint(p.Label, p.Indices, p.Values)
			})
		})
	})
	// Output:
	// 1 [1 3] [0.5 2]
	// -1 [2] [1]
}

func ExampleEntries() {
	inDir(func(dir string) {
		path := file(dir, "ratings.csv", "user,item,stars\n7,3,4.5\n8,3,1\n")
		rows(func(g *rdd.Graph) rdd.Dataset[rdd.Entry] {
			columns := [3][]string{{"user"}, {"item"}, {"stars", "rating"}}
			return rdd.Entries(rdd.Points(g, rdd.Input{NoLabel: true}, path), columns)
		})
	})
	// Output:
	// {7 3 4.5}
	// {8 3 1}
}
