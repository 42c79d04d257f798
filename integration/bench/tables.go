package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// cells is a program whose only worker reads rows of a table, and adds to their cells.
type cells struct {
	table *tables.Table[float64]
	work  tables.Work[int, int64, struct{}]
}

const (
	cellRows, cellColumns = 4096, 16
	cellCalls             = 20_000_000
)

// tableCalls: what a row costs that the worker has, and an addition to one, beside the limits of 50 and 30 million a
// second and core.
func tableCalls(ctx context.Context, dir string, _ int64) error {
	cfg, err := volley.ParseConfig("--executors", "1", "--data-dir", filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	var reads, adds time.Duration
	_, err = volley.Run(ctx, cfg, "bench", 0, func(g *rdd.Graph, _ int) (p cells) {
		p.table = tables.New[float64](g, "cells", tables.Dense(cellRows, cellColumns), tables.SSP(2))
		p.work = tables.Worker(rdd.Pack(rdd.Range(g, 0, 10, 1), rdd.Splits(1)),
			func(c *tables.Clock[int, int64, struct{}]) error {
				reads, adds = timed(p.table.In(c))
				return nil
			}, p.table)
		return p
	}, func(ctx context.Context, s *rdd.Session, _ int, p cells) (string, error) {
		for _, err := range p.work.Clocks(ctx, s, 0, 1, 1) {
			if err != nil {
				return "", err
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	rate := func(d time.Duration) float64 { return cellCalls / d.Seconds() / 1e6 }
	fmt.Printf("tables: %.0f million rows a second from the worker's cache (%.2f of the limit of 50), %.0f million "+
		"additions (%.2f of 30)\n", rate(reads), rate(reads)/50, rate(adds), rate(adds)/30)
	return nil
}

// timed reads rows that the worker has, and adds to cells, as often as each other.
func timed(t *tables.Access[float64]) (reads, adds time.Duration) {
	for row := range cellRows {
		t.Row(row)
	}
	began, sum := time.Now(), 0.0
	for i := range cellCalls {
		sum += t.Row(i % cellRows).Values[0]
	}
	reads, began = time.Since(began), time.Now()
	for i := range cellCalls {
		t.Inc(i%cellRows, i%cellColumns, sum+1)
	}
	return reads, time.Since(began)
}

// tableSteps: workers on tables under ssp(0) beside steps that wait for all rows, to a thousandth of the optimum on two
// even executors of this machine, in turn.
func tableSteps(ctx context.Context, dir string, rows int64) error {
	data := filepath.Join(dir, "workers.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows / 5, Features: 50, Eps: 0.1}, "arrow", data, 2); err != nil {
		return err
	}
	least, _, err := trainedBy(ctx, dir, data, nil, nil, "--sync", "bsp")
	if err != nil {
		return err
	}
	target := least + 1e-3
	took := map[string][]float64{}
	for range 7 {
		for name, by := range map[string]*mllib.Bounded{"bsp": nil, "ssp(0)": {Model: tables.SSP(0), Passes: 1}} {
			_, seconds, err := trainedBy(ctx, dir, data, &target, by, "--sync", "bsp")
			if err != nil {
				return err
			}
			took[name] = append(took[name], seconds)
		}
	}
	bsp, ssp := quantile(took["bsp"], 0.5), quantile(took["ssp(0)"], 0.5)
	fmt.Printf("logistic regression to 1e-3 on two even executors: steps under bsp %.4f s, workers under ssp(0) "+
		"%.4f s; ratio %.2f (limit 1.1)\n", bsp, ssp, ssp/bsp)
	return nil
}

// trainedBy trains, by workers where there is a way, and returns the objective and how long it took.
func trainedBy(ctx context.Context, dir, data string, target *float64, by *mllib.Bounded, flags ...string) (float64,
	float64, error) {
	cfg, err := volley.ParseConfig(append(flags, "--executors", "2", "--data-dir", filepath.Join(dir, "cache"))...)
	if err != nil {
		return 0, 0, err
	}
	job := mllib.LinearConfig{Data: []string{data}, Splits: 8, MaxIterations: 500, Tol: 1e-9, Target: target,
		Bounded: by, Solver: mllib.Auto, Stop: mllib.ByObjective}
	objective := 0.0
	out, err := volley.Run(ctx, cfg, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			t, err := mllib.TrainLinear(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			objective = t.Objective
			return t.StoppedBy, nil
		})
	if err != nil {
		return 0, 0, err
	}
	return objective, out.Train.Seconds(), nil
}
