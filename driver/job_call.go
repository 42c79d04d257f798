package driver

import (
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
}

func (j *Job) onCall(req *plan.CallRequest, now plan.Time) {
	j.calls++
	cfg := scheduler.TaskConfig{MaxFailures: j.cfg.Schedule.MaxTaskFailures, Timeout: j.cfg.TaskTimeout,
		MaxWait: j.cfg.MaxWait}
	of := scheduler.TaskRequest{Tasks: len(req.Args), Partitions: req.Partitions,
		Prefer: req.Prefer, Holders: req.Holders, Avoid: req.Avoid}
	if req.Pack >= 0 && req.Pack < len(j.packs) {
		of.Splits = j.packs[req.Pack].sched
	}
	j.call = &call{id: j.calls, req: req, tasks: scheduler.NewTasks(cfg, of, j.executors)}
	j.carryOut(j.call.tasks.Begin(now))
}

// Slots returns the number of slots of the executors that take part.
func (j *Job) Slots() int { return j.executors.Slots() }

// offerTasks assigns pending tasks, after executors have joined or left.
func (j *Job) offerTasks(now plan.Time) {
	if j.call != nil {
		j.carryOut(j.call.tasks.Offer(now))
	}
}

// carryOut carries out the scheduler's commands for a call's tasks.
func (j *Job) carryOut(cmds []scheduler.TaskCommand) {
	for _, c := range cmds {
		switch c.Kind {
		case scheduler.TaskGive:
			if c.Copy {
				j.counters.Speculated++
			}
			j.give(c.Task, c.Executor)
		case scheduler.TaskWake:
			j.emit(Command{WakeAt: c.At})
		case scheduler.TaskAbort:
			j.fail(c.Err)
		case scheduler.TaskDone:
			data, lost := j.call.tasks.Results()
			j.call = nil
			j.emit(Command{CallDone: &plan.CallOutcome{Data: data, Lost: lost,
				ExecutorsLost: j.counters.ExecutorsLost}})
		}
	}
}

// give sends a task to an executor.
func (j *Job) give(i int, id plan.ExecutorID) {
	c := j.call
	task := &wire.RunTask{Job: string(j.cfg.ID), Call: c.id, Node: uint32(c.req.Node),
		Partition: uint32(c.tasks.Partition(i)), Args: c.req.Args[i]}
	if c.req.Holders != nil {
		task.Holders = c.req.Holders[i]
	}
	j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_RunTask{RunTask: task}})
}

func (j *Job) onTaskResult(from plan.ExecutorID, r *wire.TaskResult, now plan.Time) {
	if j.call == nil || !plantedCall(r.Call == j.call.id) {
		j.counters.StaleReports++
		return
	}
	useful, cmds := j.call.tasks.Ended(from, scheduler.TaskEnd{Partition: int(r.Partition), Data: r.Data,
		Err: r.Fault.AsError(), Rows: r.Rows, Busy: time.Duration(r.BusyNs)}, now)
	if !useful {
		j.counters.StaleReports++
	}
	j.carryOut(cmds)
}

// onTaskProgress notes a task's progress.
func (j *Job) onTaskProgress(from plan.ExecutorID, p *wire.TaskProgress, now plan.Time) {
	if j.call == nil || p.Call != j.call.id {
		return
	}
	far := scheduler.TaskProgress{Partition: int(p.Partition), Rows: p.Rows, Moved: p.Moved,
		Busy: time.Duration(p.BusyNs)}
	j.carryOut(j.call.tasks.Progress(from, far, now))
}
