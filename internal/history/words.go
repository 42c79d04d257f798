package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/chart"
)

// Words returns what a reader of a run asks first: what it is, whether it is done, who is slow, and what waiting would
// have cost.
func (c *Run) Words() []string {
	steps := c.Steps()
	out := []string{c.what(steps), c.end()}
	if slow := c.slowest(steps); slow != "" {
		out = append(out, slow)
	}
	if gain := c.gain(steps); gain != "" {
		out = append(out, gain)
	}
	return out
}

// what returns what ran.
func (c *Run) what(steps []Pass) string {
	cut, share := 0, 0.0
	for _, p := range steps {
		if p.Cut {
			cut++
		}
		share += mean(p.Shares)
	}
	text := fmt.Sprintf("%s under --sync %s, %s in "+
		"%s", c.Job, c.Sync, count(c.Rows, "row"), count(int64(c.Splits), "split"))
	if n := len(c.Executors); n > 0 {
		text += " on " + count(int64(n), "executor")
	}
	if len(steps) == 0 {
		return text + "."
	}
	text += fmt.Sprintf(": %s in %s s", count(int64(len(steps)), "step"), chart.Number(c.last().Ended.Seconds()))
	if cut == 0 {
		return text + ", all of every row."
	}
	return text + fmt.Sprintf(", of which %d ended before every row was processed; a step has %.0f %% of all rows, on "+
		"average.", cut, 100*share/float64(len(steps)))
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (c *Run) last() *Pass { return &c.Passes[len(c.Passes)-1] }

// endings has what the rules that runs end by mean.
var endings = map[string]string{"tolerance": "it has converged", "tol": "it has converged", "target": "it has " +
	"reached its target",
	"gap": "it has converged", "exact": "its solution is exact",
	"max-iterations": "it was stopped by its limit of iterations, and may have got better"}

// end returns whether the model is done.
func (c *Run) end() string {
	objective, iteration := math.NaN(), 0
	for _, p := range c.Passes {
		if v := float64(p.Objective); !math.IsNaN(v) {
			objective, iteration = v, p.Iteration
		}
	}
	text := ""
	if !math.IsNaN(objective) {
		text = fmt.Sprintf("The objective is %s after iteration %d. ", chart.Number(objective), iteration)
	}
	switch means, known := endings[c.StoppedBy]; {
	case c.StoppedBy == "":
		return text + "The run goes on, or was interrupted: its log has no end."
	case known:
		return text + strings.ToUpper(means[:1]) + means[1:] + " (" + c.StoppedBy + ")."
	}
	return text + "It was ended by " + c.StoppedBy + "."
}

// speeds returns the rows a second that each executor folds, the median of steps; NaN where that is not known.
func (c *Run) speeds(steps []Pass) []float64 {
	all := make([][]float64, len(c.Executors))
	for _, p := range steps {
		for e := range min(len(all), len(p.Busy), len(p.Rows)) {
			if p.Busy[e] > 0 && p.Rows[e] > 0 {
				all[e] = append(all[e], float64(p.Rows[e])/p.Busy[e].Seconds())
			}
		}
	}
	out := make([]float64, len(all))
	for e, some := range all {
		if out[e] = math.NaN(); len(some) > 0 {
			slices.Sort(some)
			out[e] = some[len(some)/2]
		}
	}
	return out
}

// even is up to which share of the fastest's speed the slowest may have, to be called even.
const even = 0.8

// slowest returns who is slow; nothing where that is not known.
func (c *Run) slowest(steps []Pass) string {
	speeds := c.speeds(steps)
	low, high := -1, -1
	for e, v := range speeds {
		if math.IsNaN(v) {
			continue
		}
		if low < 0 || v < speeds[low] {
			low = e
		}
		if high < 0 || v > speeds[high] {
			high = e
		}
	}
	if low < 0 || low == high {
		return ""
	}
	share := speeds[low] / speeds[high]
	if share >= even {
		return fmt.Sprintf("Executors are even: the slowest, %s, folds %.2f of the rows a second of the fastest.",
			c.Executors[low], share)
	}
	return fmt.Sprintf("%s is slow: it folds %s rows a second, %.2f of what %s does.", c.Executors[low],
		chart.Number(speeds[low]), share, c.Executors[high])
}

// waited returns how long a step would have taken if it had waited for every row, by the speeds that executors had in
// it; it is not known where who has folded what does not follow from who owns it.
func (p *Pass) waited() (time.Duration, bool) {
	if !p.Cut || p.Phases == nil || len(p.Rows) == 0 || len(p.Busy) < len(p.Rows) {
		return p.Took(), !p.Cut
	}
	longest := time.Duration(p.Phases.Compute)
	for e, rows := range p.Rows {
		if rows > 0 && p.Busy[e] > 0 {
			longest = max(longest, time.Duration(float64(p.Owns[e])/float64(rows)*float64(p.Busy[e])))
		}
	}
	return p.Took() - time.Duration(p.Phases.Compute) + longest, true
}

// gain returns what waiting for all rows would have cost; nothing where nothing was cut.
func (c *Run) gain(steps []Pass) string {
	var took, waited time.Duration
	cut := false
	for i := range steps {
		w, known := steps[i].waited()
		if !known {
			return ""
		}
		took, waited, cut = took+steps[i].Took(), waited+w, cut || steps[i].Cut
	}
	if !cut {
		return ""
	}
	return fmt.Sprintf("Steps took %s s. Had each waited for every row, as under bsp, they would have taken about %s "+
		"s: %.1f "+
		"times as long.", chart.Number(took.Seconds()), chart.Number(waited.Seconds()), float64(waited)/float64(took))
}
