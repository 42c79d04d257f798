// Command memory looks whether the limit that --memory sets is kept: it runs each operation
// on about ten times as much data in a process of its own, and prints how much memory that is
// no file's the process and all that it started had at the most. It fails where one had more
// than the limit and what may be beside it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	volley "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/integration/lab"
)

// slack is how much a process and what it starts may have beyond their limit.
const slack = 64 << 20

// workerEnv names the operation that a process is to run, and not to measure.
const workerEnv = "VOLLEY_BENCH_MEMORY"

// options are those of a run.
type options struct {
	limit string
	scale float64
	only  string
	dir   string
}

func main() {
	var o options
	flag.StringVar(&o.limit, "limit", "200MiB", "the limit on memory")
	flag.Float64Var(&o.scale, "scale", 1, "how much data there is: 1 is 2 GB")
	flag.StringVar(&o.only, "only", "", "parts of the names of the operations to run, with commas between; all "+
		"without it")
	flag.StringVar(&o.dir, "dir", "", "where inputs and outputs are put; a temporary directory without it")
	flag.Parse()
	over, err := run(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || over > 0 {
		os.Exit(1)
	}
}

// wants reports whether an operation was asked for.
func (o options) wants(name string) bool {
	return slices.ContainsFunc(strings.Split(o.only, ","),
		func(part string) bool { return strings.Contains(name, part) })
}

// run runs what is asked for, and says how many operations went over the limit.
func run(ctx context.Context, o options) (over int, err error) {
	if step := os.Getenv(workerEnv); step != "" {
		return 0, work(ctx, o, step)
	}
	limit, err := volley.ParseBytes(o.limit)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(o.dir, "volley-memory-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%-28s %9s %9s %8s\n", "operation", "limit MiB", "peak MiB", "seconds")
	for _, op := range operations() {
		if !o.wants(op.name) {
			continue
		}
		o.dir = filepath.Join(dir, strings.ReplaceAll(op.name, " ", "-"))
		m, err := measure(o, op)
		if err != nil {
			return over, fmt.Errorf("%s: %w", op.name, err)
		}
		if m.peak > limit+slack || m.wrong != "" {
			over++
		}
		fmt.Printf("%-28s %9d %9d %8.1f  %s\n", op.name, limit>>20, m.peak>>20, m.took.Seconds(), m.verdict(limit))
		os.RemoveAll(o.dir)
	}
	return over, nil
}

// measured is what came of an operation.
type measured struct {
	peak  int64
	took  time.Duration
	wrong string // what it said that it was not to say
}

func (m measured) verdict(limit int64) string {
	switch {
	case m.peak > limit+slack:
		return strings.TrimSpace("over " + m.wrong)
	case m.wrong != "":
		return "failed: " + m.wrong
	}
	return "ok"
}

// measure prepares the input of an operation, and runs it in a process that is watched.
func measure(o options, op operation) (m measured, err error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return m, err
	}
	if op.prepare != nil {
		if out, err := worker(o, "prepare "+op.name).CombinedOutput(); err != nil {
			return m, fmt.Errorf("preparing: %w: %s", err, out)
		}
	}
	var said strings.Builder
	cmd := worker(o, "run "+op.name)
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	m.peak, err = peakOf(cmd.Process.Pid, done)
	m.took = time.Since(began)
	m.wrong = op.judge(err, strings.TrimSpace(said.String()))
	return m, nil
}

// judge returns what is wrong with how an operation ended; empty where nothing is.
func (op operation) judge(err error, said string) string {
	switch {
	case op.refused == "" && err != nil:
		return fmt.Sprint(err, ": ", said)
	case op.refused != "" && (err == nil || !strings.Contains(said, op.refused)):
		return "it does not say " + op.refused + ": " + said
	}
	return ""
}

// worker returns this program as a command, started again for a step.
func worker(o options, step string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-limit", o.limit, "-scale", fmt.Sprint(o.scale), "-dir", o.dir)
	cmd.Env = append(os.Environ(), workerEnv+"="+step)
	return cmd
}

// between is how long is waited between two looks at a process's memory.
const between = 5 * time.Millisecond

// peakOf watches a process until it has ended, and returns how that was.
func peakOf(pid int, done <-chan error) (peak int64, err error) {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return peak, err
		case <-tick.C:
			peak = max(peak, lab.Anonymous(pid))
		}
	}
}
