package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// TaskConfig bounds the retries and waits of a call's tasks.
type TaskConfig struct {
	MaxFailures int           // failures of one task before the job fails
	Timeout     time.Duration // that a task may go without progress
	MaxWait     time.Duration // that a call may go without a running task
}

// TaskRequest asks for the tasks of a call.
type TaskRequest struct {
	Tasks      int
	Partitions []int           // that they compute; nil is one after the other
	Splits     *State          // placement of the pack whose splits they read, one each; nil is none
	Prefer     plan.ExecutorID // preferred executor, if it is connected; may be empty
	Holders    [][]string      // by task: executors that hold its input; may be nil
	Avoid      [][]string      // by task: executors to avoid where there are others; may be nil
	// Beside returns how many tasks of other calls an executor has; nil is none.
	Beside func(plan.ExecutorID) int
}

// TaskCommandKind is what to do.
type TaskCommandKind uint8

// The commands of a call: TaskGive runs a task on an executor, TaskWake requests
// a Tick at a time, TaskAbort fails the job, TaskDone ends the call.
const (
	TaskGive TaskCommandKind = iota
	TaskWake
	TaskAbort
	TaskDone
)

// TaskCommand is one thing to do.
type TaskCommand struct {
	Kind     TaskCommandKind
	Task     int
	Executor plan.ExecutorID
	Copy     bool // the task also runs on another executor, where it is slow
	At       plan.Time
	Err      error
}

// TaskEnd is the outcome of an attempt.
type TaskEnd struct {
	Partition int
	Data      []byte
	Err       error
	Rows      int64
	Busy      time.Duration
	Spilled   int64                     // as of plan.TaskRun
	Fetched   map[plan.ExecutorID]int64 // as of plan.TaskRun
}

// TaskProgress is the progress of an attempt.
type TaskProgress struct {
	Partition   int
	Rows, Moved int64
	Busy        time.Duration
}

// Tasks are the tasks of one call: which executor runs which, and which are retried.
type Tasks struct {
	cfg     TaskConfig
	req     TaskRequest
	ex      *Executors
	since   plan.Time // time of the last progress of any task
	tasks   []task
	pending []int // tasks that no executor runs, in order
	left    int
	load    map[plan.ExecutorID]int // attempts assigned to an executor that have not ended
	hung    map[plan.ExecutorID]int // of them, those that have been given up
	rates   []float64               // rows per second of the tasks that are done
	over    bool                    // the call is done, or has failed
	out     []TaskCommand
}

// task is a task with its attempts: more than one where it was slow.
type task struct {
	attempts []attempt
	failures int
	failedOn []plan.ExecutorID
	done     bool
	data     []byte
	lost     error
	ran      plan.TaskRun
}

// attempt is a task on an executor.
type attempt struct {
	on    plan.ExecutorID
	rows  int64
	moved int64
	busy  time.Duration
	at    plan.Time // time of its last progress, or of its earliest start
	begun bool      // it has sent progress
	hung  bool      // it is given up; its slot stays taken until it answers
}

// running returns the attempts that have not been given up.
func (k *task) running() (n int) {
	for _, a := range k.attempts {
		if !a.hung {
			n++
		}
	}
	return n
}

// attemptOf returns a task's attempt on an executor; nil is none.
func (k *task) attemptOf(id plan.ExecutorID) *attempt {
	for i := range k.attempts {
		if k.attempts[i].on == id {
			return &k.attempts[i]
		}
	}
	return nil
}

// NewTasks prepares the tasks of a call for the executors of a job.
func NewTasks(cfg TaskConfig, req TaskRequest, ex *Executors) *Tasks {
	t := &Tasks{cfg: cfg, req: req, ex: ex, tasks: make([]task, req.Tasks), left: req.Tasks,
		load: map[plan.ExecutorID]int{}, hung: map[plan.ExecutorID]int{}}
	for i := range t.tasks {
		t.pending = append(t.pending, i)
	}
	return t
}

// Begin hands out the first tasks.
func (t *Tasks) Begin(now plan.Time) []TaskCommand {
	t.since = now
	t.emit(TaskCommand{Kind: TaskWake, At: now + min(t.cfg.MaxWait, t.cfg.Timeout)})
	t.handOut(now)
	t.finish()
	return t.take()
}

// GiveUp hands out no further task. Those that executors have keep their slots until they end.
func (t *Tasks) GiveUp() { t.over, t.pending = true, nil }

// Offer assigns pending tasks, after executors have joined or left.
func (t *Tasks) Offer(now plan.Time) []TaskCommand {
	t.handOut(now)
	return t.take()
}

// Results returns the results by task: data, or why its input is lost.
func (t *Tasks) Results() (data [][]byte, lost []error) {
	data, lost = make([][]byte, len(t.tasks)), make([]error, len(t.tasks))
	for i, k := range t.tasks {
		data[i], lost[i] = k.data, k.lost
	}
	return data, lost
}

// Done returns how many tasks need no further attempt, of how many.
func (t *Tasks) Done() (done, all int) { return len(t.tasks) - t.left, len(t.tasks) }

// Runs returns how each task was run.
func (t *Tasks) Runs() []plan.TaskRun {
	out := make([]plan.TaskRun, len(t.tasks))
	for i, k := range t.tasks {
		out[i] = k.ran
	}
	return out
}

// Partition returns the partition that a task computes.
func (t *Tasks) Partition(task int) int {
	if t.req.Partitions == nil {
		return task
	}
	return t.req.Partitions[task]
}

// of returns the task that computes a partition, and the attempt of an executor at it; nil is none.
func (t *Tasks) of(partition int, from plan.ExecutorID) (int, *attempt) {
	i := partition
	if t.req.Partitions != nil || partition >= len(t.tasks) {
		i = slices.Index(t.req.Partitions, partition)
	}
	if i < 0 {
		return i, nil
	}
	return i, t.tasks[i].attemptOf(from)
}

func (t *Tasks) emit(c TaskCommand) { t.out = append(t.out, c) }

// take returns the commands since the last call.
func (t *Tasks) take() []TaskCommand {
	out := t.out
	t.out = nil
	return out
}

// abort fails the job.
func (t *Tasks) abort(err error) {
	t.over = true
	t.emit(TaskCommand{Kind: TaskAbort, Err: err})
}

// finish ends the call when nothing is left to do.
func (t *Tasks) finish() {
	if t.left <= 0 {
		t.over = true
		t.emit(TaskCommand{Kind: TaskDone})
	}
}

// queued is how many tasks an executor is given beyond its slots, so that a slot
// need not wait for the next one.
const queued = 1

// handOut gives tasks to executors with free slots, round-robin.
func (t *Tasks) handOut(now plan.Time) {
	if t.over || t.ex.Count() == 0 {
		return
	}
	for _, beyond := range []int{0, queued} { // no task is queued behind another while a slot is free
		for t.round(beyond, now) {
		}
	}
	t.copySlow(now)
}

// round gives each executor with a free slot one task, and reports whether there was any.
func (t *Tasks) round(beyond int, now plan.Time) (gave bool) {
	for id := range t.ex.All() {
		if !t.ex.Present(id) || !plantedRoom(t.room(id, beyond)) {
			continue
		}
		if at := t.pick(id); at >= 0 {
			i := t.pending[at]
			t.pending = slices.Delete(t.pending, at, at+1)
			t.give(i, id, false, now)
			gave = true
		}
	}
	return gave
}

// Load returns how many of the call's tasks an executor has.
func (t *Tasks) Load(id plan.ExecutorID) int { return t.load[id] }

// taken returns how many tasks of any call an executor has.
func (t *Tasks) taken(id plan.ExecutorID) int {
	if t.req.Beside == nil {
		return t.load[id]
	}
	return t.load[id] + t.req.Beside(id)
}

// room reports whether an executor may be given a task, beyond its slots too: but not behind tasks of other calls,
// which may take longer than those that run elsewhere.
func (t *Tasks) room(id plan.ExecutorID, beyond int) bool {
	taken := t.taken(id)
	if taken > t.load[id] {
		beyond = 0
	}
	return taken < t.ex.SlotsOf(id)+beyond
}

// behind reports whether tasks of other calls have slots.
func (t *Tasks) behind() bool {
	return t.ex.any(func(id plan.ExecutorID) bool { return t.taken(id) > t.load[id] })
}

// give assigns a task to an executor.
func (t *Tasks) give(i int, id plan.ExecutorID, again bool, now plan.Time) {
	t.tasks[i].attempts = append(t.tasks[i].attempts, attempt{on: id, at: now})
	t.tasks[i].ran.Attempts++
	t.load[id]++
	t.emit(TaskCommand{Kind: TaskGive, Task: i, Executor: id, Copy: again})
}

// Lost takes back the tasks that an executor was doing.
func (t *Tasks) Lost(id plan.ExecutorID) {
	delete(t.load, id)
	delete(t.hung, id)
	for i := range t.tasks {
		k := &t.tasks[i]
		had := k.running()
		k.attempts = slices.DeleteFunc(k.attempts, func(a attempt) bool { return a.on == id })
		if plantedOrphan(had > 0 && k.running() == 0 && !k.done) {
			t.pending = append(t.pending, i)
		}
	}
	slices.Sort(t.pending)
}

// Ended takes the outcome of an attempt. It reports whether it was used: not if the task
// is done already, or was not assigned to the executor.
func (t *Tasks) Ended(from plan.ExecutorID, end TaskEnd, now plan.Time) (useful bool, out []TaskCommand) {
	i, a := t.of(end.Partition, from)
	if a == nil {
		return false, nil
	}
	k := &t.tasks[i]
	counted, done := a.hung, k.done
	k.attempts = slices.DeleteFunc(k.attempts, func(a attempt) bool { return a.on == from })
	if t.load[from]--; counted {
		t.hung[from]--
	}
	t.GotOn(from, now)
	t.since = now // a task that makes progress has time
	t.emit(TaskCommand{Kind: TaskWake, At: now + t.cfg.MaxWait})
	if done { // another attempt was faster
		plantedTwice(t)
	} else {
		t.end(i, from, end, counted)
	}
	if !t.over {
		t.handOut(now)
		t.finish()
	}
	return !done, t.take()
}

// end completes, retries or fails a task by the outcome of an attempt. A failure counts
// once: when the attempt was given up, or when it arrives.
func (t *Tasks) end(i int, from plan.ExecutorID, end TaskEnd, counted bool) {
	k := &t.tasks[i]
	switch {
	case plantedLost(fault.InputLost(end.Err)):
		k.lost = end.Err
		t.done(i)
	case end.Err != nil && counted:
	case end.Err != nil:
		t.failed(i, from, end.Err)
	default:
		k.data = end.Data
		k.ran.Executor, k.ran.Rows, k.ran.Busy = from, end.Rows, end.Busy
		k.ran.Spilled, k.ran.Fetched = end.Spilled, end.Fetched
		t.done(i)
		if end.Busy > 0 {
			t.rates = append(t.rates, float64(end.Rows)/end.Busy.Seconds())
		}
	}
}

// done notes that a task needs no further attempt.
func (t *Tasks) done(i int) {
	t.tasks[i].done = true
	t.left--
	t.pending = slices.DeleteFunc(t.pending, func(p int) bool { return p == i })
}

// failed retries a task on another executor, or fails the job.
func (t *Tasks) failed(i int, from plan.ExecutorID, err error) {
	k := &t.tasks[i]
	k.failures++
	k.failedOn = append(k.failedOn, from)
	kind := fault.KindOf(err)
	if !fault.Policy(kind).Retry || plantedExhausted(k.failures >= t.cfg.MaxFailures) {
		t.abort(fault.New(kind, "run", t.name(i, from), err))
		return
	}
	if k.running() == 0 {
		t.pending = append(t.pending, i)
		slices.Sort(t.pending)
	}
}

func (t *Tasks) name(i int, on plan.ExecutorID) string {
	return fmt.Sprintf("partition %d on %s", t.Partition(i), on)
}

// Progress notes the progress of an attempt. It reports whether there was any since the last time.
func (t *Tasks) Progress(from plan.ExecutorID, p TaskProgress, now plan.Time) (any bool, out []TaskCommand) {
	_, a := t.of(p.Partition, from)
	if a == nil {
		return false, nil
	}
	if !a.begun || plantedMoved(a.moved != p.Moved) || a.rows != p.Rows {
		a.begun, a.at, t.since, any = true, now, now, true
		t.GotOn(from, now)
	}
	a.rows, a.moved, a.busy = p.Rows, p.Moved, p.Busy
	t.copySlow(now)
	return any, t.take()
}

// GotOn notes progress on an executor, of this call or another: tasks queued there wait for a reason.
func (t *Tasks) GotOn(id plan.ExecutorID, now plan.Time) {
	for i := range t.tasks {
		if a := t.tasks[i].attemptOf(id); a != nil && !a.begun {
			a.at = now
		}
	}
}

// Tick gives up attempts without progress for too long, and fails the job where no task
// runs for too long.
func (t *Tasks) Tick(now plan.Time) []TaskCommand {
	switch t.giveUpHung(now); {
	case t.over:
	case now < t.since+t.cfg.MaxWait:
		t.emit(TaskCommand{Kind: TaskWake, At: t.since + t.cfg.MaxWait})
	case t.runs(): // giveUpHung has asked to be woken for them
	case t.behind(): // whose tasks end, or fail the job
		t.emit(TaskCommand{Kind: TaskWake, At: now + t.cfg.MaxWait})
	default:
		t.abort(fault.Newf(fault.Timeout, "wait for", "an action", "%d of its tasks have not finished within %v",
			t.left, t.cfg.MaxWait))
	}
	return t.take()
}

// giveUpHung gives up the attempts without progress for too long, and asks to be woken for the
// next check.
func (t *Tasks) giveUpHung(now plan.Time) {
	next := now + t.cfg.Timeout
	for i := range t.tasks {
		for k := range t.tasks[i].attempts {
			a := &t.tasks[i].attempts[k]
			if a.hung {
				continue
			}
			if due := a.at + plantedTimeout(t.cfg.Timeout); now < due {
				next = min(next, due)
			} else if t.giveUp(i, a); t.over {
				return
			}
		}
	}
	if plantedWoken() {
		t.emit(TaskCommand{Kind: TaskWake, At: next})
	}
	t.handOut(now)
}

// giveUp gives up an attempt, which keeps its slot until it answers. The task is retried on
// another executor, if it is not done.
func (t *Tasks) giveUp(i int, a *attempt) {
	k := &t.tasks[i]
	a.hung = true
	t.hung[a.on]++
	if k.done {
		return
	}
	err := fault.Newf(fault.Timeout, "wait for", "progress", "it has read no row and moved no byte for %v",
		t.cfg.Timeout).
		WithHint("raise --task-timeout if rows take longer")
	if t.failed(i, a.on, err); !t.over && !t.elsewhere(k) {
		t.abort(fault.New(fault.Timeout, "run", t.name(i, a.on), err))
	}
}

// elsewhere reports whether a task makes progress, or there is an executor on which it
// does not hang.
func (t *Tasks) elsewhere(k *task) bool {
	return k.running() > 0 || t.ex.any(func(id plan.ExecutorID) bool { return k.attemptOf(id) == nil })
}

// runs reports whether any executor runs a task that has not been given up.
func (t *Tasks) runs() bool {
	return slices.ContainsFunc(t.tasks, func(k task) bool { return !k.done && k.running() > 0 })
}
