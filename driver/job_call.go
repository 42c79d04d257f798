package driver

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// call is an action in progress: one task a partition.
type call struct {
	id    uint64
	req   *CallRequest
	since plan.Time
	tasks []callTask
	left  int
}

type callTask struct {
	on       plan.ExecutorID // empty: waits for an executor
	failures int
	done     bool
	data     []byte
	lost     error
}

func (j *Job) onCall(req *CallRequest, now plan.Time) {
	j.calls++
	j.call = &call{id: j.calls, req: req, since: now, tasks: make([]callTask, len(req.Args)), left: len(req.Args)}
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	j.retryCall()
	j.finishCall()
}

// retryCall hands tasks without a live executor to one.
func (j *Job) retryCall() {
	if j.call == nil || j.ready() == 0 {
		return
	}
	var live []plan.ExecutorID
	for _, id := range j.order {
		if j.prepared[id] {
			live = append(live, id)
		}
	}
	req := j.call.req
	for i := range j.call.tasks {
		t := &j.call.tasks[i]
		if t.done || t.on != "" && j.prepared[t.on] {
			continue
		}
		t.on = live[(i+t.failures)%len(live)]
		if home := cmp.Or(req.Prefer, j.homeOf(req.Pack, req.partition(i))); t.failures == 0 && j.prepared[home] {
			t.on = home
		}
		task := &wire.RunTask{Job: string(j.cfg.ID), Call: j.call.id, Node: uint32(req.Node), Partition: uint32(req.partition(i)), Args: req.Args[i]}
		if req.Holders != nil {
			task.Holders = req.Holders[i]
		}
		j.send(t.on, &wire.ToExecutor{Body: &wire.ToExecutor_RunTask{RunTask: task}})
	}
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
	for i := range c.tasks {
		if t := &c.tasks[i]; t.on == id && !t.done {
			t.on = ""
		}
	}
}

func (j *Job) onTaskResult(from plan.ExecutorID, r *wire.TaskResult, now plan.Time) {
	c := j.call
	i := -1
	if c != nil && r.Call == c.id {
		i = c.req.task(int(r.Partition))
	}
	if i < 0 || c.tasks[i].on != from || c.tasks[i].done {
		j.counters.StaleReports++
		return
	}
	t := &c.tasks[i]
	c.since = now // whoever gets on need not hurry
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	if err := r.Fault.AsError(); fault.KindOf(err) == fault.LostInput {
		t.lost = err
	} else if err != nil {
		t.failures++
		if !fault.Policy(fault.KindOf(err)).Retry || t.failures >= j.cfg.Schedule.MaxTaskFailures {
			j.fail(fault.New(fault.KindOf(err), "run", fmt.Sprintf("partition %d on %s", r.Partition, from), err))
			return
		}
		t.on = ""
		j.retryCall()
		return
	}
	t.done, t.data = true, r.Data
	c.left--
	j.finishCall()
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
