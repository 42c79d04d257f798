package rdd_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

const fruits = "name,price,country\nplum,2.5,DE\nfig,7,\nmelon,cheap,FR\n"

// inDir runs an example with a directory of its own.
func inDir(do func(dir string)) {
	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	do(dir)
}

// file writes a file, and returns its path.
func file(dir, name, text string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
	}
	return path
}

// session runs a program that does more than one action.
func session[P any](build func(g *rdd.Graph) P, run func(ctx context.Context, s *rdd.Session, p P) error) {
	inDir(func(dir string) {
		_, err := volley.Run(context.Background(), volley.Config{Executors: 1, DataDir: dir}, "example", 0,
			func(g *rdd.Graph, _ int) P { return build(g) },
			func(ctx context.Context, s *rdd.Session, _ int, p P) (string, error) { return "", run(ctx, s, p) })
		if err != nil {
			fmt.Println(err)
		}
	})
}

type sold struct {
	Name  string  `col:"name"`
	Price float64 `col:"price"`
}

func soldFruits(g *rdd.Graph) rdd.Dataset[sold] {
	return rdd.Parallelize(g, 2, sold{"plum", 2.5}, sold{"fig", 7}, sold{"melon", 3})
}

func ExampleCSV() {
	inDir(func(dir string) {
		path := file(dir, "fruits.csv", "name,price\nplum,2.5\nfig,7\n")
		rows(func(g *rdd.Graph) rdd.Dataset[sold] { return rdd.CSV[sold](g, rdd.CSVOptions{}, path) })
	})
	// Output:
	// {plum 2.5}
	// {fig 7}
}

func ExampleCSVMalformed() {
	inDir(func(dir string) {
		path := file(dir, "fruits.csv", fruits)
		rows(func(g *rdd.Graph) rdd.Dataset[string] {
			bad := rdd.CSVMalformed[sold](g, rdd.CSVOptions{}, path)
			return rdd.Map(bad, func(m rdd.MalformedRecord) string { return fmt.Sprintf("%s: %s", m.Text, m.Why) })
		})
	})
	// Output:
	// melon,cheap,FR: column "price": "cheap": invalid syntax
}

func ExampleJSONLines() {
	inDir(func(dir string) {
		path := file(dir, "fruits.json", `{"Name": "plum", "Price": 2.5}`+"\n"+`{"Name": "fig", "Price": 7}`+"\n")
		rows(func(g *rdd.Graph) rdd.Dataset[sold] { return rdd.JSONLines[sold](g, path) })
	})
	// Output:
	// {plum 2.5}
	// {fig 7}
}

func ExampleTextFile() {
	inDir(func(dir string) {
		path := file(dir, "text.txt", "to be or\nnot to be\n")
		rows(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.TextFile(g, path) })
	})
	// Output:
	// to be or
	// not to be
}

func ExampleWholeTextFiles() {
	inDir(func(dir string) {
		file(dir, "a.txt", "one\ntwo\n")
		file(dir, "b.txt", "three\n")
		rows(func(g *rdd.Graph) rdd.Dataset[int] {
			return rdd.Map(rdd.WholeTextFiles(g, dir), func(f rdd.Pair[string, string]) int {
				return strings.Count(f.Value, "\n")
			})
		})
	})
	// Output:
	// 2
	// 1
}

func ExampleSaveParquet() {
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

func ExampleSaveArrow() {
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

func ExampleSaveCSV() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveCSV(soldFruits(g), out) })
		text, _ := os.ReadFile(filepath.Join(out, "part-00000"))
		fmt.Print(string(text))
	})
	// Output:
	// 3
	// name,price
	// plum,2.5
}

func ExampleSaveJSONLines() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveJSONLines(soldFruits(g), out) })
		text, _ := os.ReadFile(filepath.Join(out, "part-00000"))
		fmt.Print(string(text))
	})
	// Output:
	// 3
	// {"Name":"plum","Price":2.5}
}

func ExampleSaveText() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveText(prices(g), out) })
		rows(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.TextFile(g, out) })
	})
	// Output:
	// 4
	// plum	3
	// fig	7
	// plum	2
	// plum	4
}

func ExampleHeader() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.SaveText(prices(g), out, rdd.Header("fruit\tprice")) })
		rows(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.TextFile(g, out) })
	})
	// Output:
	// 4
	// fruit	price
	// plum	3
	// fig	7
	// fruit	price
	// plum	2
	// plum	4
}

func ExampleAppend() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		for range 2 {
			result(func(g *rdd.Graph) rdd.Action[int64] {
				return rdd.SaveParquet(soldFruits(g), out, rdd.Append())
			})
		}
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(rdd.Parquet[sold](g, out)) })
	})
	// Output:
	// 3
	// 3
	// 6
}

func ExampleOverwrite() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		for range 2 {
			result(func(g *rdd.Graph) rdd.Action[int64] {
				return rdd.SaveParquet(soldFruits(g), out, rdd.Overwrite())
			})
		}
		result(func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(rdd.Parquet[sold](g, out)) })
	})
	// Output:
	// 3
	// 3
	// 3
}

func ExamplePartitionedBy() {
	inDir(func(dir string) {
		out := filepath.Join(dir, "out")
		result(func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveParquet(soldFruits(g), out, rdd.PartitionedBy("name"))
		})
		found, _ := filepath.Glob(filepath.Join(out, "name=*"))
		for _, f := range found {
			fmt.Println(filepath.Base(f))
		}
		rows(func(g *rdd.Graph) rdd.Dataset[sold] {
			return rdd.FilterPartitions(rdd.Parquet[sold](g, out), func(s sold) bool { return s.Name == "fig" })
		})
	})
	// Output:
	// 3
	// name=fig
	// name=melon
	// name=plum
	// {fig 7}
}

func ExampleLeftJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		return rdd.Map(rdd.LeftJoin(prices(g), stock(g)), func(p rdd.Pair[string, rdd.Joined[int, *int]]) string {
			if p.Value.Right == nil {
				return p.Key + " is not in stock"
			}
			return fmt.Sprintf("%s at %d, %d in stock", p.Key, p.Value.Left, *p.Value.Right)
		})
	})
	// Output:
	// fig is not in stock
	// plum at 2, 12 in stock
	// plum at 3, 12 in stock
	// plum at 4, 12 in stock
}

func ExampleFullJoin() {
	anyOrder(func(g *rdd.Graph) rdd.Dataset[string] {
		nuts := rdd.Parallelize(g, 1, price{Key: "fig", Value: 1}, price{Key: "nut", Value: 2})
		return rdd.Map(rdd.FullJoin(stock(g), nuts), func(p rdd.Pair[string, rdd.Joined[*int, *int]]) string {
			return fmt.Sprint(p.Key, " left ", p.Value.Left != nil, " right ", p.Value.Right != nil)
		})
	})
	// Output:
	// fig left false right true
	// nut left false right true
	// plum left true right false
}

func ExampleMapErr() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.Sum(rdd.MapErr(lines(g), func(line string) (int64, error) { return int64(len(line)), nil }))
	})
	// Output: 17
}

func ExamplePipe() {
	rows(func(g *rdd.Graph) rdd.Dataset[string] { return rdd.Pipe(lines(g), "tr", "a-z", "A-Z") })
	// Output:
	// TO BE OR
	// NOT TO BE
}

func ExamplePartitionBy() {
	rows(func(g *rdd.Graph) rdd.Dataset[[]price] {
		first := rdd.PartitionerFunc("first letter", 2, func(name string) int { return int(name[0]) % 2 })
		return rdd.Glom(rdd.PartitionBy(prices(g), first))
	})
	// Output:
	// [{plum 3} {fig 7} {plum 2} {plum 4}]
	// []
}

func ExampleRepartitionAndSortBy() {
	rows(func(g *rdd.Graph) rdd.Dataset[price] {
		return rdd.RepartitionAndSortBy(prices(g), rdd.HashPartitioner[string](1),
			rdd.Comparing(func(a, b price) int { return cmp.Or(cmp.Compare(a.Key, b.Key), b.Value-a.Value) }))
	})
	// Output:
	// {fig 7}
	// {plum 4}
	// {plum 3}
	// {plum 2}
}

func ExampleGenerate() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.Count(rdd.Generate(g, 4, 1, func(part int, r *rand.Rand) iter.Seq[float64] {
			return func(yield func(float64) bool) {
				for range 25 {
					if !yield(r.NormFloat64()) {
						return
					}
				}
			}
		}))
	})
	// Output: 100
}

func ExampleRandomSplit() {
	result(func(g *rdd.Graph) rdd.Action[int64] {
		parts := rdd.RandomSplit(rdd.Range(g, 0, 1000, 4), 1, 0.8, 0.2)
		return rdd.Count(rdd.Union(parts[0], parts[1]))
	})
	// Output: 1000
}

func ExampleTakeSample() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.Then(rdd.TakeSample(rdd.Range(g, 0, 1000, 4), 5, 1), func(some []int64) int { return len(some) })
	})
	// Output: 5
}

func ExampleStats() {
	result(func(g *rdd.Graph) rdd.Action[string] {
		return rdd.Then(rdd.Stats(numbers(g)), func(s rdd.Summary) string {
			return fmt.Sprintf("%d numbers, mean %.1f, variance %.1f", s.Count, s.Mean, s.Variance)
		})
	})
	// Output: 5 numbers, mean 3.0, variance 2.0
}

func ExampleQuantiles() {
	result(func(g *rdd.Graph) rdd.Action[[]float64] { return rdd.Quantiles(numbers(g), 0, 0.5, 1) })
	// Output: [1 3 5]
}

func ExampleTreeAggregate() {
	result(func(g *rdd.Graph) rdd.Action[int] {
		return rdd.TreeAggregate(lines(g), func() int { return 0 },
			func(n int, line string) int { return n + len(strings.Fields(line)) }, func(a, b int) int { return a + b })
	})
	// Output: 6
}

func ExampleNamed() {
	g := rdd.NewGraph()
	rdd.Named(rdd.Filter(numbers(g), func(n int) bool { return n > 2 }), "large numbers")
	_, filter, _ := strings.Cut(g.Explain(), "\n")
	fmt.Print(filter)
	// Output: stage 0    1 filter "large numbers" of 0
}

func ExampleTally() {
	type plan struct {
		Long rdd.Counter
		Save rdd.Action[int64]
	}
	session(func(g *rdd.Graph) plan {
		c := rdd.NewCounter()
		counted := rdd.Tally(lines(g), c, func(line string) int64 {
			if len(line) > 8 {
				return 1
			}
			return 0
		})
		return plan{c, rdd.Count(counted)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		_, err := p.Save.Run(ctx, s)
		fmt.Println(p.Long.Value(s), "long line")
		return err
	})
	// Output: 1 long line
}

func ExampleNewParam() {
	type plan struct {
		By    rdd.Param[int]
		Total rdd.Action[int]
	}
	session(func(g *rdd.Graph) plan {
		by := rdd.NewParam[int](g, "by")
		return plan{by, rdd.Sum(rdd.MapWith(numbers(g), by, func(n, by int) int { return n * by }))}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		for _, by := range []int{1, 10} {
			if err := p.By.Set(s, by); err != nil {
				return err
			}
			total, err := p.Total.Run(ctx, s)
			if err != nil {
				return err
			}
			fmt.Println(total)
		}
		return nil
	})
	// Output:
	// 15
	// 150
}

func ExampleCache() {
	type plan struct{ Sum, Max rdd.Action[int] }
	session(func(g *rdd.Graph) plan {
		squares := rdd.Cache(rdd.Map(numbers(g), func(n int) int { return n * n })) // computed once
		return plan{rdd.Sum(squares), rdd.Max(squares)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		sum, err := p.Sum.Run(ctx, s)
		if err != nil {
			return err
		}
		most, err := p.Max.Run(ctx, s)
		fmt.Println(sum, most)
		return err
	})
	// Output: 55 25
}

func ExampleToSeq() {
	session(func(g *rdd.Graph) rdd.Streamed[int] { return rdd.ToSeq(numbers(g)) },
		func(ctx context.Context, s *rdd.Session, p rdd.Streamed[int]) error {
			for n, err := range p.Rows(ctx, s) {
				if err != nil || n > 3 {
					return err
				}
				fmt.Println(n)
			}
			return nil
		})
	// Output:
	// 1
	// 2
	// 3
}

func ExampleZipPartitions() {
	rows(func(g *rdd.Graph) rdd.Dataset[int] {
		return rdd.ZipPartitions(numbers(g), lines(g),
			func(part int, n iter.Seq[int], l iter.Seq[string]) iter.Seq[int] {
				return slices.Values([]int{part, len(slices.Collect(n)), len(slices.Collect(l))})
			})
	})
	// Output:
	// 0
	// 2
	// 1
	// 1
	// 3
	// 1
}
