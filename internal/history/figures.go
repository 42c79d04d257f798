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

// FigureNames are the names of a run's figures, in the order in which they are shown.
var FigureNames = []string{"objective", "shares", "step", "cursors", "speeds", "phases", "work", "processed", "bytes",
	"tables"}

// Figures returns a run's figures, by name; it may not have each.
func (c *Run) Figures() map[string]chart.Figure {
	all := map[string]chart.Figure{"objective": objective(c), "tables": c.tables()}
	if len(c.Steps) > 0 {
		all["shares"], all["step"], all["cursors"], all["speeds"] = c.shares(), c.lastStep(), c.cursors(), c.paces()
		all["phases"], all["work"] = c.phases(), c.processTimes()
		all["processed"], all["bytes"] = c.processed(), c.bytes()
	}
	return all
}

// Draw shows a run, or compares several in one figure and shows each, with the numbers of all figures.
func Draw(b *strings.Builder, runs []Run) {
	draw(b, runs, func(_ int, _ string, f chart.Figure) { f.Write(b) })
}

// DrawLinked does the same where a figure's numbers are elsewhere.
func DrawLinked(b *strings.Builder, runs []Run, numbers func(run int, figure string) string) {
	draw(b, runs, func(run int, name string, f chart.Figure) { f.Linked(b, numbers(run, name)) })
}

func draw(b *strings.Builder, runs []Run, write func(run int, name string, f chart.Figure)) {
	if len(runs) > 1 {
		Convergence(runs).Write(b)
	}
	for i := range runs {
		if len(runs) > 1 {
			fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(runs[i].Name))
		}
		runs[i].say(b)
		if len(runs[i].Steps) == 0 {
			b.WriteString("<p>It has no training steps.</p>\n")
		}
		figures := runs[i].Figures()
		for k, name := range FigureNames {
			if f, ok := figures[name]; ok && (k > 0 || len(runs) == 1) {
				write(i, name, f)
			}
		}
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
	for _, p := range c.Points {
		l.X, l.Y = append(l.X, p.Ended.Seconds()), append(l.Y, p.Objective-least)
		l.Open = append(l.Open, p.Cut)
	}
	return l
}

// Convergence shows how far each run is above the least objective of all, by time, on a logarithmic scale.
func Convergence(runs []Run) chart.Figure {
	least := math.Inf(1)
	for i := range runs {
		for _, p := range runs[i].Points {
			least = min(least, p.Objective)
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
			"the shares below: where many are low, raise --sync-ratio, or leave it to --sync auto. Hollow points are " +
			"steps " +
			"that ended before every row was processed."}
}

// tables shows how workers on parameter tables keep to each other.
func (c *Run) tables() chart.Figure {
	lines := &chart.Lines{Across: "iteration", Up: "clocks", Lines: []chart.Line{{Name: "the fastest worker ahead of " +
		"the " +
		"slowest"}, {Name: "age of the oldest value read"}, {Name: "slack"}}}
	for _, t := range c.Tables {
		for i, v := range []float64{t.Ahead, t.Stale, t.Slack} {
			if l := &lines.Lines[i]; !math.IsNaN(v) {
				l.X, l.Y = append(l.X, float64(t.Iteration)), append(l.Y, v)
			}
		}
	}
	return chart.Figure{Title: "How far workers on tables are from each other", Of: lines,
		Read: "Good: lines below the slack: workers seldom wait. Bad: lines that lie at it: the fast wait for the " +
			"slow. " +
			"Then raise --slack, or let others help (--sync flexrr)."}
}

// shares shows the share of each split in each step.
func (c *Run) shares() chart.Figure {
	strip := &chart.Strip{Down: "split", Across: "step", Rows: c.Splits}
	for _, s := range c.Steps {
		strip.Columns = append(strip.Columns, chart.Column{Name: strconv.Itoa(s.Number), Mark: s.Moves > 0,
			Shares: s.Shares})
	}
	return chart.Figure{Title: "Share of each split in each step", Of: strip,
		Read: "Good: full cells all over, or pale ones that are full in the next step: what was left out comes first " +
			"there. Bad: rows that stay pale, whose data the model does not learn from. Then raise --sync-ratio, or " +
			"find out why the executor of those splits is slow. A ▾ marks a step after which splits moved to other " +
			"executors."}
}

// What executors do in a step.
const (
	folding = iota
	helping
	waiting
	merging
)

// lastStep shows what each executor did in the last step.
func (c *Run) lastStep() chart.Figure {
	s := c.Last
	g := &chart.Gantt{Of: "seconds", Idle: waiting, Kinds: []string{"folds its own splits", "folds pieces of others'",
		"waits", "merges and sends"}}
	for e, w := range s.Executors {
		g.Names = append(g.Names, c.name(e))
		g.Rows = append(g.Rows, c.spans(e, w))
	}
	if len(g.Rows) > 0 {
		g.Marks = c.marks()
	}
	return chart.Figure{Title: fmt.Sprintf("Step %d: what each executor did", s.Number), Of: g,
		Read: "Good: bars that reach the step's end, with little that is hollow. Bad: long hollow stretches, which " +
			"are waiting. Then let splits move to who waits (--exchange rate), or lower --sync-ratio. When work " +
			"began is not told by executors: it is drawn from the left. A ✕ marks an executor " +
			"that is lost."}
}

// spans returns what an executor did in the last step.
func (c *Run) spans(e int, w Work) []chart.Span {
	s, others := c.Last, 0.0
	if e < len(c.Speeds) && float64(c.Speeds[e]) > 0 {
		others = min(w.Busy.Seconds(), float64(w.Helped)/float64(c.Speeds[e]))
	}
	busy, here := w.Busy.Seconds(), max(w.Busy, w.Arrived).Seconds()
	stop := min(max(busy, s.Stop.Seconds()), here)
	return []chart.Span{{From: 0, To: busy - others, Kind: folding}, {From: busy - others, To: busy, Kind: helping},
		{From: busy, To: stop, Kind: waiting}, {From: stop, To: here, Kind: merging},
		{From: here, To: max(here, s.Took.Seconds()), Kind: waiting}}
}

// marks returns the times of the last step.
func (c *Run) marks() (all []chart.Mark) {
	s := c.Last
	if s.First > 0 && s.First < s.Stop {
		all = append(all, chart.Mark{At: s.First.Seconds(),
			Name: fmt.Sprintf("first finisher, %.0f %% of all rows reported", 100*s.Reached[0])})
	}
	if s.Stop > 0 {
		name := "every row is processed"
		if s.Cuts > 0 {
			name = fmt.Sprintf("the step is cut, %.0f %% of all rows reported", 100*s.Reached[1])
		}
		all = append(all, chart.Mark{At: s.Stop.Seconds(), Name: name})
	}
	all = append(all, chart.Mark{At: s.Took.Seconds(), Name: "all results are merged"})
	if waited, known := c.waited(s); known && float64(waited) > worth*float64(s.Took) {
		all = append(all, chart.Mark{At: waited.Seconds(), Name: "would have ended under bsp, about"})
	}
	return all
}

// name returns that of an executor.
func (c *Run) name(e int) string {
	switch {
	case e >= len(c.Executors):
		return strconv.Itoa(e)
	case slices.Contains(c.Lost, c.Executors[e]):
		return "✕ " + c.Executors[e]
	}
	return c.Executors[e]
}

// cursors shows which part of each split the last step has processed.
func (c *Run) cursors() chart.Figure {
	s := c.Last
	g := &chart.Gantt{Of: "of its rows", Idle: 1, Kinds: []string{"processed in this step", "left out"}}
	moved := map[int]bool{}
	for _, m := range s.Moved {
		moved[m.Split] = true
	}
	for i := range s.Cursors {
		name := fmt.Sprintf("split %d", i)
		if moved[i] {
			name += " ▾"
		}
		if slices.Contains(s.Missing, i) {
			name += " ✕"
		}
		g.Names, g.Rows = append(g.Names, name), append(g.Rows, read(s.Cursors[i], s.Shares[i]))
	}
	return chart.Figure{Title: fmt.Sprintf("Step %d: the rows of each split that it has", s.Number), Of: g,
		Read: "Good: bars that are full, or begin where those of the step before have ended. Bad: the same gap in " +
			"every step, whose rows are never seen: see that --cursor is on. A ▾ marks a split that moves to another " +
			"executor after the step, a ✕ one that the step went on without."}
}

// read returns the part of a split from a cursor on, which goes on at its first row.
func read(cursor, share float64) []chart.Span {
	end := cursor + share
	if end <= 1 {
		return []chart.Span{{From: 0, To: cursor, Kind: 1}, {From: cursor, To: end}, {From: end, To: 1, Kind: 1}}
	}
	return []chart.Span{{From: 0, To: end - 1}, {From: end - 1, To: cursor, Kind: 1}, {From: cursor, To: 1}}
}

// paces shows how fast each executor is.
func (c *Run) paces() chart.Figure {
	var speeds []float64
	var names []string
	for e, v := range c.Speeds {
		speeds, names = append(speeds, float64(v)), append(names, c.name(e))
	}
	return chart.Figure{Title: "Rows a second of each executor", Of: &chart.Bars{Of: "rows a second",
		None: "not known", Weak: even, Names: names, Bars: speeds},
		Read: "Good: bars of one length. Bad: a short one: its executor is slow, or shared with others. Then give it " +
			"fewer slots, let splits move (--exchange rate), or see what else its machine does."}
}

// phases shows what steps' time goes into.
func (c *Run) phases() chart.Figure {
	stack := &chart.Stack{Across: "step", Up: "seconds",
		Parts: []string{"send", "until the first finisher", "after it", "collect", "update", "exchange"}}
	for _, s := range c.Steps {
		if s.Phases == nil {
			continue
		}
		part := []float64{}
		for _, ns := range []int64{s.Phases.Send, s.Phases.Compute - s.Phases.Wait, s.Phases.Wait, s.Phases.Collect,
			s.Phases.Update, s.Phases.Exchange} {
			part = append(part, time.Duration(max(0, ns)).Seconds()/float64(s.Of))
		}
		stack.Steps, stack.Last = append(stack.Steps, part), s.Number
	}
	return chart.Figure{Title: "What the time of steps goes into", Of: stack,
		Read: "Good: nearly all is until the first finisher, when all executors work. Bad: much after it, which is " +
			"waiting for the slow: lower --sync-ratio; or much to send and collect, which is the network: use fewer, " +
			"larger splits."}
}

// processed shows how often the rows of each split have been folded, the least first.
func (c *Run) processed() chart.Figure {
	l := chart.Line{Name: "splits, the least processed first"}
	for i, n := range slices.Sorted(slices.Values(c.Processed)) {
		l.X, l.Y = append(l.X, float64(i+1)), append(l.Y, n)
	}
	return chart.Figure{Title: "Times that each split was processed, the least first",
		Of: &chart.Lines{Across: "split", Up: "times", Lines: []chart.Line{l}},
		Read: "Good: a flat line, as all splits count alike. Bad: one that begins low: a few splits are left out " +
			"again and again. Then raise --min-share, which is how much of each split a step has at the least."}
}

// processTimes shows how long the fastest, the median and the slowest executor have folded in each step.
func (c *Run) processTimes() chart.Figure {
	lines := &chart.Lines{Across: "step", Up: "seconds",
		Lines: []chart.Line{{Name: "slowest"}, {Name: "median"}, {Name: "fastest"}}}
	for _, s := range c.Steps {
		var busy []time.Duration
		for _, w := range s.Executors {
			busy = append(busy, w.Busy)
		}
		if slices.Sort(busy); len(busy) == 0 {
			continue
		}
		for i, d := range []time.Duration{busy[len(busy)-1], busy[len(busy)/2], busy[0]} {
			l := &lines.Lines[i]
			l.X, l.Y = append(l.X, float64(s.Number)), append(l.Y, d.Seconds())
		}
	}
	return chart.Figure{Title: "Seconds that executors work in each step", Of: lines,
		Read: "Good: lines that lie together, as all executors work until the step ends. Bad: a fastest one far " +
			"below, which has idled. Then let splits move (--exchange rate), or make more of them (--splits)."}
}

// bytes shows what steps send, and tasks that were handed out again.
func (c *Run) bytes() chart.Figure {
	l := chart.Line{Name: "bytes"}
	for _, s := range c.Steps {
		l.X, l.Y = append(l.X, float64(s.Number)), append(l.Y, float64(s.Bytes)/float64(s.Of))
	}
	return chart.Figure{Title: "Bytes that a step sends", Of: &chart.Lines{Across: "step", Up: "bytes",
		Lines: []chart.Line{l}},
		Read: "Good: a flat line, of the model's size times the executors. Bad: peaks, where parameters were sent " +
			"again, and dips, where an executor was lost that sends nothing."}
}
