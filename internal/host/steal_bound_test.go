package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/rdd"
)

// stolen is a run of passes over rows that do nothing, under a law: how long each took beside the least that any
// division of the rows could have taken.
type stolen struct {
	law             string
	executors, rows int
	splits, floats  int // of an accumulator
	passes          int
	rate            float64
}

func (r stolen) String() string {
	return fmt.Sprintf("%s, %d executors, %d rows in %d splits, accumulators of %d bytes", r.law, r.executors, r.rows,
		r.splits, 8*r.floats)
}

// run returns the passes of a policy, and what they came to.
func (r stolen) run(t *testing.T, sync string) (law *pace.Law, passes []*driver.StepReport, sums []float64) {
	t.Helper()
	cfg, err := volley.ParseConfig("--sync", sync, "--pace", r.law, "--executors", fmt.Sprint(r.executors), "--clock",
		"virtual", "--pace-rate", fmt.Sprint(r.rate), "--data-dir", t.TempDir(), "--exchange", "off")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Observer = func(s *driver.StepReport) { passes = append(passes, s) }
	build := func(g *rdd.Graph, _ struct{}) rdd.Step[int, []float64] {
		rows := rdd.Map(rdd.Range(g, 0, int64(r.rows), 1), func(n int64) rdd.Point {
			return rdd.Point{Values: []float64{1 / float64(n+1), 0, 0, 0}}
		})
		return rdd.Aggregate(rdd.Pack(rows, rdd.Splits(r.splits)), rdd.Aggregator[int, rdd.Point, []float64]{
			Zero: func(int) []float64 { return make([]float64, r.floats) },
			Add: func(sum []float64, _ int, x rdd.Point) []float64 {
				sum[0] += x.Values[0]
				return sum
			},
			Merge: func(a, b []float64) []float64 {
				a[0] += b[0]
				return a
			},
			Scale: func(a []float64, _ float64) []float64 { return a },
		})
	}
	loop := func(ctx context.Context, s *rdd.Session, _ struct{}, step rdd.Step[int, []float64]) (string, error) {
		for range r.passes {
			sum, err := step.Run(ctx, s, 0)
			if err != nil {
				return "", err
			}
			sums = append(sums, sum[0])
		}
		return "", nil
	}
	if _, err := volley.Run(context.Background(), cfg, "passes", struct{}{}, build, loop); err != nil {
		t.Fatalf("%v under %s: %v", r, sync, err)
	}
	return cfg.Pace, passes, sums
}

// ideal returns in which time all slots together fold a number of rows from a moment on, if none is ever idle.
func (r stolen) ideal(law *pace.Law, from time.Duration) time.Duration {
	left, now := float64(r.rows), from
	for {
		sum, until := 0.0, time.Duration(1<<62)
		for e := range r.executors {
			rate, ends := law.Rate(e, 0, 1, now)
			sum, until = sum+rate, min(until, ends)
		}
		if need := time.Duration(left / sum * float64(time.Second)); sum > 0 && need <= until-now {
			return now + need - from
		}
		left -= sum * (until - now).Seconds()
		now = until
	}
}

// boundedRuns is how many runs of twenty passes are tried; VOLLEY_SOAK=50 tries a thousand passes.
const boundedRuns = 12

// TestStealingComesNearTheBound: whatever speeds are and become, a pass takes a tenth more than if no slot were ever
// idle, two round trips and a piece on a slow executor at most, the first pass three tenths, and comes to the bytes of
// bsp.
func TestStealingComesNearTheBound(t *testing.T) {
	runs := uint64(seeds.Of(boundedRuns))
	beside := map[string][]float64{}
	for seed := range runs {
		r, name := randomRun(seed)
		law, passes, sums := r.run(t, "steal")
		_, _, want := r.run(t, "bsp")
		if !slices.Equal(sums, want) {
			t.Errorf("%v: other bytes than those of bsp", r)
		}
		rows := float64(r.rows/r.splits+1) / float64(min(16, 1+4*r.rows/r.splits/r.floats)) // of a piece
		piece := time.Duration(rows / slowest / r.rate * float64(time.Second))
		for i, p := range passes {
			ideal := r.ideal(law, p.Began)
			slack := ideal / 10
			if i == 0 { // no speed is known, and no executor has a split of another
				slack = 3 * ideal / 10
			}
			if most := ideal + slack + roundTrips + piece; p.Took > most {
				t.Errorf("seed %d: %v: pass %d took %v, at most %v, ideal is %v", seed, r, i, p.Took, most, ideal)
			}
			beside[name] = append(beside[name], float64(p.Took)/float64(ideal))
		}
	}
	for name, all := range beside {
		slices.Sort(all)
		n := len(all)
		t.Logf("%s: %d passes, beside the ideal one in the median %.3f, 90 %% %.3f, worst %.3f", name, n, all[n/2],
			all[n*9/10], all[n-1])
	}
}

// Two round trips of messages in virtual time, and the least speed that laws leave an executor for long.
const (
	roundTrips = 4 * 200 * time.Microsecond
	slowest    = 0.2
)

// randomRun draws a run under a law, whose name it returns.
func randomRun(seed uint64) (r stolen, name string) {
	rng := rand.New(rand.NewPCG(seed, 3))
	laws := []string{"static", "slow-worker:400", "delayed:1p", "disrupter:1p", "power-law:7", "disrupted:300"}
	r = stolen{executors: 2 + rng.IntN(10), rows: 2000 << rng.IntN(6), passes: 20, rate: 2000, floats: 1 << rng.IntN(9)}
	r.splits = r.executors * (1 + rng.IntN(6))
	name = laws[seed%uint64(len(laws))]
	if r.law = name; name == "static" {
		var speeds []string
		for range r.executors {
			speeds = append(speeds, fmt.Sprintf("%.2f", 1+3*rng.Float64()))
		}
		r.law += ":" + strings.Join(speeds, ",")
	}
	return r, name
}
