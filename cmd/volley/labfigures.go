package main

import (
	"math"
	"path/filepath"
	"strings"
	"time"

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
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var runs []experiment.Course
			for _, path := range args {
				run, err := courseOf(path)
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
	log       *audit.Log
	report    *audit.Report
	rows      map[int][]int64 // of the splits of each pack
	placement []int           // of the first pack
	speeds    map[time.Duration][]float64
}

func courseOf(path string) (experiment.Course, error) {
	l, r, err := verified(path, "draw")
	if err != nil {
		return experiment.Course{}, err
	}
	c := &course{log: l, report: r, rows: map[int][]int64{0: l.Header.N}, speeds: map[time.Duration][]float64{}}
	c.Name, c.Splits = filepath.Base(path), len(l.Header.N)
	for _, s := range r.Speeds {
		at := c.speeds[s.Until]
		for len(at) <= s.Executor {
			at = append(at, 0)
		}
		at[s.Executor] = s.RowsPerSecond
		c.speeds[s.Until] = at
	}
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
	switch {
	case line.Pack != nil:
		c.rows[line.Pack.Pack] = line.Pack.N
	case !known:
	case line.Step != nil:
		c.Passes = append(c.Passes, c.step(line.Step, began, ended))
	case line.Evaluation != nil && line.Evaluation.Objective != nil:
		c.Passes = append(c.Passes, experiment.Pass{Began: began, Ended: ended, Iteration: line.Evaluation.Iteration,
			Objective: experiment.Known(*line.Evaluation.Objective)})
	}
}

func (c *course) step(s *driver.LogStep, began, ended time.Duration) experiment.Pass {
	p := experiment.Pass{Began: began, Ended: ended, Step: true, Iteration: s.Iteration, Cut: s.Cut,
		Objective: experiment.Known(math.NaN()), Moves: len(s.Moves)}
	if v, ok := s.Values["objective"]; ok {
		p.Objective = experiment.Known(v)
	}
	if len(s.Executors) > 0 {
		c.Executors = s.Executors
	}
	if s.Pack != 0 {
		return p
	}
	if len(s.Placement) > 0 {
		c.placement = s.Placement
	}
	for i, n := range c.rows[0] {
		share := 1.0
		if n > 0 {
			share = float64(s.C[i]) / float64(n)
		}
		p.Shares = append(p.Shares, share)
	}
	p.Busy = c.busy(s, ended)
	return p
}

// busy returns how long each executor has folded its own splits; nil where pieces of them may have been another's.
func (c *course) busy(s *driver.LogStep, ended time.Duration) []time.Duration {
	speeds := c.speeds[ended]
	if c.log.Header.Options.Sync == "steal" || strings.Contains(s.Why, "by leases") || len(speeds) == 0 {
		return nil
	}
	busy := make([]time.Duration, len(speeds))
	for i, e := range c.placement {
		if e >= 0 && e < len(speeds) && speeds[e] > 0 && i < len(s.C) {
			busy[e] += time.Duration(float64(s.C[i]) / speeds[e] * 1e9)
		}
	}
	return busy
}
