package driver

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/plan"
)

// LogPlan has nodes of the job's plan that are not in the log yet: all when the first action has ended, and what was
// added since.
type LogPlan struct {
	Event string    `json:"event"` // "plan"
	Nodes []LogNode `json:"nodes"`
}

// LogNode is an operation of a plan.
type LogNode struct {
	Node   int     `json:"node"`
	Stage  int     `json:"stage"` // that it is computed in
	Kind   string  `json:"kind"`
	Detail string  `json:"detail,omitempty"`
	Label  string  `json:"label,omitempty"`
	Inputs [][]int `json:"inputs,omitempty"` // ways to compute it, each of some nodes
}

// LogAction is a run of tasks, of an action or of a shuffle's map side.
type LogAction struct {
	Event     string       `json:"event"` // "action"
	Node      int          `json:"node"`
	BeganNs   int64        `json:"began_ns"` // on the job's clock
	TookNs    int64        `json:"took_ns"`
	Tasks     int          `json:"tasks"`
	Rows      int64        `json:"rows"`            // that they have read
	BusyNs    [5]int64     `json:"busy_ns"`         // least, quartiles and most that a task has worked
	Slowest   int          `json:"slowest"`         // partition of the task that has worked longest
	Executors []LogTasksOn `json:"executors"`       // which have run tasks
	Again     int          `json:"again,omitempty"` // tasks were given to an executor once more, as they were slow or had failed
	Lost      int          `json:"lost,omitempty"`  // tasks whose input is lost
}

// LogTasksOn is what tasks an executor has run.
type LogTasksOn struct {
	Executor string `json:"executor"`
	Tasks    int    `json:"tasks"`
	Rows     int64  `json:"rows"`
	BusyNs   int64  `json:"busy_ns"`
	Spilled  int64  `json:"spilled,omitempty"` // bytes of rows, to disk
	// Bytes of map outputs that they have read, by who holds them: the largest, in the order of names.
	Fetched []LogFetched `json:"fetched,omitempty"`
	Others  int64        `json:"fetched_others,omitempty"` // of holders that are not among these
}

// LogFetched is how many bytes an executor's tasks have read of map outputs that another holds, or itself.
type LogFetched struct {
	Holder string `json:"holder"`
	Bytes  int64  `json:"bytes"`
}

// MostHolders is how many holders an executor's tasks are said to have read of by name.
const MostHolders = 64

// LogShuffle is what map tasks have made of a shuffle: those that ran together.
type LogShuffle struct {
	Event      string   `json:"event"` // "shuffle"
	Node       int      `json:"node"`
	Tasks      int      `json:"tasks"`
	Rows       int64    `json:"rows"`
	Bytes      int64    `json:"bytes"`
	Partitions int      `json:"partitions"`
	PartBytes  [5]int64 `json:"partition_bytes"` // least, quartiles and most
	Largest    int      `json:"largest"`         // partition
	HotKey     string   `json:"hot_key,omitempty"`
	HotShare   float64  `json:"hot_share,omitempty"`
}

// ActionLine returns the line of an action.
func ActionLine(req *plan.CallRequest, done *plan.CallOutcome) *LogAction {
	l := &LogAction{Event: "action", Node: req.Node, BeganNs: int64(done.Began), TookNs: int64(done.Ended - done.Began),
		Tasks: len(done.Tasks), Executors: []LogTasksOn{}}
	var busy []int64
	most := int64(-1)
	for i, t := range done.Tasks {
		l.Again += max(0, t.Attempts-1)
		if done.Lost[i] != nil {
			l.Lost++
			continue
		}
		l.Rows += t.Rows
		busy = append(busy, int64(t.Busy))
		if int64(t.Busy) > most {
			if most, l.Slowest = int64(t.Busy), i; req.Partitions != nil {
				l.Slowest = req.Partitions[i]
			}
		}
		l.add(t)
	}
	l.BusyNs = fiveOf(busy)
	for e := range l.Executors {
		l.Executors[e].bound()
	}
	return l
}

// bound leaves out the holders that tasks have read least of, where they are many.
func (o *LogTasksOn) bound() {
	if len(o.Fetched) <= MostHolders {
		return
	}
	slices.SortStableFunc(o.Fetched, func(a, b LogFetched) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, f := range o.Fetched[MostHolders:] {
		o.Others += f.Bytes
	}
	o.Fetched = o.Fetched[:MostHolders]
	slices.SortFunc(o.Fetched, byHolder)
}

func byHolder(a, b LogFetched) int { return strings.Compare(a.Holder, b.Holder) }

// Fetch adds to what tasks have read of a holder's map outputs.
func (o *LogTasksOn) Fetch(holder string, bytes int64) {
	at, there := slices.BinarySearchFunc(o.Fetched, LogFetched{Holder: holder}, byHolder)
	if !there {
		o.Fetched = slices.Insert(o.Fetched, at, LogFetched{Holder: holder})
	}
	o.Fetched[at].Bytes += min(bytes, math.MaxInt64-o.Fetched[at].Bytes)
}

// add adds a task to what its executor has run.
func (l *LogAction) add(t plan.TaskRun) {
	at, there := slices.BinarySearchFunc(l.Executors, string(t.Executor), func(o LogTasksOn, name string) int {
		return strings.Compare(o.Executor, name)
	})
	if !there {
		l.Executors = slices.Insert(l.Executors, at, LogTasksOn{Executor: string(t.Executor)})
	}
	l.Executors[at].Tasks++
	l.Executors[at].Rows += t.Rows
	l.Executors[at].BusyNs += int64(t.Busy)
	l.Executors[at].Spilled += t.Spilled
	for holder, bytes := range t.Fetched {
		l.Executors[at].Fetch(string(holder), bytes)
	}
}

// fiveOf returns the least, the quartiles and the most of some numbers; of none zeros.
func fiveOf(all []int64) (five [5]int64) {
	all = slices.Sorted(slices.Values(all))
	if len(all) == 0 {
		return five
	}
	for k := range five {
		five[k] = all[k*(len(all)-1)/4]
	}
	return five
}

// mostKey is how much of a key, or a name, is in the log.
const mostKey = 100

// brief returns the beginning of a text that others have chosen.
func brief(text string) string {
	all := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	return string(all[:min(len(all), mostKey)])
}

// ShuffleLine returns the line of map outputs.
func ShuffleLine(s *plan.Shuffled) *LogShuffle {
	l := &LogShuffle{Event: "shuffle", Node: s.Node, Tasks: s.Tasks, Rows: s.Rows, Partitions: len(s.Bytes),
		PartBytes: fiveOf(s.Bytes), HotShare: s.HotShare}
	l.HotKey = brief(s.HotKey)
	for p, n := range s.Bytes {
		if l.Bytes += n; n > s.Bytes[l.Largest] {
			l.Largest = p
		}
	}
	return l
}
