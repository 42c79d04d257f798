package reassign

import (
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// Worker is a number of a worker, from 0 on.
type Worker int

// Options are FlexRR's parameters (section 5.7, table 1).
type Options struct {
	Group    int     // helpers of a worker
	Progress float64 // share of a clock at which a worker tells its helpees how far it is
	Trigger  float64 // of a clock that a worker has to be behind to offer work
	First    float64 // share of its remaining work that it offers first
	Follow   float64 // times as much as before, when a helper has begun
	Checks   int     // how often in a clock a worker looks for messages
	Tail     float64 // share of a clock, up to its end, that helpers may do (section 5.6)
	Again    time.Duration
	Patience time.Duration // with a helper that has begun a task, or does not answer; 0 is no bound
}

// Defaults returns the parameters that the paper has found to be good, a second between two sendings of a message
// without an answer, and a minute's patience with a helper.
func Defaults() Options {
	return Options{Group: 4, Progress: 0.75, Trigger: 0.2, First: 0.025, Follow: 2, Checks: 100, Tail: 1,
		Again: time.Second, Patience: time.Minute}
}

// Check refuses what cannot be.
func (o Options) Check() error {
	share := func(name string, x float64) error {
		if !(x > 0 && x <= 1) {
			return fault.Newf(fault.Usage, "use", name, "%v is no share of a clock", x)
		}
		return nil
	}
	switch {
	case o.Group < 0:
		return fault.Newf(fault.Usage, "use", "the helpers of a worker", "%d is negative", o.Group)
	case !(o.Follow >= 1 && o.Follow <= 1e9):
		return fault.Newf(fault.Usage, "use", "the size of a follow-up", "%v times is not between 1 and 1e9", o.Follow)
	case o.Checks < 1:
		return fault.Newf(fault.Usage, "use", "the checks of a clock", "%d is none", o.Checks)
	}
	if err := share("the progress that is told", o.Progress); err != nil {
		return err
	}
	if err := share("the trigger of help", o.Trigger); err != nil {
		return err
	}
	if err := share("the tail that helpers may do", o.Tail); err != nil {
		return err
	}
	return share("the work that is offered first", o.First)
}

// Groups returns the helpers of each worker: one on the same machine, if there is one, and the others spread over
// machines (section 4.1). A worker's helpees are those whose helper it is.
func Groups(machine []int, size int) (helpers [][]Worker) {
	n := len(machine)
	for w := range machine {
		var mine []Worker
		taken := map[int]bool{machine[w]: true}
		for d := 1; d < n && len(mine) < min(1, size); d++ {
			if o := (w + d) % n; machine[o] == machine[w] {
				mine = append(mine, Worker(o))
			}
		}
		for again := false; len(mine) < min(size, n-1); again = true { // each machine once, as long as there are others
			before := len(mine)
			for d := 1; d < n && len(mine) < size; d++ {
				o := (w + d*(w%3+1)) % n
				if o != w && (again || !taken[machine[o]]) && !contains(mine, Worker(o)) {
					taken[machine[o]] = true
					mine = append(mine, Worker(o))
				}
			}
			if again && len(mine) == before {
				mine = rest(mine, w, n, size)
			}
		}
		helpers = append(helpers, mine)
	}
	return helpers
}

// rest adds workers in their order.
func rest(mine []Worker, w, n, size int) []Worker {
	for o := range n {
		if o != w && len(mine) < size && !contains(mine, Worker(o)) {
			mine = append(mine, Worker(o))
		}
	}
	return mine
}

func contains(all []Worker, w Worker) bool {
	for _, o := range all {
		if o == w {
			return true
		}
	}
	return false
}

// Range is items of a clock, From of them before it and To before its end.
type Range struct{ From, To int }

// Len returns how many items a range has.
func (r Range) Len() int { return r.To - r.From }

// Task is a range that one worker does for another: the helpee's, in a clock of one of its lives, by its number in
// that.
type Task struct {
	Helpee Worker
	Life   int
	Clock  int
	Number int
	Range
}

// Progress is what a worker tells its helpees: how much of which clock it has done, and by its timer when. Timers of
// workers began together.
type Progress struct {
	From  Worker
	Life  int
	Clock int
	Done  float64
	Timer time.Duration
}

// The messages about a task: do-this, begun-helping, cancel-help with its acknowledgement, help-completed with its own.
type (
	DoThis struct{ Task }
	Begun  struct {
		Helper Worker
		Task
	}
	Cancel    struct{ Task }
	Cancelled struct {
		Helper Worker
		Task
	}
	Completed struct {
		Helper Worker
		Task
	}
	Accepted struct{ Task }
)

// Command is what a machine has its shell do. Exactly one field is set.
type Command struct {
	Send   *Send
	Help   *Task // do a helpee's range, and say so (Helped)
	Own    *Task // do a range of its own clock that comes back, and say so (Redone)
	Take   *Task // what a helper has done of it counts, and nothing else does
	Finish bool  // all of the clock is done: it may end
	Fail   *Failure
}

// Failure is a wait for a helper that was too long.
type Failure struct {
	Helper Worker
	Task
	Waited time.Duration
}

// Send is a message to a worker.
type Send struct {
	To      Worker
	Message any
}
