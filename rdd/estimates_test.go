package rdd_test

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// TestEstimatesCoverTheTruth about as often as they say, although their steps end
// early; and where all rows are read they are the truth.
func TestEstimatesCoverTheTruth(t *testing.T) {
	const rows, seeds, level = 20_000, 60, 0.9
	type plan struct{ early, whole rdd.Estimated }
	value := func(i int64) (float64, bool) { return float64(i*7919%1000) + float64(i)/rows, i%3 != 0 }
	var sum, count float64
	for i := range int64(rows) {
		if x, counts := value(i); counts {
			sum, count = sum+x, count+1
		}
	}
	inside, cut := [3]int{}, 0
	for seed := range uint64(seeds) {
		cfg, err := volley.ParseConfig("--sync", "absp", "--clock", "virtual", "--pace", "static:8,3,2,1",
			"--executors", "4", "--sync-ratio", "0.6", "--max-missing", "0")
		if err != nil {
			t.Fatal(err)
		}
		cfg.DataDir = t.TempDir()
		runPlan(t, cfg, func(g *rdd.Graph) plan {
			pk := rdd.Pack(rdd.Range(g, 0, rows, 8), rdd.Splits(8), rdd.Seed(seed), rdd.RandomAssign())
			return plan{rdd.EstimateOf(pk, level, value, rdd.Aggressive(0.6)), rdd.EstimateOf(pk, level, value)}
		}, func(ctx context.Context, s *rdd.Session, p plan) {
			whole, err := p.whole.Run(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(whole.Sum.Value-sum) > 1e-6*sum || whole.Count.Value != count || whole.Coverage != 1 ||
				whole.Mean.Low != whole.Mean.High {
				t.Fatalf("of all rows: %+v, want %v of %v", whole, sum, count)
			}
			e, err := p.early.Run(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			if e.Coverage < 1 {
				cut++
			}
			for k, i := range []struct {
				rdd.Interval
				truth float64
			}{{e.Sum, sum}, {e.Mean, sum / count}, {e.Count, count}} {
				if i.Low <= i.truth && i.truth <= i.High {
					inside[k]++
				}
			}
		})
	}
	if cut < seeds/2 {
		t.Fatalf("only %d of %d steps ended early: too few to tell", cut, seeds)
	}
	for k, n := range inside { // a binomial of 60 at 0.9 lies between 47 and 60 but once in 2,000
		if n < 47 {
			t.Errorf("the interval of %s covers the truth %d times of %d, want about %.0f",
				[]string{"sum", "mean", "count"}[k], n, seeds, level*seeds)
		}
	}
	t.Logf("%v of %d, %d cut", inside, seeds, cut)
}

// TestLoopsLeaveNothingBehind: the memory of the driver's side does not grow with
// the rounds.
func TestLoopsLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("runs thousands of rounds")
	}
	type pair = rdd.Pair[int64, int64]
	build := func(g *rdd.Graph) *rdd.Loop[pair] {
		first := rdd.ReduceByKey(rdd.KeyBy(rdd.Range(g, 0, 100, 2), func(i int64) int64 { return i }),
			func(a, _ int64) int64 { return a }, rdd.Partitions(2))
		return rdd.NewLoop(first, func(now rdd.Dataset[pair]) rdd.Dataset[pair] {
			return rdd.ReduceByKey(now, func(a, b int64) int64 { return a + b }, rdd.Partitions(2))
		})
	}
	runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, loop *rdd.Loop[pair]) {
		heapAfter := func(rounds int) int64 {
			for loop.Rounds(s) < rounds {
				if err := loop.Step(ctx, s); err != nil {
					t.Fatal(err)
				}
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		early := heapAfter(500)
		if late := heapAfter(3000); late > early+1<<20 {
			t.Errorf("%d bytes after 500 rounds, %d after 3000", early, late)
		}
	})
}
