package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
)

// What TLS and three drivers cost: the same work on eight executor processes of a cluster over sockets with one driver,
// over TLS with one, and over TLS with three, in turns, so that all meet the same machine.
const (
	trustRounds = 3
	trustSteps  = 1000
	trustPasses = 100
	trustJobs   = 5
)

// cost is what a cluster of a kind has taken, in seconds.
type cost struct {
	steps         []float64 // from the start of a step to its results
	empty, passes []float64 // for each iteration, all in all
	jobs          []float64 // a job of one step, from submission to result
}

// trust measures what trust and several drivers cost.
func trust(ctx context.Context, dir string, _ int64) error {
	tiny, dense := filepath.Join(dir, "tiny.arrow"), filepath.Join(dir, "trust.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: 64, Features: 1, Eps: 1}, "arrow", tiny, 1); err != nil {
		return err
	}
	if err := synth.Write(ctx, synth.Logistic{Rows: 300_000, Features: 50, Eps: 0.1}, "arrow", dense, 2); err != nil {
		return err
	}
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	kinds := []string{"sockets, one driver", "TLS, one driver", "TLS, three drivers"}
	costs := make([]cost, len(kinds))
	for round := range trustRounds {
		for n, drivers := range []int{0, 1, 3} {
			at := filepath.Join(dir, fmt.Sprint("trust-", round, "-", drivers))
			if err := costs[n].measure(program, at, drivers, tiny, dense); err != nil {
				return fmt.Errorf("%s: %w", kinds[n], err)
			}
		}
	}
	plain := costs[0]
	ratio := func(ours, theirs []float64, q float64) string {
		return fmt.Sprintf("%.2f ms (%.2f x)", 1e3*quantile(ours, q), quantile(ours, q)/quantile(theirs, q))
	}
	for n, c := range costs {
		fmt.Printf("%s, 8 executor processes: empty step p50 %s, p99 %s, with all around it %s; dense pass %s; a "+
			"job of one step %s\n", kinds[n], ratio(c.steps, plain.steps, 0.5), ratio(c.steps, plain.steps, 0.99),
			ratio(c.empty, plain.empty, 0.5), ratio(c.passes, plain.passes, 0.5), ratio(c.jobs, plain.jobs, 0.5))
	}
	return nil
}

// measure adds what a cluster takes, which is started for it; no drivers are one over a socket.
func (c *cost) measure(program, dir string, drivers int, tiny, dense string) error {
	start := func() (*lab.Cluster, error) { return lab.StartSecured(program, dir, drivers) }
	if drivers == 0 {
		start = func() (*lab.Cluster, error) { return lab.Start(program, dir) }
	}
	cluster, err := start()
	if err != nil {
		return err
	}
	defer cluster.Close()
	for i := range 8 {
		if err := cluster.Join(fmt.Sprint("e", i), "packs"); err != nil {
			return err
		}
	}
	gd := []string{"--solver", "gd", "--sync", "bsp", "--tol", "0", "--splits", "8"}
	all, err := cluster.Submit("--data", tiny, "--splits", "8", "--tol", "0", "--max-iterations",
		strconv.Itoa(trustSteps))
	if err != nil {
		return err
	}
	c.steps = append(c.steps, lab.Seconds(all)...)
	for data, n := range map[string]int{tiny: trustSteps, dense: trustPasses} {
		took, err := cluster.PerIteration(append(gd, "--data", data, "--max-iterations", strconv.Itoa(n))...)
		if err != nil {
			return err
		}
		if data == tiny {
			c.empty = append(c.empty, took)
		} else {
			c.passes = append(c.passes, took)
		}
	}
	for range trustJobs {
		began := time.Now()
		if _, err := cluster.PerIteration(append(gd, "--data", tiny, "--max-iterations", "1")...); err != nil {
			return err
		}
		c.jobs = append(c.jobs, time.Since(began).Seconds())
	}
	return nil
}
