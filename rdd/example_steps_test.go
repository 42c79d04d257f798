package rdd_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

func ExamplePack() {
	type plan struct{ Total rdd.Step[float64, float64] }
	session(func(g *rdd.Graph) plan {
		halves := rdd.Map(numbers(g), func(n int) float64 { return float64(n) / 2 })
		packed := rdd.Pack(halves, rdd.Splits(2), rdd.Seed(7))
		return plan{rdd.Aggregate(packed, rdd.Aggregator[float64, float64, float64]{
			Zero:  func(float64) float64 { return 0 },
			Add:   func(sum, by, x float64) float64 { return sum + by*x },
			Merge: func(a, b float64) float64 { return a + b },
		})}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		for _, by := range []float64{1, 2} {
			total, err := p.Total.Run(ctx, s, by)
			if err != nil {
				return err
			}
			fmt.Println(total)
		}
		return nil
	})
	// Output:
	// 7.5
	// 15
}

func ExampleAggregate() {
	type sums struct{ N, Sum float64 }
	type plan struct{ Mean rdd.Step[struct{}, sums] }
	session(func(g *rdd.Graph) plan {
		return plan{rdd.Aggregate(rdd.Pack(rdd.Range(g, 0, 1000, 4)), rdd.Aggregator[struct{}, int64, sums]{
			Zero:  func(struct{}) sums { return sums{} },
			Add:   func(s sums, _ struct{}, x int64) sums { return sums{s.N + 1, s.Sum + float64(x)} },
			Merge: func(a, b sums) sums { return sums{a.N + b.N, a.Sum + b.Sum} },
			Scale: func(s sums, f float64) sums { return sums{f * s.N, f * s.Sum} }, // a step may be cut
		}, rdd.Aggressive(0.9))}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		r, err := p.Mean.Run(ctx, s, struct{}{})
		fmt.Println(r.Sum / r.N)
		return err
	})
	// Output:
	// 499.5
}

func ExampleEstimateOf() {
	session(func(g *rdd.Graph) rdd.Estimated {
		return rdd.EstimateOf(rdd.Pack(numbers(g)), 0.95, func(n int) (float64, bool) { return float64(n), n > 1 })
	}, func(ctx context.Context, s *rdd.Session, p rdd.Estimated) error {
		e, err := p.Run(ctx, s)
		fmt.Println(e.Mean.Value, e.Count.Value)
		return err
	})
	// Output:
	// 3.5 4
}

func ExamplePrefix() {
	session(func(g *rdd.Graph) rdd.Action[[]int] {
		return rdd.Prefix(rdd.Pack(numbers(g), rdd.Splits(1)), 2)
	}, func(ctx context.Context, s *rdd.Session, p rdd.Action[[]int]) error {
		some, err := p.Run(ctx, s)
		fmt.Println(len(some))
		return err
	})
	// Output:
	// 3
}

func ExampleScanBatches() {
	type plan struct{ Scan rdd.Scan[float64, float64] }
	session(func(g *rdd.Graph) plan {
		points := rdd.Map(numbers(g), func(n int) rdd.Point { return rdd.Point{Values: []float64{float64(n)}} })
		return plan{rdd.ScanBatches(rdd.Pack(points, rdd.Splits(1)), func(sum, by float64, b *rdd.Batch) float64 {
			for _, r := range b.Rows {
				sum += by * b.X64[r]
			}
			return sum
		})}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		bySplit, err := p.Scan.Run(ctx, s, 10)
		fmt.Println(bySplit)
		return err
	})
	// Output:
	// [150]
}

func ExamplePackEntries() {
	type plan struct{ Rows, Columns rdd.Action[[]rdd.Point] }
	session(func(g *rdd.Graph) plan {
		rows, columns := rdd.PackEntries(rdd.Parallelize(g, 1, rdd.Entry{Row: 7, Col: 3, Value: 4.5},
			rdd.Entry{Row: 8, Col: 3, Value: 1}), rdd.Splits(1))
		return plan{rdd.Prefix(rows, 9), rdd.Prefix(columns, 9)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		rows, err := p.Rows.Run(ctx, s)
		if err != nil {
			return err
		}
		columns, err := p.Columns.Run(ctx, s)
		fmt.Println(len(rows), "rows,", len(columns), "column:", columns[0].Indices, columns[0].Values)
		return err
	})
	// Output:
	// 2 rows, 1 column: [0 1] [4.5 1]
}

func ExampleMapWith() {
	type plan struct {
		By    rdd.Param[int]
		Total rdd.Action[int]
	}
	session(func(g *rdd.Graph) plan {
		by := rdd.NewParam[int](g, "by")
		return plan{by, rdd.Sum(rdd.MapWith(numbers(g), by, func(n, by int) int { return n * by }))}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		if err := p.By.Set(s, 10); err != nil {
			return err
		}
		total, err := p.Total.Run(ctx, s)
		fmt.Println(total)
		return err
	})
	// Output:
	// 150
}

func ExampleMapValuesWith() {
	type plan struct {
		Rate rdd.Param[int]
		Dear rdd.Action[map[string]int]
	}
	session(func(g *rdd.Graph) plan {
		rate := rdd.NewParam[int](g, "rate")
		dear := rdd.MapValuesWith(stock(g), rate, func(n, rate int) int { return n * rate })
		return plan{rate, rdd.CollectAsMap(dear)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		if err := p.Rate.Set(s, 3); err != nil {
			return err
		}
		dear, err := p.Dear.Run(ctx, s)
		fmt.Println(dear)
		return err
	})
	// Output:
	// map[plum:36]
}

func ExampleNewCounter() {
	type plan struct {
		Odd   rdd.Counter
		Total rdd.Action[int]
	}
	session(func(g *rdd.Graph) plan {
		odd := rdd.NewCounter()
		counted := rdd.Tally(numbers(g), odd, func(n int) int64 { return int64(n % 2) })
		return plan{odd, rdd.Sum(counted)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		total, err := p.Total.Run(ctx, s)
		fmt.Println(total, p.Odd.Value(s))
		return err
	})
	// Output:
	// 15 3
}

func ExampleAccumulate() {
	type plan struct {
		Longest rdd.Accumulator[string, string]
		Count   rdd.Action[int64]
	}
	session(func(g *rdd.Graph) plan {
		longer := func(a, b string) string {
			if len(b) > len(a) {
				return b
			}
			return a
		}
		longest := rdd.NewAccumulator(func() string { return "" }, longer, longer)
		return plan{longest, rdd.Count(rdd.Accumulate(lines(g), longest))}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		n, err := p.Count.Run(ctx, s)
		if err != nil {
			return err
		}
		longest, err := p.Longest.Value(s)
		fmt.Println(n, longest)
		return err
	})
	// Output:
	// 2 not to be
}

func ExampleNewLoop() {
	type plan struct {
		Double *rdd.Loop[int]
		Rows   rdd.Action[[]int]
	}
	session(func(g *rdd.Graph) plan {
		double := rdd.NewLoop(numbers(g), func(now rdd.Dataset[int]) rdd.Dataset[int] {
			return rdd.Map(now, func(n int) int { return 2 * n })
		})
		return plan{double, rdd.Collect(double.Now())}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		for range 3 {
			if err := p.Double.Step(ctx, s); err != nil {
				return err
			}
		}
		rows, err := p.Rows.Run(ctx, s)
		fmt.Println(rows)
		return err
	})
	// Output:
	// [8 16 24 32 40]
}

func ExampleIterations() {
	type plan struct{ Slope rdd.Step[float64, float64] }
	session(func(g *rdd.Graph) plan { // the number whose squares to all rows are least: their mean
		halves := rdd.Map(numbers(g), func(n int) float64 { return float64(n) / 2 })
		return plan{rdd.Aggregate(rdd.Pack(halves), rdd.Aggregator[float64, float64, float64]{
			Zero:  func(float64) float64 { return 0 },
			Add:   func(sum, at, x float64) float64 { return sum + (x - at) },
			Merge: func(a, b float64) float64 { return a + b },
		})}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		at := 0.0
		for range rdd.Iterations(ctx, s, &at, 40) {
			slope, err := p.Slope.Run(ctx, s, at)
			if err != nil {
				return err
			}
			at += slope / 10
		}
		fmt.Printf("%.4f\n", at)
		return s.Err()
	})
	// Output:
	// 1.5000
}

func ExampleLater() {
	type plan struct {
		Words rdd.Action[int64]
		Rare  rdd.LaterPart[int64, rdd.Action[[]string]]
	}
	session(func(g *rdd.Graph) plan {
		words := rdd.Cache(rdd.FlatMap(lines(g), strings.Fields))
		return plan{rdd.Count(words), rdd.Later(g, func(_ *rdd.Graph, n int64) rdd.Action[[]string] {
			ones := rdd.Map(words, func(w string) rdd.Pair[string, int64] {
				return rdd.Pair[string, int64]{Key: w, Value: 1}
			})
			counts := rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
			rare := rdd.Filter(counts, func(p rdd.Pair[string, int64]) bool { return p.Value*4 < n })
			return rdd.Collect(rdd.Keys(rdd.SortByKey(rare)))
		})}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		n, err := p.Words.Run(ctx, s)
		if err != nil {
			return err
		}
		rare, err := p.Rare.Build(ctx, s, n)
		if err != nil {
			return err
		}
		words, err := rare.Run(ctx, s)
		fmt.Println(n, words)
		return err
	})
	// Output:
	// 6 [not or]
}

func ExampleUnpersist() {
	type plan struct {
		Kept  rdd.Dataset[int]
		Total rdd.Action[int]
	}
	session(func(g *rdd.Graph) plan {
		kept := rdd.Cache(numbers(g))
		return plan{kept, rdd.Sum(kept)}
	}, func(ctx context.Context, s *rdd.Session, p plan) error {
		total, err := p.Total.Run(ctx, s)
		if err != nil {
			return err
		}
		fmt.Println(total)
		return rdd.Unpersist(s, p.Kept)
	})
	// Output:
	// 15
}

func ExampleEncode() {
	raw, err := rdd.Encode(price{Key: "plum", Value: 3})
	if err != nil {
		fmt.Println(err)
	}
	var p price
	fmt.Println(rdd.Decode(raw, &p), p)
	// Output:
	// <nil> {plum 3}
}

func ExampleAppendFloats() {
	raw := rdd.AppendFloats(nil, []float64{1, 0.5})
	fmt.Println(len(raw))
	fmt.Println(rdd.ParseFloats(raw))
	// Output:
	// 16
	// [1 0.5] <nil>
}
