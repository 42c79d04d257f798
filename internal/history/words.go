package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/chart"
)

// Words returns what a reader of a run asks first: what it is, whether it is done, who is slow, and what waiting would
// have cost.
func (c *Run) Words() []string {
	out := []string{c.what(), c.end()}
	if c.Version != 0 && c.Version < driver.LogVersion {
		out = append(out, fmt.Sprintf("Its log is of version %d, where this is %d: what it says is shown as it is, "+
			"and not verified.", c.Version, driver.LogVersion))
	}
	if c.LeftOut {
		out = append(out, "Its executors reported more than a hundredth of what its steps sent, which its log has "+
			"left out: "+
			"how fast each was is not known from there on.")
	}
	if slow := c.slowest(); slow != "" {
		out = append(out, slow)
	}
	if n := len(c.Lost); n > 0 {
		out = append(out, fmt.Sprintf("%s lost; its splits go to others: %s.", map[bool]string{true: "An executor is",
			false: fmt.Sprintf("%d executors are", n)}[n == 1], some(c.Lost)))
	}
	if gain := c.gain(); gain != "" {
		out = append(out, gain)
	}
	return out
}

// what returns what ran.
func (c *Run) what() string {
	text := fmt.Sprintf("%s under --sync %s%s, %s in %s", c.Job, c.Sync, c.options(), count(c.Rows, "row"),
		count(int64(c.Splits), "split"))
	if n := len(c.Executors); n > 0 {
		text += " on " + count(int64(n), "executor")
	}
	steps, cut, share := c.counted()
	if steps == 0 {
		return text + "."
	}
	noun, plural := "step", "steps"
	if c.passes {
		noun, plural = "pass", "passes"
	}
	name := plural
	if steps == 1 {
		name = noun
	}
	text += fmt.Sprintf(": %d %s, the last of which ended %s s after the job began", steps, name,
		chart.Number(c.took().Seconds()))
	switch {
	case cut == 0 && share > 1-1e-9:
		return text + ", all of every row."
	case cut == 0:
		return text + fmt.Sprintf("; a %s uses %.4g %% of all rows, on average.", noun, 100*share)
	}
	return text + fmt.Sprintf(", and of which %d ended before every row was processed; a %s uses %.0f %% of all rows, "+
		"on average.", cut, noun, 100*share)
}

// options returns those that decide how much a step waits for.
func (c *Run) options() string {
	if c.Ratio == 0 {
		return ""
	}
	return fmt.Sprintf(" (a step may end once the first executor is done and %.0f %% of all rows are processed; "+
		"--exchange %s)", 100*c.Ratio, c.Exchange)
}

// some returns names, the first where they are many.
func some(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// endings has what the rules that runs end by mean.
var endings = map[string]string{"tolerance": "it has converged", "tol": "it has converged", "target": "it has " +
	"reached its target",
	"gap": "it has converged", "duality-gap": "it has converged", "validation": "the loss on rows that were held out " +
		"falls no more", "max-time": "it was stopped by its limit of time: with more it might become better",
	"interrupted": "it was interrupted", "exact": "its solution is exact",
	"max-iterations": "it was stopped by its limit of iterations: with more it might become better"}

// end returns whether the model is done.
func (c *Run) end() string {
	text := ""
	if p, known := c.objective(); known {
		text = fmt.Sprintf("The objective is %s after iteration %d. ", chart.Number(p.Objective), p.Iteration)
	}
	switch means, known := endings[c.StoppedBy]; {
	case c.Partial:
		return text + "The rest of its log is not read yet."
	case c.StoppedBy == "" && c.Goes:
		return text + "It goes on."
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

// waited returns how long steps would have taken had each executor folded all rows of its own splits, at its speed,
// and all had waited for the last; false where that is not known.
func (c *Run) waited(s *Step) (time.Duration, bool) {
	whole := s.Cuts == 0
	if len(s.Owns) == 0 || len(s.Owns) > len(c.Speeds) {
		return s.Took, whole
	}
	longest, batch := time.Duration(0), s.Batch
	if batch == 0 {
		batch = 1
	}
	for e, rows := range s.Owns {
		switch speed := float64(c.Speeds[e]); {
		case rows == 0:
		case !(speed > 0):
			return s.Took, whole
		default:
			longest = max(longest, time.Duration(batch*float64(rows)/speed*float64(time.Second)))
		}
	}
	longest *= time.Duration(s.Of)
	if s.Phases == nil { // of a pass of the method, of which only the whole is known
		return max(s.Took, longest), true
	}
	return s.Took - time.Duration(s.Phases.Compute) + longest, true
}

// worth is from which gain on it is spoken of.
const worth = 1.05

// gain returns what waiting for all rows would have cost; nothing where that is little, or not known.
func (c *Run) gain() string {
	var took, waited time.Duration
	for i := range c.Steps {
		w, known := c.waited(&c.Steps[i])
		if !known {
			return ""
		}
		took, waited = took+c.Steps[i].Took, waited+w
	}
	if took == 0 || float64(waited) < worth*float64(took) {
		return ""
	}
	return fmt.Sprintf("Of its time, %s s are steps. Had each waited for every row of its splits, as under bsp and "+
		"where splits were by then, they would have taken about %s s: %.1f times as long.",
		chart.Number(took.Seconds()), chart.Number(waited.Seconds()), float64(waited)/float64(took))
}
