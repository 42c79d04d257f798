package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
)

// startCluster builds the program and starts a driver and executors that
// share one directory for packs.
func startCluster(dir string, executors, slots int, flags ...string) (*lab.Cluster, error) {
	program, err := lab.Build(dir)
	if err != nil {
		return nil, err
	}
	c, err := lab.Start(program, dir)
	if err != nil {
		return nil, err
	}
	for i := range executors {
		if err := c.Join(fmt.Sprint("e", i), "packs", append(flags, "--slots", fmt.Sprint(slots))...); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// clusterSteps: an empty step on eight executor processes, and how long a
// small job takes from its submission.
func clusterSteps(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "tiny.csv")
	if err := synth.Write(ctx, synth.Logistic{Rows: 64, Features: 1, Eps: 1}, "csv", data, 1); err != nil {
		return err
	}
	c, err := startCluster(dir, 8, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	flags := []string{"--data", data, "--splits", "8", "--tol", "0"}
	began := time.Now()
	if _, err := c.Submit(append(flags, "--max-iterations", "1")...); err != nil {
		return err
	}
	whole := time.Since(began).Seconds()
	steps, err := c.Submit(append(flags, "--max-iterations", "1000")...)
	if err != nil {
		return err
	}
	took := lab.Seconds(steps)
	fmt.Printf("empty step, 8 executor processes: p50 %.3f ms (%.2f of the limit of 3 ms), p99 %.3f ms (%.2f of the "+
		"limit of 10 ms); a job of one step from submission to result %.2f s\n",
		1e3*quantile(took, 0.5), quantile(took, 0.5)/3e-3, 1e3*quantile(took, 0.99), quantile(took, 0.99)/10e-3, whole)
	return nil
}

// stops: from the controller's decision to cut a step until all results are there, on eight executor
// processes, where the job reaches its runners and where everything goes by way of the daemons.
func stops(ctx context.Context, dir string, _ int64) error {
	data := filepath.Join(dir, "stops.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: 200_000, Features: 8, Eps: 0.5}, "arrow", data, 3); err != nil {
		return err
	}
	took := map[bool][]float64{}
	for round := range 4 {
		direct := round%2 == 0
		some, err := stopsOn(filepath.Join(dir, fmt.Sprint("stops", round)), data, direct)
		if err != nil {
			return err
		}
		took[direct] = append(took[direct], some...)
	}
	for _, direct := range []bool{true, false} {
		fmt.Printf("a stop, 8 executor processes, %s: p50 %.2f ms, p99 %.2f ms of %d\n",
			map[bool]string{true: "direct", false: "by way of the daemons"}[direct],
			1e3*quantile(took[direct], 0.5), 1e3*quantile(took[direct], 0.99), len(took[direct]))
	}
	fmt.Printf("a stop, direct over by way of the daemons: p50 %.2f, p99 %.2f\n",
		quantile(took[true], 0.5)/quantile(took[false], 0.5), quantile(took[true], 0.99)/quantile(took[false], 0.99))
	return nil
}

// stopsOn returns the times of the stops of a run on a cluster of its own.
func stopsOn(dir, data string, direct bool) (took []float64, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var flags []string
	if !direct {
		flags = []string{"--unreachable"}
	}
	c, err := startCluster(dir, 8, 1, flags...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	steps, err := c.Submit("--data", data, "--splits", "8", "--sync", "absp", "--exchange", "off", "--max-iterations",
		"300", "--tol", "0")
	for _, s := range steps {
		if s.Cut {
			took = append(took, time.Duration(s.Phases.Collect).Seconds())
		}
	}
	return took, err
}

// clusterDense: a dense pass as processes against the embedded cluster.
func clusterDense(ctx context.Context, dir string, rows int64) error {
	data := filepath.Join(dir, "dense.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: rows, Features: 100, Eps: 0.1}, "arrow", data, 2); err != nil {
		return err
	}
	c, err := startCluster(dir, 1, 2)
	if err != nil {
		return err
	}
	defer c.Close()
	var ratios, embedded []float64
	for range 3 {
		steps, err := c.Submit("--data", data, "--max-iterations", "40", "--tol", "0")
		if err != nil {
			return err
		}
		alone := exec.CommandContext(ctx, c.Program, "run", "logistic", "--solver", "nesterov", "--data", data,
			"--max-iterations", "40", "--tol", "0", "--executors", "1", "--slots", "2",
			"--data-dir", filepath.Join(dir, "packs"), "--event-log", filepath.Join(dir, "alone"), "--json")
		if out, err := alone.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		ours, err := lab.ReadSteps(filepath.Join(dir, "alone"))
		if err != nil {
			return err
		}
		embedded = append(embedded, quantile(lab.Seconds(ours), 0.5))
		ratios = append(ratios, quantile(lab.Seconds(steps), 0.5)/quantile(lab.Seconds(ours), 0.5))
	}
	fmt.Printf("dense pass as processes: %.2f × embedded (%.4f s; limit 1.15)\n", quantile(ratios, 0.5),
		quantile(embedded, 0.5))
	return nil
}
