package main

import (
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/experiment"
	"github.com/volley-engine/volley/internal/fault"
)

func labFiguresCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "figures LOG…",
		Short: "Draw how runs went, from their event logs",
		Long: `Figures reads the event logs of runs, has their jobs decide again what they decided,
and draws a page of them: the objective by time, of all runs in one figure; and of
each run the share of each split in each step, moves of splits, how long executors
have folded, and one step in detail. What is drawn is beside it as CSV and JSON.`,
		Example: "  volley lab figures bsp.log absp.log --out figures",
		Args:    someArgs("event logs"),
		RunE: func(_ *cobra.Command, args []string) error {
			var runs []experiment.Course
			for i, path := range args {
				run, err := courseOf(path, namesOf(args)[i])
				if err != nil {
					return err
				}
				runs = append(runs, run)
			}
			if err := disk.MkdirAll(out, 0o755); err != nil {
				return fault.New(fault.NoResources, "make", out, err)
			}
			return experiment.WriteFigures(out, "figures", runs)
		},
	}
	c.Flags().StringVar(&out, "out", "lab", "directory for the page")
	return c
}

// namesOf returns names that tell paths apart: the files' own, where these do.
func namesOf(paths []string) (names []string) {
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(paths) {
		return paths
	}
	return names
}

// verified reads a log whose decisions follow from its reports.
func verified(path, what string) (*audit.Log, *audit.Report, error) {
	l, err := audit.Read(path)
	if err != nil {
		return nil, nil, err
	}
	r := audit.Verify(l)
	if len(r.Violations) > 0 {
		return nil, nil, fault.Newf(fault.Corrupt, what, path, "%s", r.Violations[0]).WithHint("see volley verify")
	}
	return l, r, nil
}

// course puts together how a run went.
type course struct {
	experiment.Course
	report *audit.Report
	rows   map[int][]int64 // of the splits of each pack
}

func courseOf(path, name string) (experiment.Course, error) {
	l, r, err := verified(path, "draw")
	if err != nil {
		return experiment.Course{}, err
	}
	c := &course{report: r, rows: map[int][]int64{0: l.Header.N}}
	c.Name, c.Splits = name, len(l.Header.N)
	for _, line := range l.Lines {
		c.add(line)
	}
	if len(c.Passes) == 0 {
		return c.Course, fault.Newf(fault.BadInput, "draw", path, "it has no pass whose reports are kept")
	}
	return c.Course, nil
}

func (c *course) add(line audit.Line) {
	began, ended, known := c.report.Took(line.Number)
	p := experiment.Pass{Began: began, Ended: ended, Objective: experiment.Known(math.NaN()),
		Busy: c.report.Busy(line.Number)}
	switch {
	case line.Pack != nil:
		c.rows[line.Pack.Pack] = line.Pack.N
	case !known:
	case line.Step != nil:
		c.step(&p, line.Step)
	case line.Evaluation != nil:
		c.pass(&p, line.Evaluation)
	}
}

// step adds a training step.
func (c *course) step(p *experiment.Pass, s *driver.LogStep) {
	p.Step, p.Iteration, p.Cut, p.Moves = true, s.Iteration, s.Cut, len(s.Moves)
	note(p, s.Values)
	if len(s.Executors) > 0 {
		c.Executors = s.Executors
	}
	if s.Pack == 0 {
		p.Shares = sharesOf(s.C, c.rows[0])
	}
	c.Passes = append(c.Passes, *p)
}

// pass adds a pass over all rows: one of the method is a step, too; of others those that found an objective.
func (c *course) pass(p *experiment.Pass, e *driver.LogEvaluation) {
	p.Step, p.Iteration = e.Work, e.Iteration
	if e.Commit != nil {
		p.Iteration = e.Commit.Iteration
		note(p, e.Commit.Values)
	}
	if e.Objective != nil {
		p.Objective = experiment.Known(*e.Objective)
	}
	if e.Work && e.Pack == 0 {
		p.Shares = sharesOf(e.C, c.rows[0])
	}
	if e.Work || !math.IsNaN(float64(p.Objective)) {
		c.Passes = append(c.Passes, *p)
	}
}

// note takes the objective of an iteration, where it has one.
func note(p *experiment.Pass, values map[string]float64) {
	if v, ok := values["objective"]; ok {
		p.Objective = experiment.Known(v)
	}
}

// sharesOf returns which part of each split's rows was folded.
func sharesOf(counts, rows []int64) (shares []float64) {
	for i, n := range rows {
		share := 1.0
		if n > 0 {
			share = float64(counts[i]) / float64(n)
		}
		shares = append(shares, share)
	}
	return shares
}
