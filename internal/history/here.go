package history

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/chart"
)

// What is said below a figure of this run: the number that its reader looks for. It is nothing where there is none.

// percent returns a share as it is read.
func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// hereObjective returns how far the last part of the course has come.
func (c *Run) hereObjective() string {
	n := len(c.Points)
	if n < 3 {
		return ""
	}
	tenth, rises := max(1, n/10), 0
	last, before := mean(c.Points[n-tenth:]), mean(c.Points[max(0, n-2*tenth):n-tenth])
	for k := 1; k < n; k++ {
		if c.Points[k].Objective > c.Points[k-1].Objective {
			rises++
		}
	}
	text := fmt.Sprintf("it rose %d of %d times", rises, n-1)
	if all := c.Points[0].Objective - last; all > 0 {
		way := "fell"
		if last > before {
			way = "rose"
		}
		text = fmt.Sprintf("over its last tenth it %s by %s of all that it fell; %s", way,
			percent(math.Abs(before-last)/all), text)
	}
	if s := scatter(c.Points); s != nil && s[n-1] > 0 {
		text += fmt.Sprintf("; the last has a standard error of about %s", chart.Number(s[n-1]))
	}
	return text
}

func mean(points []Point) (sum float64) {
	for _, p := range points {
		sum += p.Objective / float64(len(points))
	}
	return sum
}

// hereShares returns the split of which steps had the least.
func (c *Run) hereShares() string {
	if c.covered == 0 || len(c.Processed) == 0 {
		return ""
	}
	least := slices.Index(c.Processed, slices.Min(c.Processed))
	share := c.Processed[least] / float64(c.covered)
	if share >= 1-1e-9 {
		return "all rows of all splits, in every step"
	}
	return fmt.Sprintf("of split %d, which has the least, steps have %s of the rows on average%s", least,
		percent(share), c.whose(least))
}

// whose returns who has a split.
func (c *Run) whose(split int) string {
	if name := c.owner(split); name != "" {
		return "; " + name + " has it now"
	}
	return ""
}

// owner returns the executor that a split is of; nothing where that is not known.
func (c *Run) owner(split int) string {
	if split < len(c.Owners) && c.Owners[split] >= 0 && c.Owners[split] < len(c.Executors) {
		return c.Executors[c.Owners[split]]
	}
	return ""
}

// hereStep returns how much of a step slots have waited whose executors are there and have told of them.
func (c *Run) hereStep(s *Step) string {
	waited, slots := 0.0, 0
	for i := range s.Slots {
		of := &s.Slots[i]
		if len(of.Spans) == 0 || slices.Contains(c.Lost, of.Executor) {
			continue
		}
		rows, _ := slotsOf(of, s.Took, mostSlotRows-slots)
		for _, row := range rows {
			for _, span := range row {
				if waited += span.Idle; span.Kind == waiting {
					waited += span.To - span.From
				}
			}
		}
		slots += len(rows)
	}
	if all := s.Took.Seconds() * float64(slots); all > 0 {
		return fmt.Sprintf("of the time of all slots, %s is waiting", percent(min(1, waited/all)))
	}
	return ""
}

// herePaces returns how uneven executors are.
func (c *Run) herePaces() string {
	low, high := math.Inf(1), 0.0
	for _, v := range c.Speeds {
		if !math.IsNaN(float64(v)) {
			low, high = min(low, float64(v)), max(high, float64(v))
		}
	}
	if len(c.Speeds) < 2 || high == 0 || math.IsInf(low, 0) {
		return ""
	}
	return fmt.Sprintf("the slowest has %s of the fastest's%s", percent(low/high), c.unknown())
}

// unknown returns how many executors' speeds are not known, of those that are there; empty where all are.
func (c *Run) unknown() string {
	n := 0
	for e, v := range c.Speeds {
		if math.IsNaN(float64(v)) && !slices.Contains(c.Lost, c.Executors[e]) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and of %s it is not known", count(int64(n), "executor"))
}

// herePhases returns what waiting and messages take.
func (c *Run) herePhases() string {
	var sum driver.LogPhases
	for i := range c.Steps {
		if p := together(&sum, c.Steps[i].Phases); p != nil {
			sum = *p
		}
	}
	all := float64(sum.Send + sum.Compute + sum.Collect + sum.Update)
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%s is after the first finisher, %s sends and collects", percent(float64(sum.Wait)/all),
		percent(float64(sum.Send+sum.Collect)/all))
}

// hereProcessed returns how unevenly splits were processed.
func (c *Run) hereProcessed() string {
	if len(c.Processed) == 0 {
		return ""
	}
	least := slices.Index(c.Processed, slices.Min(c.Processed))
	return fmt.Sprintf("split %d the least, %s times, and others up to %s", least, chart.Number(c.Processed[least]),
		chart.Number(slices.Max(c.Processed)))
}

// hereFetched returns how much was read of shuffles, by all actions together, and of whom most.
func (c *Run) hereFetched() string {
	all, holds := int64(0), map[string]int64{}
	for _, e := range c.Ran {
		for _, f := range e.Fetched {
			all, holds[f.Holder] = sum(all, f.Bytes), sum(holds[f.Holder], f.Bytes)
		}
		all = sum(all, e.Others)
	}
	most := ""
	for _, name := range slices.Sorted(maps.Keys(holds)) {
		if most == "" || holds[name] > holds[most] {
			most = name
		}
	}
	if all == 0 || most == "" {
		return ""
	}
	return fmt.Sprintf("%s by all actions together, %s of it held by %s", inBytes(all),
		percent(float64(holds[most])/float64(all)), most)
}
