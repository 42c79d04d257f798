package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/experiment/scale"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
)

// scaleFlags are the options of volley lab scale.
type scaleFlags struct {
	scale.Config
	out      string
	policies []string
	quick    bool
}

func labScaleCommand() *cobra.Command {
	f := &scaleFlags{}
	c := &cobra.Command{
		Use:   "scale",
		Short: "What a step costs the driver, from 10 executors to 10,000",
		Long: `Scale runs steps over clusters of any number of executors in computed time, with
the real decisions, messages and merges and rows that are only counted, and writes
what a step costs beside its rows: time, the driver's work on this machine, bytes,
messages and memory. Results come to the driver from each executor, or along a tree
of executors that merge them on their way, which is computed.`,
		Example: "  volley lab scale --executors 10,100,1000 --out report",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c) },
	}
	fs := c.Flags()
	fs.StringVar(&f.out, "out", "lab", "directory for the report")
	fs.IntSliceVar(&f.Executors, "executors", []int{10, 100, 1000, 10_000}, "numbers of executors")
	fs.StringSliceVar(&f.policies, "sync", []string{"bsp", "absp", "steal"}, "policies: bsp, absp, deadline, steal")
	fs.IntVar(&f.Splits, "splits", 4, "splits of an executor")
	fs.IntVar(&f.Rows, "rows", 20_000, "rows of a split")
	fs.IntVar(&f.Accumulator, "result", 8000, "bytes of a result")
	fs.IntVar(&f.Steps, "steps", 3, "steps, of which the last is shown: the first ones fetch copies")
	fs.IntVar(&f.FanIn, "fan-in", 8, "executors whose results another one merges, of the tree")
	fs.StringVar(&f.Law, "pace", "uneven", "law of the executors' speeds, for any number of executors")
	fs.BoolVar(&f.quick, "quick", false, "up to 1,000 executors: seconds")
	return c
}

func (f *scaleFlags) run(ctx context.Context, c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	if err := disk.MkdirAll(f.out, 0o755); err != nil {
		return fault.New(fault.NoResources, "make", f.out, err)
	}
	began := time.Now()
	f.Clock = func() time.Duration { return time.Since(began) }
	f.Progress = func(done, all int) {
		fmt.Fprintf(os.Stderr, "%d of %d clusters, %v\n", done, all, time.Since(began).Round(time.Second))
	}
	cells, err := scale.Run(ctx, f.Config)
	if err != nil {
		return err
	}
	report := f.Report(cells)
	if err := report.Write(f.out, "scale"); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "report in %s\n", filepath.Join(f.out, "scale.html"))
	return printed(report)
}

// bounds of what is asked for.
const (
	mostExecutors = 100_000
	mostSplits    = 1_000_000
	mostRows      = 10_000_000
	mostResult    = 64 << 20
	mostSteps     = 1000
)

func (f *scaleFlags) check(c *cobra.Command) error {
	if f.quick && !c.Flags().Changed("executors") {
		f.Executors = []int{10, 100, 1000}
	}
	for _, n := range f.Executors {
		if n < 2 || n > mostExecutors || f.Splits > mostSplits/n {
			return usage(c, "executors", "%d executors with %d splits each are too few or too many", n, f.Splits)
		}
	}
	if len(f.policies) == 0 || len(f.Executors) == 0 {
		return usage(c, "sync", "there is no cluster to run: name policies, and numbers of --executors")
	}
	for _, name := range f.policies {
		policy, err := abss.ParsePolicy(name)
		if err != nil || policy == abss.Automatic {
			return usage(c, "sync", "%q is none of bsp, absp, deadline, steal", name)
		}
		f.Policies = append(f.Policies, policy)
	}
	for flag, at := range map[string][3]int{"splits": {f.Splits, 1, mostSplits}, "rows": {f.Rows, 1, mostRows},
		"result": {f.Accumulator, 8, mostResult}, "steps": {f.Steps, 1, mostSteps}, "fan-in": {f.FanIn, 2,
			mostExecutors}} {
		if at[0] < at[1] || at[0] > at[2] {
			return usage(c, flag, "%d is not from %d to %d", at[0], at[1], at[2])
		}
	}
	return f.checkLaw(c)
}

func (f *scaleFlags) checkLaw(c *cobra.Command) error {
	law, err := pace.Parse(f.Law, 1)
	for i := 0; i < len(f.Executors) && err == nil && law != nil; i++ {
		err = law.Fits(f.Executors[i], 1)
	}
	if err == nil && law == nil {
		err = errors.New("a law is needed")
	}
	if err != nil {
		return usage(c, "pace", "%v", err)
	}
	return nil
}
