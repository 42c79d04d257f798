package history

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/chart"
)

// Draw shows a run, or compares several in one figure and shows each.
func Draw(b *strings.Builder, runs []Run) {
	if len(runs) == 1 {
		runs[0].say(b)
		objective(&runs[0]).Write(b)
		runs[0].draw(b)
		return
	}
	convergence(runs).Write(b)
	for i := range runs {
		fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(runs[i].Name))
		runs[i].say(b)
		runs[i].draw(b)
	}
}

// say writes what a reader asks first.
func (c *Run) say(b *strings.Builder) {
	for i, words := range c.Words() {
		fmt.Fprintf(b, "<p%s>%s</p>\n", map[bool]string{true: " class=\"first\""}[i > 0], html.EscapeString(words))
	}
}

// objective shows that of a run, by time.
func objective(c *Run) chart.Figure {
	return chart.Figure{Title: "Objective by time",
		Of: &chart.Lines{Across: "seconds", Up: "objective", Loose: true, Lines: []chart.Line{c.line(0)}},
		Read: "Good: a line that falls, and then lies still. Bad: one that goes up and down to the end, as steps of " +
			"a part of " +
			"the rows do. Then compare the shares below, or run once under --sync bsp. Hollow points are steps that " +
			"ended " +
			"before every row was processed."}
}

// line returns how far the objective is above a number, by time.
func (c *Run) line(least float64) chart.Line {
	l := chart.Line{Name: c.Name}
	for _, p := range c.Passes {
		if v := float64(p.Objective); !math.IsNaN(v) {
			l.X, l.Y = append(l.X, p.Ended.Seconds()), append(l.Y, v-least)
			l.Open = append(l.Open, p.Cut)
		}
	}
	return l
}

// convergence shows how far each run is above the least objective of all, by time, on a logarithmic scale.
func convergence(runs []Run) chart.Figure {
	least := math.Inf(1)
	for i := range runs {
		for _, p := range runs[i].Passes {
			if v := float64(p.Objective); !math.IsNaN(v) {
				least = min(least, v)
			}
		}
	}
	lines, next := &chart.Lines{Across: "seconds", Up: "objective above the least", Logarithmic: true}, math.Inf(1)
	for i := range runs {
		lines.Lines = append(lines.Lines, runs[i].line(least))
		for _, y := range lines.Lines[i].Y {
			if y > 0 {
				next = min(next, y)
			}
		}
	}
	for _, l := range lines.Lines { // the least itself has no place on this scale: it is drawn with the next
		for k := range l.Y {
			l.Y[k] = max(next, l.Y[k])
		}
	}
	return chart.Figure{Title: "Objective above the least of all runs, by time", Of: lines,
		Read: "Good: a line that falls steeply, and goes on falling. Bad: one that lies flat, or rises. Then look at " +
			"the shares below: where many are low, raise --ratio, or leave it to --sync auto. Hollow points are " +
			"steps " +
			"that ended before every row was processed."}
}

func (c *Run) draw(b *strings.Builder) {
	steps := c.Steps()
	if len(steps) == 0 {
		b.WriteString("<p>It has no training steps.</p>\n")
		return
	}
	for _, figure := range []chart.Figure{c.shares(steps), c.paces(), c.phases(steps), c.processTimes(steps),
		c.processed(steps), c.median(steps)} {
		figure.Write(b)
	}
}

// shares shows the share of each split in each step.
func (c *Run) shares(steps []Pass) chart.Figure {
	strip := &chart.Strip{Down: "split", Across: "step", Rows: c.Splits}
	for k, p := range steps {
		col := chart.Column{Name: strconv.Itoa(k + 1), Mark: p.Moves > 0}
		for i := range c.Splits {
			share := 1.0
			if i < len(p.Shares) {
				share = p.Shares[i]
			}
			col.Shares = append(col.Shares, share)
		}
		strip.Columns = append(strip.Columns, col)
	}
	return chart.Figure{Title: "Share of each split in each step", Of: strip,
		Read: "Good: full cells all over, or pale ones that are full in the next step: what was left out comes first " +
			"there. " +
			"Bad: rows that stay pale, whose data the model does not learn from. Then raise --ratio, or find out why " +
			"the executor of those splits is slow. A ▾ marks a step after which splits moved to other executors."}
}

// paces shows how fast each executor is.
func (c *Run) paces() chart.Figure {
	var speeds []float64
	for _, v := range c.Speeds {
		speeds = append(speeds, float64(v))
	}
	return chart.Figure{Title: "Rows a second of each executor", Of: &chart.Bars{Of: "rows a second", None: "not " +
		"known", Weak: even,
		Names: c.Executors, Bars: speeds},
		Read: "Good: bars of one length. Bad: a short one: its executor is slow, or shared with others. Then give it " +
			"fewer " +
			"slots, let splits move (--exchange rate), or see what else its machine does."}
}

// phases shows what steps' time goes into.
func (c *Run) phases(steps []Pass) chart.Figure {
	stack := &chart.Stack{Across: "step", Up: "seconds",
		Parts: []string{"send", "until the first finisher", "after it", "collect", "update", "exchange"}}
	for _, p := range steps {
		if p.Phases == nil {
			continue
		}
		part := []float64{}
		for _, ns := range []int64{p.Phases.Send, p.Phases.Compute - p.Phases.Wait, p.Phases.Wait, p.Phases.Collect,
			p.Phases.Update, p.Phases.Exchange} {
			part = append(part, time.Duration(max(0, ns)).Seconds())
		}
		stack.Steps = append(stack.Steps, part)
	}
	return chart.Figure{Title: "What the time of steps goes into", Of: stack,
		Read: "Good: nearly all is until the first finisher, when all executors work. Bad: much after it, which is " +
			"waiting " +
			"for the slow: lower --ratio; or much to send and collect, which is the network: use fewer, larger splits."}
}

// processed shows how often the rows of each split have been folded, the least first.
func (c *Run) processed(steps []Pass) chart.Figure {
	times := make([]float64, c.Splits)
	for _, p := range steps {
		for i, share := range p.Shares {
			times[i] += share
		}
	}
	slices.Sort(times)
	l := chart.Line{Name: "splits, the least processed first"}
	for i, n := range times {
		l.X, l.Y = append(l.X, float64(i+1)), append(l.Y, n)
	}
	return chart.Figure{Title: "Times that each split was processed, the least first",
		Of: &chart.Lines{Across: "split", Up: "times", Lines: []chart.Line{l}},
		Read: "Good: a flat line, as all splits count alike. Bad: one that begins low: a few splits are left out " +
			"again and " +
			"again. Then raise --min-share, which is how much of each split a step has at the least."}
}

// processTimes shows how long the fastest, the median and the slowest executor have folded in each step.
func (c *Run) processTimes(steps []Pass) chart.Figure {
	lines := &chart.Lines{Across: "step", Up: "seconds",
		Lines: []chart.Line{{Name: "slowest"}, {Name: "median"}, {Name: "fastest"}}}
	for k, p := range steps {
		busy := slices.Sorted(slices.Values(p.Busy))
		if len(busy) == 0 {
			continue
		}
		for i, d := range []time.Duration{busy[len(busy)-1], busy[len(busy)/2], busy[0]} {
			l := &lines.Lines[i]
			l.X, l.Y = append(l.X, float64(k+1)), append(l.Y, d.Seconds())
		}
	}
	return chart.Figure{Title: "Seconds that executors work in each step", Of: lines,
		Read: "Good: lines that lie together, as all executors work until the step ends. Bad: a fastest one far " +
			"below, " +
			"which has idled. Then let splits move (--exchange rate), or make more of them (--splits)."}
}

// median shows one step, of median length: how long each executor folds, and when the step ends.
func (c *Run) median(steps []Pass) chart.Figure {
	byLength := slices.SortedFunc(slices.Values(steps), func(p, q Pass) int { return int(p.Took() - q.Took()) })
	p := byLength[len(byLength)/2]
	bars := &chart.Bars{Of: "seconds", Unit: "s", End: p.Took().Seconds()}
	for i, d := range p.Busy {
		name := strconv.Itoa(i)
		if i < len(c.Executors) {
			name = c.Executors[i]
		}
		bars.Names, bars.Bars = append(bars.Names, name), append(bars.Bars, d.Seconds())
	}
	if len(p.Busy) == 0 {
		bars.End = 0
	}
	return chart.Figure{Title: fmt.Sprintf("Step of iteration %d: how long each executor works", p.Iteration), Of: bars,
		Read: fmt.Sprintf("The line is the step's end, after %s s. Good: bars that reach it. Bad: short ones, whose "+
			"executors have waited. Then let splits move to them (--exchange rate).",
			chart.Number(p.Took().Seconds()))}
}
