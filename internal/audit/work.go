package audit

import (
	"slices"

	"github.com/volley-engine/volley/driver"
)

// The last versions of logs that had no lines of actions, of slots, and of tables, and the same of all else.
const (
	withoutActions = 6
	withoutSlots   = 7
	withoutTables  = 8
)

// Verifies reports whether the decisions of a version's logs are those that this program makes.
func Verifies(version int) bool {
	return version == driver.LogVersion || version == withoutTables || version == withoutSlots ||
		version == withoutActions
}

// work checks what a line says of actions: nothing was decided by it, but it must make sense by itself, and be of the
// plan. A log that an earlier version has begun may have some, of a later one that went on with the job.
func (v *verifier) work(l *Line) {
	switch {
	case l.Plan != nil:
		if len(l.Plan.Nodes) > 0 && l.Plan.Nodes[0].Node == 0 {
			v.nodes = 0 // another process goes on with the job, and says all of it again
		}
		for _, n := range l.Plan.Nodes {
			v.fact(n.Node == v.nodes && n.Stage >= 0 && before(n.Inputs, v.nodes), whole, v.steps, l.Number,
				"node %d follows %d nodes, of nodes before it", n.Node, v.nodes)
			v.nodes++
		}
	case l.Action != nil:
		v.action(l.Action, l.Number)
	case l.Shuffle != nil:
		s := l.Shuffle
		v.fact(s.Tasks > 0 && s.Rows >= 0 && s.Bytes >= 0 && s.Partitions >= 0 && ascending(s.PartBytes) &&
			s.PartBytes[4] <= s.Bytes && s.HotShare >= 0 && s.HotShare <= 1 && s.Largest >= 0 &&
			s.Largest < max(1, s.Partitions), whole, v.steps, l.Number, "it has %d rows of %d map tasks, %d bytes "+
			"in %d partitions, %v of one", s.Rows, s.Tasks, s.Bytes, s.Partitions, s.PartBytes)
	}
}

// action checks that what executors have run comes to all.
func (v *verifier) action(a *driver.LogAction, line int) {
	var tasks int
	var rows, busy int64
	for _, e := range a.Executors {
		tasks, rows, busy = tasks+e.Tasks, rows+e.Rows, busy+e.BusyNs
		moved := e.Tasks > 0 && sized(e.Spilled) && sized(e.Others) && len(e.Fetched) <= driver.MostHolders
		for i, f := range e.Fetched {
			moved = moved && sized(f.Bytes) && (i == 0 || e.Fetched[i-1].Holder < f.Holder)
		}
		v.fact(moved, whole, v.steps, line, "%s: %d tasks have spilled %d bytes, and read of "+
			"%d holders", e.Executor, e.Tasks, e.Spilled, len(e.Fetched))
	}
	v.fact(a.Node >= 0 && a.Node < v.nodes, whole, v.steps, line, "node %d of a plan of %d", a.Node, v.nodes)
	counts := tasks+a.Lost == a.Tasks && rows == a.Rows && a.Again >= 0 && a.Lost >= 0
	times := a.BeganNs >= 0 && a.TookNs >= 0 && ascending(a.BusyNs) && busy >= a.BusyNs[4]
	v.fact(counts && times, whole, v.steps, line, "executors have run %d tasks of %d rows, of %d and %d, and %d were "+
		"lost",
		tasks, rows, a.Tasks, a.Rows, a.Lost)
}

// mostBytes is more than the tasks of an executor can spill, or read, in an action: a pebibyte.
const mostBytes = 1 << 50

func sized(bytes int64) bool { return bytes >= 0 && bytes <= mostBytes }

func ascending(five [5]int64) bool { return five[0] >= 0 && slices.IsSorted(five[:]) }

// before reports whether all nodes of some ways are before one.
func before(ways [][]int, node int) bool {
	for _, way := range ways {
		for _, in := range way {
			if in < 0 || in >= node {
				return false
			}
		}
	}
	return true
}

// Shown reports whether a line is there to be shown: about actions, slots or tables, by which nothing was decided.
func (l Line) Shown() bool {
	return l.Plan != nil || l.Action != nil || l.Shuffle != nil || l.Slots != nil || l.Tables != nil
}

// ofPack reports whether a line is about packs: a job that opens none has no splits.
func (l Line) ofPack() bool {
	return l.Step != nil || l.Evaluation != nil || l.Resume != nil || l.Pack != nil
}
