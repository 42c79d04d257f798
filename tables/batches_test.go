package tables_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

type batchPlan struct {
	sums *tables.Table[float64]
	work tables.Work[float64, rdd.Point, struct{}]
}

// TestABatchIsTheWorkersOwn: one that a worker has left its loop with stays as it is while others look at theirs.
func TestABatchIsTheWorkersOwn(t *testing.T) {
	t.Parallel()
	const workers = 8
	cfg, err := volley.ParseConfig("--executors", "4", "--slots", "2")
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = t.TempDir()
	var changed, looked atomic.Int64
	var rounds [30]sync.WaitGroup
	for i := range rounds {
		rounds[i].Add(workers)
	}
	build := func(g *rdd.Graph, _ struct{}) (p batchPlan) {
		points := rdd.Map(rdd.Range(g, 0, 800, 8), func(i int64) rdd.Point {
			return rdd.Point{Label: float64(i), Values: []float64{float64(i), 1}}
		})
		p.sums = tables.New[float64](g, "sums", tables.Dense(1, 2), tables.ASP())
		p.work = tables.Worker(rdd.Pack(points, rdd.Splits(workers)),
			func(c *tables.Clock[float64, rdd.Point, struct{}]) error {
				for i := range rounds {
					var kept *rdd.Batch
					for _, b := range c.Batches(int64((i+c.Worker())%50), 4) {
						kept = b
						break
					}
					rows, labels := slices.Clone(kept.Rows), kept.Labels
					rounds[i].Done()
					rounds[i].Wait() // until all have theirs
					if looked.Add(1); !slices.Equal(rows, kept.Rows) || &labels[0] != &kept.Labels[0] {
						changed.Add(1)
					}
				}
				return nil
			}, p.sums)
		return p
	}
	_, err = volley.Run(t.Context(), cfg, "batches", struct{}{}, build,
		func(ctx context.Context, s *rdd.Session, _ struct{}, p batchPlan) (string, error) {
			for _, err := range p.work.Clocks(ctx, s, 1, 1, 1) {
				if err != nil {
					return "", err
				}
			}
			return "", nil
		})
	if err != nil || changed.Load() > 0 || looked.Load() != int64(workers*len(rounds)) {
		t.Errorf("%d of %d batches have changed: %v", changed.Load(), looked.Load(), err)
	}
}
