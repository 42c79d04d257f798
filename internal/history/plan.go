package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/chart"
)

// Operation is an operation of a run's plan, and what its tasks have come to.
type Operation struct {
	driver.LogNode
	Runs    int                `json:"runs"` // of tasks
	Tasks   int                `json:"tasks"`
	Rows    int64              `json:"rows"`
	Took    time.Duration      `json:"took_ns"` // all runs together
	Busy    [5]int64           `json:"busy_ns"` // of the longest run's tasks: least, quartiles and most
	Longest time.Duration      `json:"longest_ns"`
	Slowest int                `json:"slowest"` // partition of that run
	Again   int                `json:"again,omitempty"`
	Lost    int                `json:"lost,omitempty"`
	Spilled int64              `json:"spilled,omitempty"` // bytes
	Moved   *driver.LogShuffle `json:"moved,omitempty"`   // what its map tasks have made, those of the largest run
}

// mostOperations is how many of a plan are kept: a program may add to its plan for as long as it goes on.
const mostOperations = 4096

// plan takes what is added to the plan.
func (f *Following) plan(p *driver.LogPlan) {
	for _, n := range p.Nodes {
		if n.Node < len(f.run.Plan) {
			f.run.Plan[n.Node].LogNode = n // another process says it again
		} else if n.Node < mostOperations {
			f.run.Plan = append(f.run.Plan, Operation{LogNode: n})
		}
	}
}

// action adds a run of tasks.
func (f *Following) action(a *driver.LogAction) {
	c := &f.run
	c.Ended = max(c.Ended, time.Duration(a.BeganNs+a.TookNs))
	for _, on := range a.Executors {
		at, there := slices.BinarySearchFunc(c.Ran, on.Executor, func(o driver.LogTasksOn, name string) int {
			return strings.Compare(o.Executor, name)
		})
		if !there {
			c.Ran = slices.Insert(c.Ran, at, driver.LogTasksOn{Executor: on.Executor})
		}
		c.Ran[at].Tasks, c.Ran[at].Rows = c.Ran[at].Tasks+on.Tasks, c.Ran[at].Rows+on.Rows
		c.Ran[at].BusyNs += on.BusyNs
		c.Ran[at].Spilled, c.Ran[at].Others = sum(c.Ran[at].Spilled, on.Spilled), sum(c.Ran[at].Others, on.Others)
		for _, from := range on.Fetched {
			c.Ran[at].Fetch(from.Holder, from.Bytes)
		}
	}
	if a.Node >= len(c.Plan) {
		return
	}
	o := &c.Plan[a.Node]
	for _, on := range a.Executors {
		o.Spilled = sum(o.Spilled, on.Spilled)
	}
	o.Runs, o.Tasks, o.Rows, o.Took = o.Runs+1, o.Tasks+a.Tasks, o.Rows+a.Rows, o.Took+time.Duration(a.TookNs)
	o.Again, o.Lost = o.Again+a.Again, o.Lost+a.Lost
	if took := time.Duration(a.TookNs); o.Runs == 1 || took > o.Longest {
		o.Busy, o.Longest, o.Slowest = a.BusyNs, took, a.Slowest
	}
}

// shuffled notes what map tasks have made: lost ones that were made again are fewer than all.
func (f *Following) shuffled(s *driver.LogShuffle) {
	if s.Node >= len(f.run.Plan) {
		return
	}
	if o := &f.run.Plan[s.Node]; o.Moved == nil || s.Tasks >= o.Moved.Tasks {
		o.Moved = s
	}
}

// Shows reports whether there is something to show of the run.
func (c *Run) Shows() bool { return len(c.Points)+len(c.Steps)+len(c.Plan) > 0 }

// planText shows the operations that have run tasks, a line each, the first where they are many.
func (c *Run) planText(b *strings.Builder, width int) {
	shown := 0
	for i := range c.Plan {
		o := &c.Plan[i]
		if o.Runs == 0 || shown == mostTextRows {
			continue
		}
		if shown++; shown == 1 {
			b.WriteString("\nplan\n")
		}
		line := []rune(fmt.Sprintf("%4d %s: %s", o.Node, o.Name(), o.says()))
		b.WriteString(string(line[:min(len(line), width)]) + "\n")
	}
}

// Name returns what an operation is.
func (o *Operation) Name() string {
	name := o.Kind
	if o.Label != "" {
		name = fmt.Sprintf("%s %q", name, o.Label)
	} else if o.Detail != "" {
		name += " (" + o.Detail + ")"
	}
	return name
}

// says returns what an operation has come to; nothing where it has run no tasks.
func (o *Operation) says() string {
	var parts []string
	if o.Runs > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s s", count(int64(o.Tasks), "task"), chart.Number(o.Took.Seconds())))
	}
	if o.Runs > 1 {
		parts = append(parts, fmt.Sprintf("%d runs", o.Runs))
	}
	if o.Rows > 0 {
		parts = append(parts, count(o.Rows, "row")+" read")
	}
	if m := o.Moved; m != nil {
		parts = append(parts, fmt.Sprintf("%s, %s moved", count(m.Rows, "row"), inBytes(m.Bytes)))
	}
	if o.Spilled > 0 {
		parts = append(parts, inBytes(o.Spilled)+" spilled")
	}
	if o.Again > 0 {
		parts = append(parts, fmt.Sprintf("%d given once more", o.Again))
	}
	if o.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d lost their input", o.Lost))
	}
	return strings.Join(parts, ", ")
}

// inBytes returns a number of bytes in a unit that suits it.
func inBytes(n int64) string {
	v, unit := float64(n), 0
	for v >= 1000 && unit < 5 {
		v, unit = v/1000, unit+1
	}
	return chart.Number(v) + " " + []string{"B", "kB", "MB", "GB", "TB", "PB"}[unit]
}

// planFigures adds the figures of what is no step.
func (c *Run) planFigures(all map[string]chart.Figure) {
	if len(c.Plan) == 0 || !c.acts() {
		return
	}
	plan := &chart.Plan{}
	for i := range c.Plan {
		o := &c.Plan[i]
		n := chart.PlanNode{Number: o.Node, Stage: o.Stage, Name: o.Name(), Says: o.says(), Busy: o.Runs > 0}
		for _, way := range o.Inputs {
			n.Of = append(n.Of, way...)
		}
		plan.Nodes = append(plan.Nodes, n)
	}
	all["plan"] = chart.Figure{Title: "Plan, and what it has come to", Of: plan,
		Read: "A line leads from each operation to those that it is computed from; shaded ones have run tasks. " +
			"Good: few bytes moved, and the time where the work is. Bad: a shuffle that moves most of the rows it " +
			"reads. Then combine before it (rdd.ReduceByKey in place of GroupByKey), or filter earlier."}
	worked := func(o *Operation) ([5]float64, bool) { return scaled(o.Busy, 1e9), o.Runs > 0 && o.Busy[4] > 0 }
	all["tasks"] = chart.Figure{Title: "Seconds that tasks have worked, by operation",
		Of: c.spreads("seconds a task works", "s", worked),
		Read: "A box is of the middle half of tasks, with the median in it; its line has all. Good: boxes at the " +
			"end of their lines, as tasks take the same time. Bad: a line that goes on far behind its box, which one " +
			"task has worked while the others had ended. Then see below whether its partition is larger, or its " +
			"executor slow."}
	moved := func(o *Operation) (five [5]float64, there bool) {
		if o.Moved != nil {
			five = scaled(o.Moved.PartBytes, 1e6)
		}
		return five, o.Moved != nil
	}
	all["partitions"] = chart.Figure{Title: "Bytes of the partitions of each shuffle",
		Of: c.spreads("bytes a partition has", "MB", moved),
		Read: "Good: partitions of one size. Bad: a largest one of many times the median: some keys have many rows. " +
			"Then combine before the shuffle, or make the key finer."}
	all["fetched"] = chart.Figure{Title: "Bytes read of shuffles, by who reads and who holds them", Of: c.fetched(),
		Here: c.hereFetched(),
		Read: "Good: cells of one shade, or dark ones on the diagonal, where rows stay on their executor. Bad: a " +
			"dark column, whose executor has most of what others read: its network is what they wait for. Then give " +
			"it fewer partitions, or make keys finer."}
	ran := &chart.Bars{Of: "seconds that each executor's tasks have worked", Unit: "s", None: "none"}
	for _, e := range c.Ran {
		ran.Names, ran.Bars = append(ran.Names, e.Executor), append(ran.Bars, float64(e.BusyNs)/1e9)
	}
	all["ran"] = chart.Figure{Title: "Seconds of tasks by executor", Of: ran,
		Read: "Good: bars as long as the executors' slots are many. Bad: a short one that had nothing to do. Then " +
			"make more partitions, as tasks go to the executors that are free."}
}

// mostFetched is how many executors have a row, and a column, of their own: those that have read, and hold, the most.
const mostFetched = 32

// fetched shows which executors' tasks have read map outputs of which.
func (c *Run) fetched() *chart.Matrix {
	reads, holds := map[string]int64{}, map[string]int64{}
	for _, e := range c.Ran {
		reads[e.Executor] = e.Others
		for _, f := range e.Fetched {
			reads[e.Executor], holds[f.Holder] = sum(reads[e.Executor], f.Bytes), sum(holds[f.Holder], f.Bytes)
		}
	}
	m := &chart.Matrix{Of: "bytes", Down: "read by tasks of", Across: "held by", Text: inBytes}
	row, column := places(reads, &m.Rows), places(holds, &m.Columns)
	for range m.Rows {
		m.Cells = append(m.Cells, make([]int64, len(m.Columns)))
	}
	for _, e := range c.Ran {
		cells := m.Cells[row(e.Executor)]
		for _, f := range e.Fetched {
			cells[column(f.Holder)] = sum(cells[column(f.Holder)], f.Bytes)
		}
		cells[len(cells)-1] = sum(cells[len(cells)-1], e.Others)
	}
	if !slices.ContainsFunc(m.Cells, func(row []int64) bool { return row[len(row)-1] > 0 }) { // holders have places all
		m.Columns = m.Columns[:len(m.Columns)-1]
	}
	for i, row := range m.Cells {
		m.Cells[i] = row[:len(m.Columns)]
	}
	if last := len(m.Rows) - 1; slices.Max(append(m.Cells[last], 0)) == 0 {
		m.Rows, m.Cells = m.Rows[:last], m.Cells[:last]
	}
	return m
}

// others is the name of all that have no place of their own.
const others = "others"

// places returns the place of each name: the largest have one of their own, in the order of names, and all others the
// last.
func places(sizes map[string]int64, names *[]string) func(string) int {
	all := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	own := slices.Sorted(slices.Values(all[:min(len(all), mostFetched)]))
	*names = append(own, others)
	return func(name string) int {
		if at, there := slices.BinarySearch(own, name); there {
			return at
		}
		return len(own)
	}
}

// sum returns the sum of two sizes, or the largest there is.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// spilled returns how many bytes tasks have written to disk.
func (c *Run) spilled() (all int64) {
	for _, e := range c.Ran {
		all = sum(all, e.Spilled)
	}
	return all
}

// mostSpreads is how many operations a figure shows: those that took longest.
const mostSpreads = 20

// spreads shows distributions of the operations that have some.
func (c *Run) spreads(of, unit string, five func(*Operation) ([5]float64, bool)) *chart.Spreads {
	var some []*Operation
	for i := range c.Plan {
		if _, has := five(&c.Plan[i]); has {
			some = append(some, &c.Plan[i])
		}
	}
	slices.SortStableFunc(some, func(a, b *Operation) int { return cmp.Compare(b.Took, a.Took) })
	some = some[:min(len(some), mostSpreads)]
	slices.SortFunc(some, func(a, b *Operation) int { return cmp.Compare(a.Node, b.Node) })
	out := &chart.Spreads{Of: of, Unit: unit}
	for _, o := range some {
		v, _ := five(o)
		out.Names, out.Five = append(out.Names, fmt.Sprintf("%d %s", o.Node, o.Kind)), append(out.Five, v)
	}
	return out
}

func scaled(five [5]int64, by float64) (out [5]float64) {
	for k, v := range five {
		out[k] = float64(v) / by
	}
	return out
}

// worthTelling is which part of a run's time an action has to take, to be shown beside its steps.
const worthTelling = 10

// acts reports whether actions are what a run does: it makes no steps, and has no workers
// on tables, or an action takes long beside them.
func (c *Run) acts() bool {
	long := func(o Operation) bool { return o.Longest >= c.took()/worthTelling }
	return len(c.Steps) == 0 && c.Used == nil || slices.ContainsFunc(c.Plan, long)
}

// skewed is from which multiple of the median on the longest task is spoken of, and the largest partition.
const skewed = 3

// planWords returns what a reader asks first of a run of actions.
func (c *Run) planWords() (out []string) {
	var longest, largest *Operation
	var runs, tasks, again, lost int
	for i := range c.Plan {
		o := &c.Plan[i]
		runs, tasks, again, lost = runs+o.Runs, tasks+o.Tasks, again+o.Again, lost+o.Lost
		if o.Runs > 0 && (longest == nil || o.Took > longest.Took) {
			longest = o
		}
		if m := o.Moved; m != nil && m.PartBytes[4] > skewed*max(1, m.PartBytes[2]) && m.Bytes > 1e6 &&
			(largest == nil || m.PartBytes[4] > largest.Moved.PartBytes[4]) {
			largest = o
		}
	}
	if longest == nil || !c.acts() {
		return nil
	}
	text := fmt.Sprintf("Its plan has run %s of %s on %s. Node %d, %s, took longest: %s "+
		"s.", count(int64(tasks), "task"),
		count(int64(runs), "action or shuffle"), count(int64(len(c.Ran)), "executor"), longest.Node, longest.Name(),
		chart.Number(longest.Took.Seconds()))
	text = strings.Replace(text, "action or shuffles", "actions and shuffles", 1)
	if b := longest.Busy; b[4] > skewed*max(1, b[2]) && b[4] > 1e8 {
		text += fmt.Sprintf(" Its slowest task, of partition %d, worked for %s s, the median for %s.", longest.Slowest,
			chart.Number(float64(b[4])/1e9), chart.Number(float64(b[2])/1e9))
	}
	out = append(out, text)
	if largest != nil {
		m := largest.Moved
		text := fmt.Sprintf("Partition %d of node %d, %s, has %s, the median "+
			"%s", m.Largest, largest.Node, largest.Name(),
			inBytes(m.PartBytes[4]), inBytes(m.PartBytes[2]))
		if m.HotKey != "" {
			text += fmt.Sprintf("; the key %q has %.0f %% of the rows", m.HotKey, 100*m.HotShare)
		}
		out = append(out, text+".")
	}
	if spilled := c.spilled(); spilled > 0 {
		out = append(out, fmt.Sprintf("Tasks have spilled %s to disk, as their rows do not fit into the memory that "+
			"one may take.", inBytes(spilled)))
	}
	if again+lost > 0 {
		out = append(out, fmt.Sprintf("%d tasks were given to an executor once more, as they were slow or had "+
			"failed, and %d had lost their input, which was made again.", again, lost))
	}
	return out
}
