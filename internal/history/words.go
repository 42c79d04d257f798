package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/chart"
)

// Words returns what a reader of a run asks first: what it is, whether it is done, who is slow, and what waiting would
// have cost.
func (c *Run) Words() []string {
	steps := c.Steps()
	out := []string{c.what(steps), c.end()}
	if slow := c.slowest(); slow != "" {
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
	return text + fmt.Sprintf(", of which %d ended before every row was processed; a step uses %.0f %% of all rows, "+
		"on "+
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
	"max-iterations": "it was stopped by its limit of iterations: with more it might become better"}

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

// even is up to which share of the fastest's speed the slowest may have, to be called even.
const even = 0.8

// slowest returns who is slow; nothing where that is not known.
func (c *Run) slowest() string {
	low, high := -1, -1
	for e, v := range c.Speeds {
		if math.IsNaN(float64(v)) {
			continue
		}
		if low < 0 || v < c.Speeds[low] {
			low = e
		}
		if high < 0 || v > c.Speeds[high] {
			high = e
		}
	}
	if low < 0 || low == high {
		return ""
	}
	share := float64(c.Speeds[low] / c.Speeds[high])
	if share >= even {
		return fmt.Sprintf("Executors are even: the slowest, %s, processes %.2f of the rows a second of the fastest.",
			c.Executors[low], share)
	}
	return fmt.Sprintf("%s is slow: it processes %s rows a second, %s %.1f times as many.", c.Executors[low],
		chart.Number(float64(c.Speeds[low])), c.Executors[high], 1/share)
}

// waited returns how long a step would have taken had each executor folded all rows of its own splits, at its speed,
// and all had waited for the last; false where that is not known.
func (c *Run) waited(p *Pass) (time.Duration, bool) {
	if len(p.Owns) == 0 || len(p.Owns) != len(c.Speeds) {
		return p.Took(), !p.Cut
	}
	longest, batch := time.Duration(0), p.Batch
	if batch == 0 {
		batch = 1
	}
	for e, rows := range p.Owns {
		switch speed := float64(c.Speeds[e]); {
		case rows == 0:
		case !(speed > 0):
			return p.Took(), !p.Cut
		default:
			longest = max(longest, time.Duration(batch*float64(rows)/speed*float64(time.Second)))
		}
	}
	if p.Phases == nil { // of a pass of the method, of which only the whole is known
		return max(p.Took(), longest), true
	}
	return p.Took() - time.Duration(p.Phases.Compute) + longest, true
}

// worth is from which gain on it is spoken of.
const worth = 1.05

// gain returns what waiting for all rows would have cost; nothing where that is little, or not known.
func (c *Run) gain(steps []Pass) string {
	var took, waited time.Duration
	for i := range steps {
		w, known := c.waited(&steps[i])
		if !known {
			return ""
		}
		took, waited = took+steps[i].Took(), waited+w
	}
	if took == 0 || float64(waited) < worth*float64(took) {
		return ""
	}
	return fmt.Sprintf("Of its time, %s s are steps. Had each waited for every row of its splits, as under bsp and "+
		"where splits "+
		"were by then, they would have taken about %s s: %.1f times as long.", chart.Number(took.Seconds()),
		chart.Number(waited.Seconds()), float64(waited)/float64(took))
}
