package scale

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/experiment"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
)

// Config says which clusters there are.
type Config struct {
	Executors   []int
	Policies    []abss.Policy
	Splits      int // of an executor
	Rows        int // of a split
	Accumulator int // bytes of a result
	Steps       int // the last of which is shown, since the first ones fetch copies
	FanIn       int // of the tree
	Law         string
	Clock       func() time.Duration
	Progress    func(done, all int)
}

// rate is how many rows a second an executor of speed 1 folds.
const rate = 100_000

// Cell is what a step of a cluster cost.
type Cell struct {
	Executors int    `json:"executors"`
	Policy    string `json:"policy"`
	Results   string `json:"results"` // how they come to the driver
	Heap      int64  `json:"heap_bytes"`
	sim.CrowdStep
}

// Run makes the table.
func Run(ctx context.Context, c Config) (cells []Cell, err error) {
	all := 2 * len(c.Executors) * len(c.Policies)
	for _, executors := range c.Executors {
		for _, policy := range c.Policies {
			for _, fan := range []int{0, c.FanIn} {
				cell, err := c.run(ctx, executors, policy, fan)
				if err != nil {
					return cells, err
				}
				if cells = append(cells, cell); c.Progress != nil {
					c.Progress(len(cells), all)
				}
			}
		}
	}
	return cells, nil
}

func (c *Config) run(ctx context.Context, executors int, policy abss.Policy, fan int) (Cell, error) {
	cell := Cell{Executors: executors, Policy: policy.String(), Results: "flat"}
	if fan > 0 {
		cell.Results = "tree of " + strconv.Itoa(fan)
	}
	law, err := pace.Parse(c.Law, rate)
	if err != nil {
		return cell, err
	}
	if err := law.Fits(executors, 1); err != nil {
		return cell, err
	}
	job := driver.JobConfig{ID: "scale", Fingerprint: plan.DigestOf([]byte("scale")), Executors: executors,
		Sync: abss.Config{Policy: policy}}.EnsureDefaults()
	steps, heap, err := sim.Crowd(sim.CrowdConfig{Job: job, Executors: executors, Splits: c.Splits * executors,
		Rows: int64(c.Rows), Accumulator: c.Accumulator, Law: law, FanIn: fan, Clock: c.Clock, Over: ctx.Err}, c.Steps)
	if ctx.Err() != nil {
		return cell, fault.New(fault.Cancelled, "run", "the experiment", ctx.Err())
	}
	if err == nil {
		cell.CrowdStep, cell.Heap = steps[len(steps)-1], heap
	}
	return cell, err
}

// Report shows the cells.
func (c *Config) Report(cells []Cell) *experiment.Report {
	r := &experiment.Report{Title: "What a step costs, by the number of executors", All: cells,
		Header: []string{"executors", "sync", "results", "step ms", "beyond its rows ms", "deciding ms", "coding ms",
			"merging ms", "received MB", "sent MB", "messages", "parts", "hops", "memory MB"},
		About: []string{
			fmt.Sprintf("Executors with %d splits of %d rows each, %d rows a second, results of %d bytes, under the "+
				"law %q: a step in computed time, and what of it is beyond its rows on executors that are always "+
				"busy. Each link has 1 GB/s and 200 µs, the driver's too. Deciding, coding of messages and merging "+
				"are the driver's, measured on this machine, and not in the step's time: they overlap with "+
				"computing but for the last.", c.Splits, c.Rows, rate, c.Accumulator, c.Law),
			fmt.Sprintf("Flat is what volley does: each executor merges what it folds into the largest subtrees, and "+
				"sends them to the driver. A tree of %d has executors merge the subtrees of others on their way, at "+
				"4 GB/s, to the same bits; it is computed from the same results, and not built.", c.FanIn),
		}}
	for _, cell := range cells {
		r.Rows = append(r.Rows, []string{strconv.Itoa(cell.Executors), cell.Policy, cell.Results, ms(cell.Took),
			ms(cell.Took - cell.Ideal), ms(cell.Deciding), ms(cell.Coding), ms(cell.Merging), mb(cell.Received),
			mb(cell.Sent), strconv.Itoa(cell.Messages), strconv.Itoa(cell.Parts), strconv.Itoa(cell.Hops),
			mb(cell.Heap)})
	}
	r.Charts = c.charts(cells)
	return r
}

// charts compares the driver's work by the number of executors, for each policy.
func (c *Config) charts(cells []Cell) (out []experiment.Chart) {
	for _, policy := range c.Policies {
		chart := experiment.Chart{Title: policy.String() + ": the driver's work in a step"}
		for _, cell := range cells {
			if cell.Policy == policy.String() && cell.Results == "flat" {
				chart.Names = append(chart.Names, strconv.Itoa(cell.Executors))
				chart.Times = append(chart.Times, (cell.Deciding + cell.Coding + cell.Merging).Seconds())
			}
		}
		if slices.ContainsFunc(chart.Times, func(t float64) bool { return !math.IsNaN(t) }) {
			out = append(out, chart)
		}
	}
	return out
}

func ms(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e6, 'g', 3, 64) }

func mb(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'g', 3, 64) }
