package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	volley "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// reading is a row of the pipelines.
type reading struct {
	Sensor, At int64
	Value      float64
}

// pipelineRows is how many rows go through a pipeline.
const pipelineRows = 100_000_000

// pipelinePlan are the same rows, counted and summed in different ways.
type pipelinePlan struct {
	rows, chain, batches rdd.Action[float64]
}

func buildPipelines(g *rdd.Graph, _ struct{}) pipelinePlan {
	readings := func() rdd.Dataset[reading] {
		return rdd.Map(rdd.Range(g, 0, pipelineRows, 16),
			func(i int64) reading { return reading{i & 1023, i, float64(i & 255)} })
	}
	sum := func(ds rdd.Dataset[reading]) rdd.Action[float64] {
		return rdd.Aggregated(ds, func() float64 { return 0 },
			func(s float64, r reading) float64 { return s + r.Value }, func(a, b float64) float64 { return a + b })
	}
	kept := rdd.Filter(readings(), func(r reading) bool { return r.Sensor != 0 })
	doubled := rdd.Map(kept, func(r reading) reading { r.Value *= 2; return r })
	both := rdd.FlatMapAppend(doubled, func(out []reading, r reading) []reading { return append(out, r) })
	batches := rdd.MapBatches[reading, reading](readings(), func(r arrow.Record) (arrow.Record, error) {
		total := 0.0
		for _, v := range r.Column(2).(*array.Float64).Float64Values() {
			total += v
		}
		if total < 0 {
			return nil, fmt.Errorf("the sum is %v", total)
		}
		return r, nil
	})
	return pipelinePlan{rows: sum(readings()), chain: sum(both), batches: sum(batches)}
}

// pipelines: rows a second through functions that do next to nothing, on one
// core.
func pipelines(ctx context.Context, dir string, _ int64) error {
	cfg, err := volley.ParseConfig("--executors", "1", "--data-dir", filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	_, err = volley.Run(ctx, cfg, "pipelines", struct{}{}, buildPipelines,
		func(ctx context.Context, s *rdd.Session, _ struct{}, p pipelinePlan) (string, error) {
			rate := func(a rdd.Action[float64]) (float64, error) {
				began := time.Now()
				_, err := a.Run(ctx, s)
				return pipelineRows / time.Since(began).Seconds() / 1e6, err
			}
			rows, err := rate(p.rows)
			if err != nil {
				return "", err
			}
			chain, err := rate(p.chain)
			if err != nil {
				return "", err
			}
			batches, err := rate(p.batches)
			fmt.Printf("pipelines of structs, one core: made and summed %.0f m rows/s; with filter, map and flat map "+
				"between %.0f (%.2f of the limit of 50); through Arrow columns and back %.0f, %.1f GB/s of columns\n",
				rows, chain, chain/50, batches, batches*1e6*24*2/1e9)
			return "end", err
		})
	return err
}
