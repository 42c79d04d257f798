package driver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// call is an action in progress: one task a partition.
type call struct {
	id      uint64
	req     *CallRequest
	since   plan.Time
	tasks   []callTask
	pending []int // tasks that nobody runs
	left    int
	load    map[plan.ExecutorID]int // attempts that an executor has been given and not ended
	hung    map[plan.ExecutorID]int // of them, those that have been given up
	rates   []float64               // rows per second of the tasks that are done
}

// callTask is a task with its attempts: more than one where it was slow.
type callTask struct {
	attempts []attempt
	failures int
	failedOn []plan.ExecutorID
	done     bool
	data     []byte
	lost     error
}

// attempt is a task on an executor.
type attempt struct {
	on    plan.ExecutorID
	since plan.Time
	rows  int64
	moved int64
	busy  time.Duration
	at    plan.Time // when it last got on, or may have begun
	begun bool      // it has said something
	hung  bool      // it is given up, and its slot taken until it answers
}

// running are the attempts that have not been given up.
func (t *callTask) running() (n int) {
	for _, a := range t.attempts {
		if !a.hung {
			n++
		}
	}
	return n
}

func (j *Job) onCall(req *CallRequest, now plan.Time) {
	j.calls++
	c := &call{id: j.calls, req: req, since: now, tasks: make([]callTask, len(req.Args)), left: len(req.Args), load: map[plan.ExecutorID]int{}, hung: map[plan.ExecutorID]int{}}
	for i := range c.tasks {
		c.pending = append(c.pending, i)
	}
	j.call = c
	j.emit(Command{WakeAt: now + min(j.cfg.MaxWait, j.cfg.TaskTimeout)})
	j.retryCall(now)
	j.finishCall()
}

// queued is how many tasks an executor is given beyond its slots, so that a slot
// need not wait for the next one.
const queued = 1

// Slots is how many tasks the executors run at a time that take part.
func (j *Job) Slots() (n int) {
	for id, ok := range j.prepared {
		if ok {
			n += j.slots[id]
		}
	}
	return n
}

// retryCall hands tasks to executors that have room for them, in turn.
func (j *Job) retryCall(now plan.Time) {
	if j.call == nil || j.ready() == 0 {
		return
	}
	for _, beyond := range []int{0, queued} { // nothing waits behind a task while a slot is free
		for gave := true; gave && len(j.call.pending) > 0; {
			gave = false
			for _, id := range j.order {
				if !j.prepared[id] || j.call.load[id] >= j.slots[id]+beyond && !mutant.On(mutant.TaskOverload) {
					continue
				}
				if at := j.pick(id); at >= 0 {
					i := j.call.pending[at]
					j.call.pending = slices.Delete(j.call.pending, at, at+1)
					j.give(i, id, now)
					gave = true
				}
			}
		}
	}
	j.speculate(now)
}

// looked is how many pending tasks are looked at for one whose input an executor
// holds.
const looked = 64

// pick is the place of a pending task for an executor: one that reads what it
// holds, else the first that need not run elsewhere; −1 is none.
func (j *Job) pick(id plan.ExecutorID) int {
	req, first := j.call.req, -1
	for at, i := range j.call.pending {
		if j.call.tasks[i].attemptOf(id) != nil && !mutant.On(mutant.HungSameExecutor) {
			continue // it hangs there
		}
		if j.call.tasks[i].failures == 0 && !mutant.On(mutant.HolderIgnored) {
			if home := cmp.Or(req.Prefer, j.homeOf(req.Pack, req.partition(i))); home == id {
				return at
			} else if j.prepared[home] && !j.stuck(home) {
				continue
			}
		}
		switch {
		case j.avoids(i, id):
		case req.Holders != nil && slices.Contains(req.Holders[i], string(id)):
			return at
		case first < 0:
			first = at
		}
		if first >= 0 && at >= looked {
			break
		}
	}
	return first
}

// avoids reports whether a task is to run on another executor than this one.
func (j *Job) avoids(i int, id plan.ExecutorID) bool {
	bad := func(id plan.ExecutorID) bool {
		req := j.call.req
		return req.Avoid != nil && slices.Contains(req.Avoid[i], string(id)) || slices.Contains(j.call.tasks[i].failedOn, id)
	}
	if !bad(id) || mutant.On(mutant.TaskSameExecutor) || mutant.On(mutant.HungSameExecutor) {
		return false
	}
	for other := range j.prepared {
		if j.prepared[other] && !bad(other) {
			return true
		}
	}
	return false
}

// give has an executor run a task.
func (j *Job) give(i int, id plan.ExecutorID, now plan.Time) {
	c := j.call
	c.tasks[i].attempts = append(c.tasks[i].attempts, attempt{on: id, since: now, at: now})
	c.load[id]++
	task := &wire.RunTask{Job: string(j.cfg.ID), Call: c.id, Node: uint32(c.req.Node), Partition: uint32(c.req.partition(i)), Args: c.req.Args[i]}
	if c.req.Holders != nil {
		task.Holders = c.req.Holders[i]
	}
	j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_RunTask{RunTask: task}})
}

// homeOf is the executor that holds a pack's split, if there is one.
func (j *Job) homeOf(pack, split int) plan.ExecutorID {
	if pack < 0 || pack >= len(j.packs) || split >= len(j.packs[pack].info.Rows) {
		return ""
	}
	return j.packs[pack].sched.Owner(plan.SplitID(split))
}

// partition is what a task computes.
func (r *CallRequest) partition(task int) int {
	if r.Partitions == nil {
		return task
	}
	return r.Partitions[task]
}

// task is the one that computes a partition; −1 is none.
func (r *CallRequest) task(partition int) int {
	if r.Partitions == nil && partition < len(r.Args) {
		return partition
	}
	return slices.Index(r.Partitions, partition)
}

// lose takes back the tasks that an executor was doing.
func (c *call) lose(id plan.ExecutorID) {
	delete(c.load, id)
	delete(c.hung, id)
	for i := range c.tasks {
		t := &c.tasks[i]
		had := t.running()
		t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.on == id })
		if had > 0 && t.running() == 0 && !t.done && !mutant.On(mutant.TaskForgotten) {
			c.pending = append(c.pending, i)
		}
	}
	slices.Sort(c.pending)
}

// attemptOf is a task's attempt on an executor; nil is none.
func (t *callTask) attemptOf(id plan.ExecutorID) *attempt {
	for k := range t.attempts {
		if t.attempts[k].on == id {
			return &t.attempts[k]
		}
	}
	return nil
}

func (j *Job) onTaskResult(from plan.ExecutorID, r *wire.TaskResult, now plan.Time) {
	c := j.call
	i := -1
	if c != nil && (r.Call == c.id || mutant.On(mutant.TaskOfOlderCall)) {
		i = c.req.task(int(r.Partition))
	}
	if i < 0 || c.tasks[i].attemptOf(from) == nil {
		j.counters.StaleReports++
		return
	}
	t := &c.tasks[i]
	late := t.attemptOf(from).hung
	t.attempts = slices.DeleteFunc(t.attempts, func(a attempt) bool { return a.on == from })
	if c.load[from]--; late {
		c.hung[from]--
	}
	c.waited(from, now)
	c.since = now // a task that gets on need not hurry
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	err := r.Fault.AsError()
	switch {
	case t.done:
		j.counters.StaleReports++ // another attempt was faster
		if mutant.On(mutant.TaskCountedTwice) {
			c.left--
		}
	case fault.KindOf(err) == fault.LostInput && !mutant.On(mutant.LostInputRetried):
		t.done, t.lost = true, err
		c.left--
	case err != nil && late: // it has been counted
	case err != nil:
		j.taskFailed(i, from, err)
	default:
		t.done, t.data = true, r.Data
		c.left--
		c.pending = slices.DeleteFunc(c.pending, func(k int) bool { return k == i })
		if r.BusyNs > 0 {
			c.rates = append(c.rates, float64(r.Rows)/time.Duration(r.BusyNs).Seconds())
		}
	}
	if j.call == nil || j.state == ended {
		return
	}
	j.retryCall(now)
	j.finishCall()
}

// taskFailed has a task tried again elsewhere, or the job fail.
func (j *Job) taskFailed(i int, from plan.ExecutorID, err error) {
	t := &j.call.tasks[i]
	t.failures++
	t.failedOn = append(t.failedOn, from)
	if !fault.Policy(fault.KindOf(err)).Retry || (t.failures >= j.cfg.Schedule.MaxTaskFailures || mutant.On(mutant.TaskRetriedNever)) && !mutant.On(mutant.TaskRetriedAlways) {
		j.fail(fault.New(fault.KindOf(err), "run", fmt.Sprintf("partition %d on %s", j.call.req.partition(i), from), err))
		return
	}
	if t.running() == 0 {
		j.call.pending = append(j.call.pending, i)
		slices.Sort(j.call.pending)
	}
}

func (j *Job) finishCall() {
	if j.call.left > 0 {
		return
	}
	out := &CallOutcome{Data: make([][]byte, len(j.call.tasks)), Lost: make([]error, len(j.call.tasks))}
	for i, t := range j.call.tasks {
		out.Data[i], out.Lost[i] = t.data, t.lost
	}
	j.call = nil
	j.emit(Command{CallDone: out})
}

// waited notes that something has moved on an executor: what waits for a slot there has
// not been kept waiting by nothing.
func (c *call) waited(id plan.ExecutorID, now plan.Time) {
	for i := range c.tasks {
		if a := c.tasks[i].attemptOf(id); a != nil && !a.begun {
			a.at = now
		}
	}
}

// giveUpHung gives up the attempts that have not got on for too long, and says when to
// look again.
func (j *Job) giveUpHung(now plan.Time) {
	next := now + j.cfg.TaskTimeout
	for i := range j.call.tasks {
		t := &j.call.tasks[i]
		for k := range t.attempts {
			a := &t.attempts[k]
			switch due := a.at + j.hangsAfter(); {
			case a.hung:
			case now < due:
				next = min(next, due)
			case t.done: // elsewhere
				j.call.giveUp(a)
			default:
				j.call.giveUp(a)
				err := fault.Newf(fault.Timeout, "wait for", "progress", "it has read no row and moved no byte for %v", j.cfg.TaskTimeout).
					WithHint("--task-timeout is for rows that take longer")
				if j.taskFailed(i, a.on, err); j.state != ended && !j.elsewhere(t) {
					j.fail(fault.New(fault.Timeout, "run", fmt.Sprintf("partition %d on %s", j.call.req.partition(i), a.on), err))
				}
			}
			if j.state == ended {
				return
			}
		}
	}
	if !mutant.On(mutant.HungUnwoken) {
		j.emit(Command{WakeAt: next})
	}
	j.retryCall(now)
}

// giveUp expects nothing more of an attempt, which keeps its slot until it answers.
func (c *call) giveUp(a *attempt) {
	a.hung = true
	c.hung[a.on]++
}

// stuck reports whether what hangs has all slots of an executor.
func (j *Job) stuck(id plan.ExecutorID) bool {
	return j.call.hung[id] >= j.slots[id]
}

// hangsAfter is how long a task may go without progress.
func (j *Job) hangsAfter() plan.Time {
	switch {
	case mutant.On(mutant.HungKept):
		return time.Hour
	case mutant.On(mutant.HungEarly):
		return j.cfg.TaskTimeout / 10
	}
	return j.cfg.TaskTimeout
}

// elsewhere reports whether a task gets on, or there is an executor on which it does not
// hang.
func (j *Job) elsewhere(t *callTask) bool {
	for id, ok := range j.prepared {
		if ok && t.attemptOf(id) == nil {
			return true
		}
	}
	return t.running() > 0
}

// runs reports whether anybody runs a task that has not been given up.
func (c *call) runs() bool {
	return slices.ContainsFunc(c.tasks, func(t callTask) bool { return !t.done && t.running() > 0 })
}
