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
var FigureNames = []string{"objective", "course", "shares", "step", "cursors", "speeds", "phases", "work", "processed",
	"bytes", "tables", "slots", "workers", "reads", "helped", "sent", "sizes", "plan", "tasks", "partitions",
	"fetched", "ran"}

// Figures returns a run's figures, by name; it may not have each.
func (c *Run) Figures() map[string]chart.Figure {
	all := map[string]chart.Figure{"objective": objective(c), "course": c.byIteration()}
	c.tablesFigures(all)
	c.planFigures(all)
	if len(c.Steps) > 0 {
		all["shares"], all["step"], all["cursors"], all["speeds"] = c.shares(), c.step(), c.cursors(), c.paces()
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
		if len(runs[i].Steps) == 0 && len(runs[i].Ran) == 0 && runs[i].Used == nil {
			b.WriteString("<p>It has no training steps.</p>\n")
		}
		figures := runs[i].Figures()
		for k, name := range FigureNames {
			if f, ok := figures[name]; ok && (k > 0 || len(runs) == 1) {
				write(i, name, f)
			}
		}
		b.WriteString(runs[i].Environment())
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
	return chart.Figure{Title: "Objective by time", Here: c.hereObjective(),
		Of: &chart.Lines{Across: "seconds", Up: "objective", Loose: true, Lines: []chart.Line{c.line(0)}},
		Read: "Good: a line that falls, and then lies still. Bad: one that goes up and down to the end, as steps of " +
			"a part of the rows do. Then compare the shares below, or run once under --sync bsp. Hollow points are " +
			"of steps that ended before every row was processed, with whiskers of two standard errors; filled ones " +
			"are of all rows, as passes beside steps are."}
}

// byIteration shows the objective by iteration.
func (c *Run) byIteration() chart.Figure {
	l := c.line(0)
	for i, p := range c.Points {
		l.X[i] = float64(p.Iteration)
	}
	return chart.Figure{Title: "Objective by iteration",
		Of: &chart.Lines{Across: "iteration", Up: "objective", Loose: true, Lines: []chart.Line{l}},
		Read: "Good: the course of a run under --sync bsp, which this can be compared with. Bad: many more " +
			"iterations for the same objective: what steps leave out costs more than they save. Then raise " +
			"--sync-ratio."}
}

// line returns how far the objective is above a number, by time.
func (c *Run) line(least float64) chart.Line {
	l := chart.Line{Name: c.Name}
	for _, p := range c.Points {
		l.X, l.Y = append(l.X, p.Ended.Seconds()), append(l.Y, p.Objective-least)
		l.Open = append(l.Open, p.Cut)
	}
	l.Err = scatter(c.Points)
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
		Read: "Good: a line that falls steeply, and goes on falling. Bad: one that lies flat, or rises. Then look " +
			"at the shares below: where many are low, raise --sync-ratio, or leave it to --sync auto. Hollow points " +
			"are steps that ended before every row was processed."}
}

// shares shows the share of each split in each step.
func (c *Run) shares() chart.Figure {
	strip := &chart.Strip{Down: "split", Across: "step", Rows: c.Splits}
	for _, s := range c.Steps {
		strip.Columns = append(strip.Columns, chart.Column{Name: strconv.Itoa(s.Number), Mark: s.Moves > 0,
			Shares: s.Shares})
	}
	return chart.Figure{Title: "Share of each split in each step", Of: strip, Here: c.hereShares(),
		Read: "Good: full cells all over, or pale ones that are full in the next step: what was left out comes first " +
			"there. Bad: rows that stay pale, whose data the model does not learn from. Then raise --sync-ratio, or " +
			"find out why the executor of those splits is slow. A ▾ marks a step after which splits moved to other " +
			"executors."}
}

// name returns that of an executor.
func (c *Run) name(e int) string {
	if e >= len(c.Executors) {
		return strconv.Itoa(e)
	}
	return c.marked(c.Executors[e])
}

// marked returns the name of an executor, with a mark where it is lost.
func (c *Run) marked(name string) string {
	if slices.Contains(c.Lost, name) {
		return "✕ " + name
	}
	return name
}

// cursors shows which part of each split the last step has processed.
func (c *Run) cursors() chart.Figure {
	s := c.Last
	g := &chart.Gantt{Of: "of its rows", Idle: 1, Kinds: []chart.Kind{{Name: "processed in this step"},
		{Name: "left out"}}}
	moved := map[int]bool{}
	for _, m := range s.Moved {
		moved[m.Split] = true
	}
	for _, i := range c.byOwner(len(s.Cursors)) {
		name := fmt.Sprintf("split %d", i)
		if owner := c.owner(i); owner != "" {
			name += ", " + owner
		}
		if moved[i] {
			name += " ▾"
		}
		if slices.Contains(s.Missing, i) {
			name += " ✕"
		}
		g.Names, g.Rows = append(g.Names, name), append(g.Rows, read(s.Cursors[i], s.Shares[i]))
	}
	title := fmt.Sprintf("Step %d: which rows of each split it processed, by executor", s.Number)
	return chart.Figure{Title: title, Of: g,
		Read: "Good: bars that are full, or begin where those of the step before have ended. Bad: the same gap in " +
			"every step, whose rows are never seen: see that --cursor is on. A ▾ marks a split that moves to another " +
			"executor after the step, a ✕ one that the step went on without."}
}

// byOwner returns splits, those of one executor together.
func (c *Run) byOwner(n int) (splits []int) {
	for i := range n {
		splits = append(splits, i)
	}
	slices.SortStableFunc(splits, func(a, b int) int { return strings.Compare(c.owner(a), c.owner(b)) })
	return splits
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
		None: "not known", Weak: even, Names: names, Bars: speeds}, Here: c.herePaces(),
		Read: "Good: bars of one length. Bad: a short one: its executor is slow, or shared with others. Then give it " +
			"fewer slots, let splits move (--exchange rate), or see what else its machine does."}
}

// phases shows what steps' time goes into.
func (c *Run) phases() chart.Figure {
	stack := &chart.Stack{Across: "step", Up: "seconds",
		Parts:   []string{"send", "until the first finisher", "after it", "collect", "update", "exchange"},
		Colours: []int{3, 0, 1, 4, 2, 5}}
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
	return chart.Figure{Title: "What the time of steps goes into", Of: stack, Here: c.herePhases(),
		Read: "Good: nearly all is until the first finisher, when all executors work. Bad: much after it, which is " +
			"waiting for the slow: lower --sync-ratio; or much to send and collect, which is the network: use fewer, " +
			"larger splits."}
}

// processed shows how often the rows of each split have been folded, the least first.
func (c *Run) processed() chart.Figure {
	l := chart.Line{Name: "splits, each by its place"}
	for i, n := range slices.Sorted(slices.Values(c.Processed)) {
		l.X, l.Y = append(l.X, float64(i+1)), append(l.Y, n)
	}
	return chart.Figure{Title: "Times that each split was processed, the least first", Here: c.hereProcessed(),
		Of: &chart.Lines{Across: "place of a split", Up: "times", Lines: []chart.Line{l}},
		Read: "Good: a flat line, as all splits count alike. Bad: one that begins low: a few splits are left out " +
			"again and again. Then raise --min-share, which is how much of each split a step has at the least."}
}

// processTimes shows how long executors have folded in each step: the longest, the median and the shortest time.
func (c *Run) processTimes() chart.Figure {
	lines := &chart.Lines{Across: "step", Up: "seconds",
		Lines: []chart.Line{{Name: "longest"}, {Name: "median"}, {Name: "shortest"}}}
	for _, s := range c.Steps {
		var busy []time.Duration
		for _, w := range s.Executors {
			if w.Arrived > 0 { // others are lost, or had nothing to do
				busy = append(busy, w.Busy)
			}
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
		Read: "Good: lines that lie together, as all executors work until the step ends. Bad: a shortest one far " +
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
