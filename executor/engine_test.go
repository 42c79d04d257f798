package executor_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/rdd"
)

const rows = 3000

// counts is a program whose answers are known: sums over rows that are numbered, and how often
// each row has been seen by a step that notes it beside the row.
type counts struct {
	sum, sparse, seen rdd.Step[float64, float64]
	pass              rdd.Step[float64, float64]
}

func build(g *rdd.Graph, splits int) counts {
	add := func(a, b float64) float64 { return a + b }
	zero := func(float64) float64 { return 0 }
	scale := func(a, f float64) float64 { return a * f }
	points := rdd.Pack(rdd.Map(rdd.Range(g, 0, rows, 6), func(n int64) rdd.Point {
		return rdd.Point{Label: float64(n), Indices: []int32{0, 1, 2}[:1+n%3], Values: []float64{1, 1, 1}[:1+n%3]}
	}), rdd.Splits(splits))
	labels := func(a, p float64, pt rdd.Point) float64 { return a + p*pt.Label }
	train := rdd.Aggressive(0)
	return counts{
		sum: rdd.Aggregate(points, rdd.Aggregator[float64, rdd.Point, float64]{Zero: zero, Add: labels, Merge: add,
			Scale: scale}, train),
		sparse: rdd.Aggregate(points, rdd.Aggregator[float64, rdd.Point, float64]{Zero: zero, Add: labels, Merge: add,
			Scale: scale, Entries: true}, train),
		seen: rdd.Aggregate(points, rdd.Aggregator[float64, rdd.Point, float64]{Zero: zero, Merge: add, Scale: scale,
			State: 2, AddBatch: func(a, _ float64, b *rdd.Batch) float64 {
				for i := range b.Rows {
					b.State[2*i]++
					a += b.State[2*i] - b.State[2*i+1]
				}
				return a
			}}, train),
		pass: rdd.Aggregate(points, rdd.Aggregator[float64, rdd.Point, float64]{Zero: zero, Add: labels, Merge: add}),
	}
}

// TestEveryPolicyFoldsWhatItSays: every row once where nothing is left out, whichever executor folds it and
// in however many pieces; and the log of each run holds.
func TestEveryPolicyFoldsWhatItSays(t *testing.T) {
	const all = float64(rows * (rows - 1) / 2)
	for _, c := range []struct {
		policy abss.Policy
		ratio  float64
		whole  bool
	}{{abss.BSP, 0.5, true}, {abss.Steal, 0.5, true}, {abss.ABSP, 1, true}, {abss.ABSP, 0.3, false},
		{abss.Deadline, 0.4, false}} {
		for _, slots := range []int{1, 2} {
			t.Run(fmt.Sprint(c.policy, c.ratio, slots), func(t *testing.T) {
				cfg := volley.Config{Executors: 3, Slots: slots, DataDir: t.TempDir(), OutDir: t.TempDir(),
					EventLog: filepath.Join(t.TempDir(), "log"),
					Job:      driver.JobConfig{Sync: abss.Config{Policy: c.policy, Ratio: c.ratio}}}
				_, err := volley.Run(context.Background(), cfg, "counts", 5, build,
					func(ctx context.Context, s *rdd.Session, _ int, p counts) (string, error) {
						state := 0.0
						for it := range rdd.Iterations(ctx, s, &state, 3) {
							for what, run := range map[string]struct {
								step rdd.Step[float64, float64]
								want float64
								sure bool
							}{"sum": {p.sum, 2 * all, c.whole}, "sparse": {p.sparse, 2 * all, c.whole},
								"seen": {p.seen, float64(it.Number * rows), c.whole}, "pass": {p.pass, 2 * all, true}} {
								got, err := run.step.Run(ctx, s, 2)
								if err != nil {
									return "", err
								}
								if run.sure && got != run.want || got <= 0 {
									t.Errorf("turn %d, %s: %v, want %v", it.Number, what, got, run.want)
								}
							}
						}
						return "iterations", s.Err()
					})
				if err != nil {
					t.Fatal(err)
				}
				verified(t, cfg.EventLog)
			})
		}
	}
}

func verified(t *testing.T, path string) {
	l, err := audit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := audit.Verify(l); len(r.Violations) > 0 {
		t.Errorf("%v", r.Violations[0])
	}
}
