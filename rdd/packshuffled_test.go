package rdd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/rdd"
)

type shuffledPack struct {
	step  rdd.Step[float64, sum]
	few   rdd.Action[[]rdd.Pair[string, float64]]
	whole rdd.Action[int64]
}

// packShuffled packs what a join and a sort come to, by way of numbers that are decided when it runs.
func packShuffled(g *rdd.Graph, n int64) shuffledPack {
	type pair = rdd.Pair[string, float64]
	numbers := rdd.Map(rdd.Range(g, 0, n, 9), func(x int64) pair {
		return pair{Key: fmt.Sprint("key ", x%701), Value: float64(x)}
	})
	sums := rdd.ReduceByKey(numbers, func(a, b float64) float64 { return a + b })
	joined := rdd.Map(rdd.Join(numbers, sums), func(p rdd.Pair[string, rdd.Joined[float64, float64]]) pair {
		return pair{Key: p.Key, Value: p.Value.Left / p.Value.Right}
	})
	sorted := rdd.Values(rdd.ZipWithIndex(rdd.SortByKey(joined)))
	pk := rdd.Pack(sorted, rdd.Splits(6))
	return shuffledPack{whole: rdd.Count(sorted), few: rdd.Prefix(pk, 30),
		step: rdd.Aggregate(pk, rdd.Aggregator[float64, pair, sum]{
			Zero:  func(float64) sum { return sum{} },
			Add:   func(s sum, by float64, p pair) sum { return sum{s.N + 1, s.Total + by*p.Value} },
			Merge: func(a, b sum) sum { return sum{a.N + b.N, a.Total + b.Total} },
		})}
}

// TestShuffledRowsArePacked: in splits that are the same to the bit whichever and however many executors make them,
// and again where some are lost.
func TestShuffledRowsArePacked(t *testing.T) {
	law, err := pace.Parse("one-straggler", 1e6)
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for _, cfg := range []volley.Config{{Executors: 1}, {Executors: 4}, {Executors: 3, Virtual: true, Pace: law},
		{Executors: 4, Losses: []volley.Loss{{Executor: 1, After: 9}, {Executor: 2, After: 30}}}} {
		cfg.DataDir = t.TempDir()
		var got string
		for range 2 { // the second finds the pack
			_, err := volley.Run(context.Background(), cfg, "packs", 20_000, packShuffled,
				func(ctx context.Context, s *rdd.Session, n int64, p shuffledPack) (string, error) {
					few, err := p.few.Run(ctx, s)
					if err != nil {
						return "", err
					}
					got = fmt.Sprint(few)
					for by := range 3 {
						total, err := p.step.Run(ctx, s, float64(by))
						if err != nil || total.N != n {
							return "", fmt.Errorf("%d rows of %d: %w", total.N, n, err)
						}
						got += fmt.Sprint(" ", total.Total)
					}
					all, err := p.whole.Run(ctx, s)
					if all != n {
						return "", fmt.Errorf("%d rows are counted of %d: %w", all, n, err)
					}
					return "", err
				})
			if err != nil {
				t.Fatalf("%d executors, %d lost: %v", cfg.Executors, len(cfg.Losses), err)
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%d executors have\n%.200s\none has\n%.200s", cfg.Executors, got, first)
			}
		}
	}
}

// TestWhatCannotBePacked is a mistake of the plan.
func TestWhatCannotBePacked(t *testing.T) {
	for want, pack := range map[string]func(g *rdd.Graph){
		`the parameter "p"`: func(g *rdd.Graph) {
			p := rdd.NewParam[int64](g, "p")
			added := rdd.MapWith(rdd.Range(g, 0, 9, 1), p, func(x, p int64) float64 { return float64(x + p) })
			rdd.Pack(rdd.SortBy(added, func(x float64) float64 { return x }))
		},
		"a Loop's present round": func(g *rdd.Graph) {
			l := rdd.NewLoop(rdd.Range(g, 0, 9, 1), func(now rdd.Dataset[int64]) rdd.Dataset[int64] { return now })
			rdd.Pack(l.Now())
		},
		"one that is found again": func(g *rdd.Graph) {
			counted := rdd.Tally(rdd.Range(g, 0, 9, 1), rdd.NewCounter(), func(int64) int64 { return 1 })
			rdd.Pack(rdd.Union(rdd.SortBy(counted, func(x int64) int64 { return x }), counted))
		},
		"counted on the way": func(g *rdd.Graph) {
			rdd.Pack(rdd.Tally(rdd.Range(g, 0, 9, 1), rdd.NewCounter(), func(int64) int64 { return 1 }))
		},
	} {
		g := rdd.NewGraph()
		if pack(g); g.Err() == nil || !strings.Contains(g.Err().Error(), want) {
			t.Errorf("%s: %v", want, g.Err())
		}
	}
	g := rdd.NewGraph()
	counted := rdd.Tally(rdd.Range(g, 0, 9, 1), rdd.NewCounter(), func(int64) int64 { return 1 })
	if rdd.Pack(rdd.SortBy(counted, func(x int64) int64 { return x })); g.Err() != nil {
		t.Errorf("counted by map tasks: %v", g.Err())
	}
}
