package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/chart"
)

// Words returns what a reader of a run asks first: what it is, whether it is done, who is slow, and what waiting would
// have cost.
func (c *Run) Words() []string {
	out := []string{c.what(), c.end()}
	if c.Version != 0 && !audit.Verifies(c.Version) {
		out = append(out, fmt.Sprintf("Its log is of version %d, where this is %d: what it says is shown as it is, "+
			"and not verified.", c.Version, driver.LogVersion))
	}
	out = append(out, c.planWords()...)
	if c.LeftOut {
		out = append(out, "Its executors reported more than a hundredth of what its steps sent, which its log has "+
			"left out: how fast each was is not known from there on.")
	}
	out = append(out, c.tableWords()...)
	if slow := c.slowest(); slow != "" {
		out = append(out, slow)
	}
	if n := len(c.Lost); n > 0 {
		whose := "Executor %[2]s was lost; others have its splits now."
		if n > 1 {
			whose = "%[1]d executors were lost, and others have their splits now: %[2]s."
		}
		out = append(out, fmt.Sprintf(whose, n, some(c.lost())))
	}
	if gain := c.gain(); gain != "" {
		out = append(out, gain)
	}
	return out
}

// what returns what ran.
func (c *Run) what() string {
	if c.Splits == 0 {
		return c.Job + ": a program whose work is actions."
	}
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
	if k := c.Iteration(); k == steps {
		name += ", one an iteration"
	} else if k > 0 {
		name += fmt.Sprintf(" in %s", count(int64(k), "iteration"))
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

// models has what synchronization models mean, for who does not know them by name.
var models = map[string]string{
	"bsp":    "each step waits for every row",
	"steal":  "each step is of every row; executors that are done take over rows of others",
	"auto":   "how long a step waits is chosen as it goes",
	"ssp":    "a worker may be that number of clocks ahead of the slowest, and no more",
	"asp":    "workers do not wait for each other",
	"cap":    "as ssp, and updates are sent as they come, not only as a clock ends",
	"vap":    "a worker waits while more than so much of its updates is on its way",
	"cvap":   "a worker waits for those that are far behind, or while much of its updates is on its way",
	"flexrr": "a worker that is ahead does parts of the work of one that is behind",
}

// options returns those that decide how much a step waits for.
func (c *Run) options() string {
	if c.Ratio == 0 {
		name, _, _ := strings.Cut(c.Sync, "(")
		if means := models[name]; means != "" {
			return " (" + means + ")"
		}
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
var endings = map[string]string{
	"tolerance":      "it has converged",
	"tol":            "it has converged",
	"gap":            "it has converged",
	"duality-gap":    "it has converged",
	"exact":          "its solution is exact",
	"target":         "it has reached its target",
	"validation":     "the loss on rows that were held out falls no more",
	"end":            "it has come to its end",
	"done":           "it has come to its end",
	"interrupted":    "it was interrupted",
	"max-time":       "it was stopped by its limit of time: with more it might become better",
	"max-iterations": "it was stopped by its limit of iterations: with more it might become better",
}

// nearly is the share of what the objective fell by in all from which on it is near its end.
const nearly = 0.99

// fell returns by when the objective had fallen by nearly all that it fell; empty where it did not fall, or was just
// begun.
func (c *Run) fell() string {
	n := len(c.Points)
	if n < 5 {
		return ""
	}
	last := mean(c.Points[n-max(1, n/10):])
	near := c.Points[0].Objective - nearly*(c.Points[0].Objective-last)
	at := slices.IndexFunc(c.Points, func(p Point) bool { return p.Objective <= near })
	if at < 0 || !(last < c.Points[0].Objective) {
		return ""
	}
	return fmt.Sprintf("; by iteration %d it had come %.0f %% of its way down", c.Points[at].Iteration, 100*nearly)
}

// lost returns the executors that are, each with the step by which it was.
func (c *Run) lost() (all []string) {
	for _, name := range c.Lost {
		if step, known := c.gone[name]; known {
			name += fmt.Sprintf(" (by step %d)", step)
		}
		all = append(all, name)
	}
	return all
}

// end returns whether the model is done.
func (c *Run) end() string {
	text := ""
	if p, known := c.objective(); known {
		text = fmt.Sprintf("The objective is %s after iteration %d%s. ", chart.Number(p.Objective), p.Iteration,
			c.fell())
	}
	switch means, known := endings[c.StoppedBy]; {
	case c.Partial:
		return text + "The rest of its log is not read yet."
	case c.StoppedBy == "" && c.Goes:
		return text + "The run goes on."
	case c.StoppedBy == "":
		return text + "The run goes on, or was interrupted: its log has no end."
	case known && (c.StoppedBy == "end" || c.StoppedBy == "done"): // which programs say that have no rule
		return text + strings.ToUpper(means[:1]) + means[1:] + "."
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
		if math.IsNaN(float64(v)) || slices.Contains(c.Lost, c.Executors[e]) {
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
	if c.Used != nil { // what is said of workers comes first
		return fmt.Sprintf("In passes over all rows %s processes %s rows a second, %s %.1f times as many%s.",
			c.Executors[low], chart.Number(float64(c.Speeds[low])), c.Executors[high], 1/share, c.unknown())
	}
	if share >= even {
		return fmt.Sprintf("Executors are even: the slowest, %s, processes %.2f of the rows a second of the fastest%s.",
			c.Executors[low], share, c.unknown())
	}
	return fmt.Sprintf("Executor %s is slow: it processes %s rows a second, executor %s %.1f times as many%s.",
		c.Executors[low], chart.Number(float64(c.Speeds[low])), c.Executors[high], 1/share, c.unknown())
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
	return fmt.Sprintf("The run's steps took %s s. Had each waited for every row, as under bsp with splits placed as "+
		"they "+
		"were, they would have taken about %s s, %.1f times as long, and the run %s s in place of %s s.",
		chart.Number(took.Seconds()), chart.Number(waited.Seconds()), float64(waited)/float64(took),
		chart.Number((c.took() + waited - took).Seconds()), chart.Number(c.took().Seconds()))
}
