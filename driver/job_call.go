package driver

import (
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// call is an action in progress: one task for each partition.
type call struct {
	id    uint64
	req   *plan.CallRequest
	tasks *scheduler.Tasks
	// givenUp says that the session no longer waits for it: its tasks are over, but for those that executors run.
	began   plan.Time
	givenUp bool
	since   plan.Time // it was given up, or one of its tasks got on
}

// onCall begins an action beside those in progress, whose tasks have their slots.
func (j *Job) onCall(req *plan.CallRequest, now plan.Time) {
	j.calls++
	cfg := scheduler.TaskConfig{MaxFailures: j.cfg.Schedule.MaxTaskFailures, Timeout: j.cfg.TaskTimeout,
		MaxWait: j.cfg.MaxWait}
	c := &call{id: j.calls, req: req, began: now}
	of := scheduler.TaskRequest{Tasks: len(req.Args), Partitions: req.Partitions,
		Prefer: req.Prefer, Holders: req.Holders, Avoid: req.Avoid, Beside: func(id plan.ExecutorID) int {
			return j.loadBeside(c, id)
		}}
	if req.Pack >= 0 && req.Pack < len(j.packs) {
		of.Splits = j.packs[req.Pack].sched
	}
	c.tasks = scheduler.NewTasks(cfg, of, j.executors)
	j.open = append(j.open, c)
	if req.Pack < 0 || req.Pack >= len(j.packs) || !j.packGone(j.packs[req.Pack]) {
		j.carryOut(c, c.tasks.Begin(now), now)
	}
}

// loadBeside returns how many tasks of other actions an executor has.
func (j *Job) loadBeside(but *call, id plan.ExecutorID) (n int) {
	for _, c := range j.open {
		if c != but {
			n += c.tasks.Load(id)
		}
	}
	return n
}

// Running is an action in progress.
type Running struct {
	Node        int // of the plan
	Tasks, Done int
}

// Running returns the actions in progress.
func (j *Job) Running() (all []Running) {
	for _, c := range j.open {
		done, tasks := c.tasks.Done()
		all = append(all, Running{Node: c.req.Node, Tasks: tasks, Done: done})
	}
	return all
}

// callOf returns an action in progress; nil where it is none.
func (j *Job) callOf(id uint64) *call {
	if at := slices.IndexFunc(j.open, func(c *call) bool { return c.id == id }); at >= 0 {
		return j.open[at]
	}
	return nil
}

// AbandonCall drops an action that the session no longer waits for. Others have its slots as the tasks end that have
// them.
func (j *Job) AbandonCall(id uint64, now plan.Time) []Command {
	j.out = nil
	if c := j.callOf(id); c != nil && j.state != ended {
		c.givenUp, c.since = true, now
		c.tasks.GiveUp()
		j.emit(Command{WakeAt: now + j.cfg.TaskTimeout})
		j.endEmpty(c)
		j.offerTasks(now)
	}
	return j.out
}

// endEmpty ends an action that was given up once none of its tasks has a slot.
func (j *Job) endEmpty(c *call) {
	for id := range j.executors.All() {
		if c.tasks.Load(id) > 0 {
			return
		}
	}
	j.end(c)
}

// forgets reports whether an action is one that was given up, which is forgotten when its tasks do not get on.
func (j *Job) forgets(c *call, now plan.Time) bool {
	if c.givenUp && now >= c.since+j.cfg.TaskTimeout {
		j.end(c)
		j.offerTasks(now)
	} else if c.givenUp {
		j.emit(Command{WakeAt: c.since + j.cfg.TaskTimeout})
	}
	return c.givenUp
}

func (j *Job) end(c *call) { j.open = slices.DeleteFunc(j.open, func(o *call) bool { return o == c }) }

// Slots returns the number of slots of the executors that take part.
func (j *Job) Slots() int { return j.executors.Slots() }

// offerTasks assigns pending tasks, those of the first action first: after executors have joined or left, or slots
// have become free.
func (j *Job) offerTasks(now plan.Time) {
	for _, c := range slices.Clone(j.open) {
		if j.state != ended && !c.givenUp {
			j.carryOut(c, c.tasks.Offer(now), now)
		}
	}
}

// carryOut carries out the scheduler's commands for a call's tasks.
func (j *Job) carryOut(call *call, cmds []scheduler.TaskCommand, now plan.Time) {
	for _, c := range cmds {
		switch c.Kind {
		case scheduler.TaskGive:
			if c.Copy {
				j.counters.Speculated++
			}
			j.give(call, c.Task, c.Executor)
		case scheduler.TaskWake:
			j.emit(Command{WakeAt: c.At})
		case scheduler.TaskAbort:
			j.fail(c.Err)
		case scheduler.TaskDone:
			data, lost := call.tasks.Results()
			j.end(call)
			j.emit(Command{CallDone: &plan.CallOutcome{ID: call.id, Data: data, Lost: lost,
				ExecutorsLost: j.counters.ExecutorsLost, Began: call.began, Ended: now, Tasks: call.tasks.Runs()}})
		}
	}
}

// give sends a task to an executor.
func (j *Job) give(c *call, i int, id plan.ExecutorID) {
	task := &wire.RunTask{Job: string(j.cfg.ID), Call: c.id, Node: uint32(c.req.Node),
		Partition: uint32(c.tasks.Partition(i)), Args: c.req.Args[i]}
	if c.req.Holders != nil {
		task.Holders = c.req.Holders[i]
	}
	j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_RunTask{RunTask: task}})
}

func (j *Job) onTaskResult(from plan.ExecutorID, r *wire.TaskResult, now plan.Time) {
	c := plantedCall(j, j.callOf(r.Call))
	if c == nil {
		j.counters.StaleReports++
		return
	}
	useful, cmds := c.tasks.Ended(from, scheduler.TaskEnd{Partition: int(r.Partition), Data: r.Data,
		Err: r.Fault.AsError(), Rows: r.Rows, Busy: time.Duration(r.BusyNs), Spilled: r.Spilled,
		Fetched: fetchedOf(r)}, now)
	if !useful || c.givenUp {
		j.counters.StaleReports++
	}
	if j.gotOn(c, from, now); c.givenUp {
		cmds, c.since = nil, now
		j.endEmpty(c)
	}
	if j.carryOut(c, cmds, now); slices.ContainsFunc(j.open, func(o *call) bool { return o != c }) {
		j.offerTasks(now) // a slot may have become free
	}
}

// fetchedOf returns what a task has read of map outputs, by who holds them.
func fetchedOf(r *wire.TaskResult) map[plan.ExecutorID]int64 {
	if len(r.Fetched) == 0 {
		return nil
	}
	all := map[plan.ExecutorID]int64{}
	for _, f := range r.Fetched {
		all[plan.ExecutorID(f.Holder)] += max(0, f.Bytes)
	}
	return all
}

// onTaskProgress notes a task's progress.
func (j *Job) onTaskProgress(from plan.ExecutorID, p *wire.TaskProgress, now plan.Time) {
	c := j.callOf(p.Call)
	if c == nil {
		return
	}
	far := scheduler.TaskProgress{Partition: int(p.Partition), Rows: p.Rows, Moved: p.Moved,
		Busy: time.Duration(p.BusyNs)}
	any, cmds := c.tasks.Progress(from, far, now)
	if any {
		j.gotOn(c, from, now)
		c.since = now
	}
	if !c.givenUp {
		j.carryOut(c, cmds, now)
	}
}

// gotOn tells the other actions of progress on an executor, where their tasks may be queued.
func (j *Job) gotOn(but *call, from plan.ExecutorID, now plan.Time) {
	for _, c := range j.open {
		if c != but {
			c.tasks.GotOn(from, now)
		}
	}
}
