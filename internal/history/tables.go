package history

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/plan"
)

// tablesFigures adds what workers on parameter tables have done to a run's figures.
func (c *Run) tablesFigures(all map[string]chart.Figure) {
	all["tables"] = c.tables()
	if c.Used == nil {
		return
	}
	all["slots"], all["workers"], all["reads"] = c.slots(), c.workers(), c.reads()
	all["helped"], all["sent"], all["sizes"] = c.helped(), c.sent(), c.sizes()
}

// tables shows how workers on parameter tables keep to each other.
func (c *Run) tables() chart.Figure {
	lines := &chart.Lines{Across: "iteration", Up: "clocks", Lines: []chart.Line{{Name: "the fastest worker ahead " +
		"of the slowest"}, {Name: "age of the oldest value read"}, {Name: "slack"}}}
	for _, t := range c.Tables {
		for i, v := range []float64{t.Ahead, t.Stale, t.Slack} {
			if l := &lines.Lines[i]; !math.IsNaN(v) {
				l.X, l.Y = append(l.X, float64(t.Iteration)), append(l.Y, v)
			}
		}
	}
	here := ""
	if n := len(c.Tables); n > 0 && !math.IsNaN(c.Tables[n-1].Slack) {
		last := c.Tables[n-1]
		here = fmt.Sprintf("a worker was up to %s ahead, and reads up to %s old; the slack is %s",
			count(int64(last.Ahead), "clock"), count(int64(last.Stale), "clock"), count(int64(last.Slack), "clock"))
	}
	return chart.Figure{Title: "How far workers on tables are from each other", Of: lines, Here: here,
		Read: "Good: lines below the slack: workers seldom wait. Bad: lines that lie at it: the fast wait for the " +
			"slow. Then let others help (--sync flexrr); where executors are slow in turn, a larger --slack helps, " +
			"too."}
}

// perWorker returns the names of workers and a row of each, those first that have finished the fewest clocks.
func (c *Run) perWorker(row func(w driver.LogWorker) []chart.Span) (names []string, rows [][]chart.Span) {
	for _, k := range c.byClock() {
		w := c.Used.Workers[k]
		names = append(names, fmt.Sprintf("%d, %s", c.Used.Numbers[k], c.marked(c.Used.Executors[w[0]].Name)))
		rows = append(rows, row(w))
	}
	return names, rows
}

// byClock returns the workers by how many clocks they have finished, and of as many by how long they have worked.
func (c *Run) byClock() (all []int) {
	for k := range c.Used.Workers {
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b int) int { return behind(c.Used.Workers[a], c.Used.Workers[b]) })
	return all
}

// beside returns spans of lengths, each where the one before it has ended.
func beside(lengths ...float64) (all []chart.Span) {
	at := 0.0
	for kind, n := range lengths {
		all = append(all, chart.Span{From: at, To: at + n, Kind: kind})
		at += n
	}
	return all
}

// longest returns the mark of where the longest of some bars ends.
func longest(rows [][]chart.Span) []chart.Mark {
	end := 0.0
	for _, row := range rows {
		for _, s := range row {
			end = max(end, s.To)
		}
	}
	if end == 0 {
		return nil
	}
	return []chart.Mark{{At: end, Name: "the longest"}}
}

// slots shows how those of each executor have spent their time.
func (c *Run) slots() chart.Figure {
	g := &chart.Gantt{Of: "seconds", Idle: 1, Kinds: []chart.Kind{{Name: "working"}, {Name: "waiting"}}}
	for _, e := range c.Used.Executors {
		if e.Slots == 0 {
			continue
		}
		slots := float64(e.Slots)
		g.Names = append(g.Names, c.marked(e.Name))
		g.Rows = append(g.Rows, beside(inSeconds(e.BusyNs)/slots, inSeconds(e.WaitedNs)/slots))
	}
	g.Marks = longest(g.Rows)
	return chart.Figure{Title: "Time of each executor's slots, on average", Of: g,
		Here: c.hereSlots(),
		Read: "Good: all bars are full. Bad: long hollow parts beside one that is full, whose executor the others " +
			"wait for. Then let them help it (--sync flexrr), give it fewer splits, or see what else its machine " +
			"does."}
}

// hereSlots returns how much of their time slots have waited, and whose have waited least, where that is far less: the
// others wait for it.
func (c *Run) hereSlots() string {
	busy, waited, least, busiest := 0.0, 0.0, math.Inf(1), ""
	for _, e := range c.Used.Executors {
		busy, waited = busy+float64(e.BusyNs), waited+float64(e.WaitedNs)
		if share := float64(e.WaitedNs) / float64(max(1, sum(e.BusyNs, e.WaitedNs))); share < least && e.Slots > 0 {
			least, busiest = share, e.Name
		}
	}
	share := waited / max(1, busy+waited)
	text := fmt.Sprintf("slots wait for %s of their time, for rows or for other workers", percent(share))
	if share < muchWaiting || least > share/2 {
		return text
	}
	return fmt.Sprintf("%s; those of %s for %s: the others wait for it", text, busiest, percent(least))
}

// muchWaiting is from which share of slots' time on it is said whom they wait for.
const muchWaiting = 0.1

// workers shows for how long each has worked, and waited within its clocks.
func (c *Run) workers() chart.Figure {
	g := &chart.Gantt{Of: "seconds", Idle: -1, Kinds: []chart.Kind{{Name: "working"},
		{Name: "waiting for rows, or helpers", Colour: 1}}}
	g.Names, g.Rows = c.perWorker(func(w driver.LogWorker) []chart.Span {
		return beside(time.Duration(w[2]).Seconds(), time.Duration(w[3]).Seconds())
	})
	g.Marks = longest(g.Rows)
	return chart.Figure{Title: fmt.Sprintf("Clocks of workers when all had finished %d, the furthest behind first",
		c.Used.Clock), Of: g, Here: c.hereWorkers(),
		Read: "A worker has a split, goes through it in each clock, and takes turns with others of its executor. " +
			"Good: bars of one length, with little waiting for rows. Bad: long bars of one executor, which is slow; " +
			"or much waiting for rows, where clocks are short beside what the network takes. Then make fewer " +
			"splits, which have longer clocks."}
}

// hereWorkers returns who is furthest behind, and how long workers have waited.
func (c *Run) hereWorkers() string {
	if len(c.Used.Workers) == 0 {
		return ""
	}
	all, fewest, waits := c.byClock(), 0, int64(0)
	worked, waited, most := 0.0, 0.0, int64(0)
	for _, k := range all {
		w := c.Used.Workers[k]
		if most = max(most, w[1]); w[1] == c.Used.Workers[all[0]][1] {
			fewest++
		}
		worked, waited, waits = worked+float64(w[2]), waited+float64(w[3]), sum(waits, w[4])
	}
	text := fmt.Sprintf("within their clocks workers wait for %s of the time: %s, to read a row or to add to one",
		percent(waited/max(1, worked+waited)), count(waits, "time"))
	slow := c.Used.Workers[all[0]]
	if fewest < len(all) {
		text = fmt.Sprintf("%d of %d workers, one of them of %s, have finished %d clocks, and the fastest %d; %s",
			fewest, len(all), c.Used.Executors[slow[0]].Name, slow[1], most, text)
	}
	if long := c.longWorker(); long != "" {
		text = long + "; " + text
	}
	return text
}

// longWork is how many times the median a worker has worked that is said to be slow, and leastWork for how long: less
// may be how its process has begun.
const (
	longWork  = 1.5
	leastWork = 100 * time.Millisecond
)

// longWorker returns which worker has worked longest, where that is far longer than the median.
func (c *Run) longWorker() string {
	var worked []int64
	for _, w := range c.Used.Workers {
		worked = append(worked, w[2])
	}
	longest := slices.Index(worked, slices.Max(worked))
	most := float64(worked[longest])
	slices.Sort(worked)
	median := float64(worked[(len(worked)-1)/2])
	if median == 0 || most < longWork*median || most < float64(leastWork) {
		return ""
	}
	return fmt.Sprintf("worker %d, of %s, has worked %.2g times as long as the median", c.Used.Numbers[longest],
		c.Used.Executors[c.Used.Workers[longest][0]].Name, most/median)
}

// reads shows how old what workers read was.
func (c *Run) reads() chart.Figure {
	bars := &chart.Bars{Of: "share of a table's reads", Unit: "%"}
	for i := range c.Used.Tables {
		t := &c.Used.Tables[i]
		sum, oldest := int64(0), 0
		for age, n := range t.Reads {
			if sum += n; n > 0 {
				oldest = age
			}
		}
		for age := 0; sum > 0 && age <= oldest; age++ {
			bars.Names = append(bars.Names, fmt.Sprintf("%s: %s", t.Name, ageName(age)))
			bars.Bars = append(bars.Bars, 100*float64(t.Reads[age])/float64(sum))
		}
	}
	return chart.Figure{Title: "Staleness of reads: the newest clocks of others' updates that they missed", Of: bars,
		Here: c.hereReads(),
		Read: "Good: most reads have missed none, or one. Bad: most are as old as the slack lets them be: gradients " +
			"are of old parameters, and a model needs more clocks. Then lower --slack, have updates sent within " +
			"clocks (--sync cap), or find out who is slow."}
}

func ageName(age int) string {
	switch age {
	case 0:
		return "none"
	case plan.Ages - 1:
		return strconv.Itoa(age) + " or more"
	}
	return strconv.Itoa(age)
}

// hereReads returns the mean age of what was read.
func (c *Run) hereReads() string {
	reads, missed := int64(0), 0.0
	for i := range c.Used.Tables {
		for age, n := range c.Used.Tables[i].Reads {
			reads, missed = sum(reads, n), missed+float64(age)*float64(n)
		}
	}
	if reads == 0 {
		return ""
	}
	return fmt.Sprintf("%s, which on average missed the newest %.2g clocks of others' updates", count(reads, "read"),
		missed/float64(reads))
}

// helped shows which items of workers' clocks others have done.
func (c *Run) helped() chart.Figure {
	g := &chart.Gantt{Of: "items", Idle: -1, Kinds: []chart.Kind{{Name: "its own, done by itself"},
		{Name: "done for others", Colour: 2}, {Name: "its own, done by others", Colour: 1}}}
	shared, given := int64(0), int64(0)
	for _, w := range c.Used.Workers {
		shared, given = sum(shared, w[5]), sum(given, w[6])
	}
	if shared > 0 {
		g.Names, g.Rows = c.perWorker(func(w driver.LogWorker) []chart.Span {
			return beside(float64(w[5]-w[6]), float64(w[7]), float64(w[6]))
		})
		g.Marks = longest(g.Rows)
	}
	return chart.Figure{Title: "Items of clocks that workers did, and others for them", Of: g,
		Here: fmt.Sprintf("%s of all items were done by others", percent(float64(given)/float64(max(1, shared)))),
		Read: "Good: a slow executor's workers have much done by others, and fast ones do it. Bad: much is given and " +
			"taken among equals: all are slow in turn, and what is sent is for nothing. Then compare --sync ssp."}
}

// sentKinds are the names of what is sent, by plan.SentKind.
var sentKinds = [plan.SentKinds]string{"updates", "requests", "rows asked for", "rows pushed", "progress", "snapshots"}

// sent shows what was sent between processes, by table and reason.
func (c *Run) sent() chart.Figure {
	g := &chart.Gantt{Of: "bytes", Idle: -1}
	for kind, name := range sentKinds {
		g.Kinds = append(g.Kinds, chart.Kind{Name: name, Colour: kind})
	}
	all, by := 0.0, [plan.SentKinds]float64{}
	g.Kinds = append(g.Kinds, chart.Kind{Name: "beside tables", Colour: 5})
	for i := range c.Used.Tables {
		t, lengths := &c.Used.Tables[i], []float64{}
		for kind, n := range t.Sent {
			lengths = append(lengths, float64(n))
			by[kind], all = by[kind]+float64(n), all+float64(n)
		}
		g.Names, g.Rows = append(g.Names, t.Name), append(g.Rows, beside(lengths...))
	}
	for _, o := range []struct {
		name string
		n    int64
	}{{"parts for helpers", c.Used.HelpingBytes}, {"workers' states", c.Used.StateBytes}} {
		if all += float64(o.n); o.n > 0 {
			g.Names = append(g.Names, o.name)
			g.Rows = append(g.Rows, []chart.Span{{To: float64(o.n), Kind: len(g.Kinds) - 1}})
		}
	}
	here, most := "", slices.Index(by[:], slices.Max(by[:]))
	switch g.Marks = longest(g.Rows); {
	case all == 0:
	case float64(c.Used.HelpingBytes) > by[most]:
		here = fmt.Sprintf("%s, %s of it parts for helpers", inBytes(int64(all)),
			percent(float64(c.Used.HelpingBytes)/all))
	default:
		here = fmt.Sprintf("%s, %s of it %s", inBytes(int64(all)), percent(by[most]/all), sentKinds[most])
	}
	return chart.Figure{Title: "Bytes that tables have sent over the network, by kind", Of: g, Here: here,
		Read: "Good: mostly updates, and rows that are asked for, a few times the tables' size in a clock. Bad: " +
			"much that is pushed to processes which seldom read it, or snapshots as long as updates. Then use --sync " +
			"ssp in place of cap, vap or cvap, or fewer, longer clocks (fewer --splits)."}
}

// sizes shows how large tables are.
func (c *Run) sizes() chart.Figure {
	bars := &chart.Bars{Of: "bytes of a table's rows"}
	here := ""
	for i := range c.Used.Tables {
		t := &c.Used.Tables[i]
		bars.Names, bars.Bars = append(bars.Names, t.Name), append(bars.Bars, float64(t.Bytes))
		if i > 0 {
			here += ", "
		}
		here += fmt.Sprintf("%s has %s in %s", t.Name, inBytes(t.Bytes), count(t.Rows, "row"))
	}
	return chart.Figure{Title: "Size of each table", Of: bars, Here: here,
		Read: "Good: all tables together fit a small part of each executor's memory, as every process keeps the rows " +
			"that it reads. Bad: they do not: rows are let go of and asked for again. Then see that --memory is " +
			"enough, or make the model smaller."}
}

// tableWords returns what a terminal shows of workers on tables.
func (c *Run) tableWords() (all []string) {
	if c.Used == nil {
		return nil
	}
	if text := c.hereWorkers(); text != "" {
		all = append(all, "Workers on tables: "+c.hereSlots()+"; "+text+".")
	}
	if text := c.hereReads(); text != "" {
		all = append(all, "Tables: "+text+".")
	}
	if f := c.helped(); !f.Empty() {
		all = append(all, "Workers that help: "+f.Here+".")
	}
	return all
}
