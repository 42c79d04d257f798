package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/plan"
)

// waiting is what slots do that do nothing else: the kind after those of spans.
const waiting = int(plan.SpanKinds)

// doing has the kinds of what slots do in a step, by plan.SpanKind. They are told apart by height and place, too.
var doing = []chart.Kind{{Name: "loads splits", Colour: 4, Top: 0.5, High: 0.5},
	{Name: "folds its own splits", Colour: 0}, {Name: "folds pieces of others'", Colour: 2, Top: 0.2, High: 0.6},
	{Name: "merges results", Colour: 5, High: 0.5}, {Name: "work or result on its way", Colour: 3, Top: 0.4, High: 0.2},
	{Name: "waits"}}

// step shows what slots did in the last step of which that is known; where a log has none, what each executor did.
func (c *Run) step() chart.Figure {
	s, of := c.Last, "executor"
	if c.Told != nil {
		s, of = c.Told, "slot"
	}
	g := &chart.Gantt{Of: "seconds", Idle: waiting, Kinds: doing}
	if c.Told != nil {
		c.slotRows(g)
	} else {
		for e, w := range s.Executors {
			g.Names, g.Rows = append(g.Names, c.name(e)), append(g.Rows, c.spans(e, w))
		}
	}
	if len(g.Rows) > 0 {
		g.Marks = c.marks(s)
	}
	return chart.Figure{Title: fmt.Sprintf("Step %d: what each %s did", s.Number, of), Of: g,
		Here: c.hereStep(s),
		Read: "Good: bars that reach the step's end, with little that is hollow. Bad: long hollow stretches, which " +
			"are waiting. Then let splits move to who waits (--exchange rate), or lower --sync-ratio. Messages' time " +
			"is shared evenly between those of work and of results. A lower bar has pauses. An empty row is of an " +
			"executor that had nothing to do, or has not told of it; a ✕ marks one that is lost."}
}

// mostSlotRows is how many rows are made, of which a figure draws a part.
const mostSlotRows = 4096

// slotRows adds a row for each slot, and for what was loaded beside them. That of an executor that has told of nothing
// is empty.
func (c *Run) slotRows(g *chart.Gantt) {
	for i := range c.Told.Slots {
		of := &c.Told.Slots[i]
		rows, loads := slotsOf(of, c.Told.Took, mostSlotRows-len(g.Rows))
		for k, row := range rows {
			g.Names = append(g.Names, fmt.Sprintf("%s slot %d", c.marked(of.Executor), k+1))
			g.Rows = append(g.Rows, row)
		}
		if len(loads) > 0 {
			g.Names, g.Rows = append(g.Names, c.marked(of.Executor)+" loads"), append(g.Rows, loads)
		}
	}
}

// slotsOf returns what each slot of an executor did in a step, of the first ones where they are more than a number, and
// what was loaded beside them.
func slotsOf(of *driver.LogSlotsOf, took time.Duration, atMost int) (rows [][]chart.Span, loads []chart.Span) {
	var carried []chart.Span
	did := map[int][]chart.Span{}
	for _, p := range of.Spans {
		span := chart.Span{From: inSeconds(p[3]), To: inSeconds(p[4]), Kind: int(p[1])}
		if plan.SpanKind(p[1]) != plan.Carrying {
			span.Idle = inSeconds(p[4] - p[3] - p[5])
		}
		if plan.SpanKind(p[1]) == plan.Carrying {
			carried = append(carried, span)
		} else {
			did[int(p[0])] = append(did[int(p[0])], span)
		}
	}
	for k := range min(of.Slots, max(0, atMost)) {
		var row []chart.Span
		if len(of.Spans) > 0 {
			row = filled(append(carried[:len(carried):len(carried)], did[k]...), took.Seconds())
		}
		rows = append(rows, row)
	}
	return rows, did[of.Slots]
}

func inSeconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// filled orders what a slot did, of which nothing is told twice where runs were beside each other, and adds that it
// waited in between, and to the end.
func filled(row []chart.Span, end float64) (all []chart.Span) {
	slices.SortStableFunc(row, func(a, b chart.Span) int { return cmp.Compare(a.From, b.From) })
	at := 0.0
	for _, s := range row {
		if s.To <= at {
			continue
		}
		if s.From > at {
			all = append(all, chart.Span{From: at, To: s.From, Kind: waiting})
		}
		cut := max(0, at-s.From)
		all, at = append(all, chart.Span{From: s.From + cut, To: s.To, Kind: s.Kind, Idle: max(0, s.Idle-cut)}), s.To
	}
	return append(all, chart.Span{From: at, To: max(at, end), Kind: waiting})
}

// spans returns what an executor did in the last step, of which its slots have not told: from the left.
func (c *Run) spans(e int, w Work) []chart.Span {
	s, others := c.Last, 0.0
	if e < len(c.Speeds) && float64(c.Speeds[e]) > 0 {
		others = min(w.Busy.Seconds(), float64(w.Helped)/float64(c.Speeds[e]))
	}
	busy, here := w.Busy.Seconds(), max(w.Busy, w.Arrived).Seconds()
	stop := min(max(busy, s.Stop.Seconds()), here)
	return []chart.Span{{From: 0, To: busy - others, Kind: int(plan.Folding)},
		{From: busy - others, To: busy, Kind: int(plan.Helping)}, {From: busy, To: stop, Kind: waiting},
		{From: stop, To: here, Kind: int(plan.Merging)},
		{From: here, To: max(here, s.Took.Seconds()), Kind: waiting}}
}

// did notes what slots did in the last step, and how fast executors were by that where its reports were left out.
func (f *Following) did(l *driver.LogSlots) {
	if f.run.Last == nil || l.Line != f.line {
		return
	}
	if f.run.LeftOut {
		f.seen(l)
	}
	told := *f.run.Last
	if told.Slots = l.Executors; told.Owns == nil {
		told.Owns = f.ofExecutors()
	}
	f.run.Told = &told
}

// seen takes executors, and their speeds, of what their slots did.
func (f *Following) seen(l *driver.LogSlots) {
	var names []string
	for _, e := range l.Executors {
		if names = append(names, e.Executor); e.BusyNs > 0 && e.Rows > 0 {
			f.speed(e.Executor, float64(e.Rows)/inSeconds(e.BusyNs))
		}
	}
	f.known(names, f.run.Lost)
}

// marks returns the times of a step.
func (c *Run) marks(s *Step) (all []chart.Mark) {
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
