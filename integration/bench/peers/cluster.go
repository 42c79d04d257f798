package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/synth"
)

// times are a distribution as the peers' scripts print it.
type times struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

// theirs is what one of the peers' scenarios prints.
type theirs struct {
	Up        float64   `json:"cluster_up_s"`
	Wall      float64   `json:"submit_wall_s"`
	Empty     times     `json:"empty_stage"`
	Aggregate times     `json:"tree_aggregate_1mb_depth1"`
	Broadcast times     `json:"broadcast_1mb"`
	Tasks     []float64 `json:"runs_s"`
	Before    float64   `json:"before_p50_ms"`
	Worst     float64   `json:"at_max_ms"`
}

// peerScenario runs a scenario of the peers' scripts; where they are not set
// up ours stands alone.
func peerScenario(peers, name string) (t theirs, err error) {
	out, err := exec.Command(filepath.Join(peers, "cluster", "run"), name).Output()
	if err != nil {
		return t, fmt.Errorf("spark %s: %w", name, err)
	}
	return t, json.Unmarshal(out, &t)
}

// clusterPeers measures a cluster of three executors beside Spark standalone
// with three workers on this machine.
func clusterPeers(ctx context.Context, peers string) error {
	dir, err := os.MkdirTemp("", "volley-peers-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := lab.Build(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	c, err := threeExecutors(program, filepath.Join(dir, "c"))
	if err != nil {
		return err
	}
	up := time.Since(began).Seconds()
	err = costs(ctx, c, dir, peers, up)
	c.Close()
	if err != nil {
		return err
	}
	return harms(ctx, program, dir, peers)
}

func threeExecutors(program, dir string) (*lab.Cluster, error) {
	c, err := lab.Start(program, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := c.Join(name, name); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// steps trains on made-up data and returns the median and the 99th percentile
// of its steps, in milliseconds, and the seconds of the whole submission.
func steps(ctx context.Context, c *lab.Cluster, dir string, law synth.Logistic, splits, n int) (t times, whole float64,
	err error) {
	data := filepath.Join(dir, fmt.Sprintf("%d-%d.arrow", law.Rows, law.Features))
	if err := synth.Write(ctx, law, "arrow", data, 1); err != nil {
		return t, 0, err
	}
	began := time.Now()
	all, err := c.Submit("--data", data, "--splits", strconv.Itoa(splits), "--tol", "0", "--max-iterations",
		strconv.Itoa(n))
	if err != nil {
		return t, 0, err
	}
	whole = time.Since(began).Seconds()
	took := lab.Seconds(all)
	slices.Sort(took)
	return times{P50: 1e3 * took[len(took)/2], P99: 1e3 * took[len(took)*99/100]}, whole, nil
}

// costs measures what a cluster costs while nothing fails.
func costs(ctx context.Context, c *lab.Cluster, dir, peers string, up float64) error {
	empty, _, err := steps(ctx, c, dir, synth.Logistic{Rows: 64, Features: 1, Eps: 1}, 8, 700)
	if err != nil {
		return err
	}
	_, nothing, err := steps(ctx, c, dir, synth.Logistic{Rows: 63, Features: 1, Eps: 1}, 8, 1)
	if err != nil {
		return err
	}
	wide, _, err := steps(ctx, c, dir, synth.Logistic{Rows: 8, Features: 131072, Eps: 1}, 8, 60)
	if err != nil {
		return err
	}
	many, _, err := steps(ctx, c, dir, synth.Logistic{Rows: 5000, Features: 1, Eps: 1}, 5000, 5)
	if err != nil {
		return err
	}
	noop, err := peerScenario(peers, "noop")
	if err != nil {
		fmt.Println(err)
	}
	latency, _ := peerScenario(peers, "latency")
	agg, _ := peerScenario(peers, "agg")
	tasks, _ := peerScenario(peers, "tasks")
	best := 0.0
	if len(tasks.Tasks) > 0 {
		best = 1e3 * slices.Min(tasks.Tasks)
	}
	fmt.Println("cluster of three executors; Spark standalone with three workers beside it (limit 10× each):")
	line("driver and executors up", 1e3*up, 1e3*noop.Up)
	line("a job of next to nothing, from submission to result", 1e3*nothing, 1e3*noop.Wall)
	line("empty step or stage, median", empty.P50, latency.Empty.P50)
	line("the same, 99th percentile", empty.P99, latency.Empty.P99)
	line("1 MB to every task and 1 MB from each (theirs: broadcast and aggregate)", wide.P50,
		agg.Broadcast.P50+agg.Aggregate.P50)
	line("5,000 empty tasks", many.P50, best)
	return nil
}

func line(what string, ours, theirs float64) {
	if theirs > 0 {
		fmt.Printf("  %s: %.1f ms, theirs %.1f: %.1f×\n", what, ours, theirs, theirs/ours)
	} else {
		fmt.Printf("  %s: %.1f ms\n", what, ours)
	}
}

// The harms that are done to a job after its fifteenth step.
const (
	harmSteps = 40
	harmAt    = 15
	stopFor   = 20 * time.Second
)

// harms: a logistic regression of a million rows while an executor is killed,
// one is stopped, or the driver is killed.
func harms(ctx context.Context, program, dir, peers string) error {
	data := filepath.Join(dir, "lr.arrow")
	if err := synth.Write(ctx, synth.Logistic{Rows: 1_000_000, Features: 50, Eps: 0.1}, "arrow", data, 1); err != nil {
		return err
	}
	for _, h := range []struct {
		name, peer string
		harm       func(c *lab.Cluster) (undo func() error)
	}{
		{"undisturbed", "lr", func(*lab.Cluster) func() error { return nil }},
		{"an executor killed", "lr-kill", func(c *lab.Cluster) func() error {
			_ = c.Executors["b"].Process.Kill()
			return nil
		}},
		{"an executor stopped for 20 s", "lr-stop", func(c *lab.Cluster) func() error {
			c.Signal("b", syscall.SIGSTOP)
			return func() error {
				time.Sleep(stopFor)
				c.Signal("b", syscall.SIGCONT)
				return nil
			}
		}},
		{"the driver killed and started again", "lr-kill-driver", func(c *lab.Cluster) func() error {
			_ = c.Driver.Process.Kill()
			return c.StartDriver
		}},
	} {
		r, err := harmed(program, filepath.Join(dir, h.peer), data, h.harm)
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		theirs, err := peerScenario(peers, h.peer)
		beside := "ended early, or was lost"
		switch {
		case err != nil:
			beside = "not run"
		case theirs.Worst > 0:
			beside = fmt.Sprintf("median %.0f, longest %.0f ms", theirs.Before, theirs.Worst)
		}
		fmt.Printf("  %s: %d steps, median %.0f, longest after it %.0f ms (%.1f × the median); Spark: %s\n",
			h.name, r.steps, r.median, r.longest, r.longest/r.median, beside)
	}
	return nil
}

// outcome is what became of a job that was harmed: times between two commits,
// in milliseconds; the longest is of all steps after the harm, theirs of six.
type outcome struct {
	steps           int
	median, longest float64
}

func harmed(program, dir, data string, harm func(*lab.Cluster) func() error) (o outcome, err error) {
	c, err := threeExecutors(program, dir)
	if err != nil {
		return o, err
	}
	defer c.Close()
	id, err := c.Detach("--data", data, "--splits", "6", "--sync", "absp", "--tol", "0", "--max-iterations",
		strconv.Itoa(harmSteps))
	if err != nil {
		return o, err
	}
	commits, err := watchCommits(c, id, func() error {
		if undo := harm(c); undo != nil {
			return undo()
		}
		return nil
	})
	if err != nil {
		return o, err
	}
	var before, after []float64
	for i := 1; i < len(commits); i++ {
		gap := commits[i].Sub(commits[i-1]).Seconds() * 1e3
		if i < harmAt {
			before = append(before, gap)
		} else {
			after = append(after, gap)
		}
	}
	slices.Sort(before)
	return outcome{len(commits), before[len(before)/2], slices.Max(after)}, nil
}

// watchCommits notes when each step's line appears in the job's event log, and
// does the harm once.
func watchCommits(c *lab.Cluster, id string, harm func() error) ([]time.Time, error) {
	var commits []time.Time
	var done chan error
	err := lab.Await("the end of the job", func() (bool, error) {
		raw, _ := os.ReadFile(c.Log(id))
		now, n := time.Now(), strings.Count(string(raw), `{"event":"step"`)
		for len(commits) < n {
			commits = append(commits, now)
		}
		if n >= harmAt && done == nil {
			done = make(chan error, 1)
			go func() { done <- harm() }()
		}
		return n >= harmSteps, nil
	})
	if done != nil {
		if herr := <-done; herr != nil {
			return nil, herr
		}
	}
	return commits, err
}
