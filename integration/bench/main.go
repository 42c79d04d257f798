// Command bench measures what the engine claims, each claim as a ratio within
// this one run: against the memory's read bandwidth, a plain Go loop, or a
// limit. It asserts nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/internal/synth"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

func main() {
	rows := flag.Int64("rows", 1_000_000, "rows of the dense data")
	only := flag.String("only", "", "a part of the names of the measurements to make; all without it")
	url := flag.String("look", "", "a live page to read, with TOKEN in the environment, in place of measuring")
	readers := flag.Int("readers", 1, "how many readers of the page")
	flag.Parse()
	if *url != "" {
		if err := look(context.Background(), *url, *readers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "volley-bench-*")
	if err == nil {
		err = run(context.Background(), dir, *rows, *only)
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, rows int64, only string) error {
	fmt.Printf("kernels: %s\n", kernel.Path())
	for _, b := range []struct {
		name  string
		bench func(context.Context, string, int64) error
	}{{"empty step", emptySteps}, {"stop", stopLatency}, {"parse", parsing}, {"simulator", simulator},
		{"reports", reports}, {"checks", checks}, {"sparse", sparse}, {"dense", dense}, {"even", even}, {"paced",
			paced},
		{"cluster steps", clusterSteps},
		{"cluster trust", trust},
		{"cluster stops", stops},
		{"cluster dense", clusterDense}, {"cluster moves", moves}, {"pipelines", pipelines}, {"sorts", sorts},
		{"viewers", viewers}, {"tables", tableCalls}, {"tables steps", tableSteps}} {
		if !strings.Contains(b.name, only) {
			continue
		}
		if err := b.bench(ctx, dir, rows); err != nil {
			return err
		}
	}
	return nil
}

// passes trains for some iterations and returns the median seconds of a step,
// and all reports; between, where given, is called after each step.
func passes(ctx context.Context, dir, data string, iterations int, job mllib.LinearConfig, between func(),
	flags ...string) (float64, []*driver.StepReport, *volley.Outcome, error) {
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", filepath.Join(dir, "cache"))...)
	if err != nil {
		return 0, nil, nil, err
	}
	var reports []*driver.StepReport
	cfg.Observer = func(r *driver.StepReport) {
		if r.Train {
			reports = append(reports, r)
		}
		if between != nil {
			between()
		}
	}
	job.Data, job.Solver, job.MaxIterations, job.Stop = []string{data}, mllib.Nesterov, iterations, mllib.ByObjective
	out, err := volley.Run(ctx, cfg, "logistic", job, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			t, err := mllib.TrainLinear(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, nil
		})
	return quantile(seconds(reports), 0.5), reports, out, err
}

func seconds(reports []*driver.StepReport) []float64 {
	var took []float64
	for _, r := range reports {
		took = append(took, r.Took.Seconds())
	}
	return took
}

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func peak() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// emptySteps: what a step costs that folds next to nothing, on 8 executors.
func emptySteps(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "tiny.csv")
	if err := synth.Write(ctx, synth.Logistic{Rows: 64, Features: 1, Eps: 1}, "csv", data, 1); err != nil {
		return err
	}
	p50, reports, _, err := passes(ctx, dir, data, 2000, mllib.LinearConfig{Splits: 8}, nil, "--executors", "8")
	if err != nil {
		return err
	}
	fmt.Printf("empty step, 8 executors: p50 %.3f ms (%.2f of the limit of 1 ms), p99 %.3f ms\n", 1e3*p50, p50/1e-3,
		1e3*quantile(seconds(reports), 0.99))
	return nil
}

// stopLatency: from the stop command to the last result, all slots busy.
func stopLatency(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "stop.csv")
	if err := synth.Write(ctx, synth.Logistic{Rows: 200_000, Features: 50, Eps: 0.1}, "csv", data, 2); err != nil {
		return err
	}
	_, reports, _, err := passes(ctx, dir, data, 400, mllib.LinearConfig{}, nil, "--executors", "2", "--sync",
		"deadline", "--sync-ratio", "0.5")
	if err != nil {
		return err
	}
	var took []float64
	for _, r := range reports {
		if r.Stats.Cut {
			took = append(took, (r.Took - r.Stats.StopAt).Seconds())
		}
	}
	fmt.Printf("stop command to last result, all slots busy: p50 %.3f ms, p99 %.3f ms (%.2f of the limit of 2 ms), "+
		"%d cuts\n",
		1e3*quantile(took, 0.5), 1e3*quantile(took, 0.99), quantile(took, 0.99)/2e-3, len(took))
	return nil
}

// simulator: a thousand executors of four splits for a hundred steps.
func simulator(context.Context, string, int64) error {
	began := time.Now()
	r := sim.Simulate(1, sim.Options{Steps: 100, Executors: 1000, PerNode: 4, Faultless: true})
	took := time.Since(began).Seconds()
	fmt.Printf("simulator, 1000 executors × 4 splits × %d steps: %.1f s (%.2f of the limit of 30 s), %d violations\n",
		r.Steps, took, took/30, len(r.Violations))
	return nil
}
