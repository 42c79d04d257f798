package driver

import (
	"fmt"

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
	for i := range j.call.tasks {
		t := &j.call.tasks[i]
		if t.done || t.on != "" && j.prepared[t.on] {
			continue
		}
		t.on = live[(i+t.failures)%len(live)]
		if home := j.homeOf(j.call.req.Pack, i); t.failures == 0 && j.prepared[home] {
			t.on = home
		}
		j.send(t.on, &wire.ToExecutor{Body: &wire.ToExecutor_RunTask{RunTask: &wire.RunTask{
			Job: string(j.cfg.ID), Call: j.call.id, Node: uint32(j.call.req.Node), Partition: uint32(i), Args: j.call.req.Args[i]}}})
	}
}

// homeOf is the executor that holds a pack's split, if there is one.
func (j *Job) homeOf(pack, split int) plan.ExecutorID {
	if pack < 0 || pack >= len(j.packs) || split >= len(j.packs[pack].info.Rows) {
		return ""
	}
	return j.packs[pack].sched.Owner(plan.SplitID(split))
}

// lose takes back the tasks that an executor was doing.
func (c *call) lose(id plan.ExecutorID) {
	for i := range c.tasks {
		if t := &c.tasks[i]; t.on == id && !t.done {
			t.on = ""
		}
	}
}

func (j *Job) onTaskResult(from plan.ExecutorID, r *wire.TaskResult) {
	c := j.call
	if c == nil || r.Call != c.id || int(r.Partition) >= len(c.tasks) || c.tasks[r.Partition].on != from || c.tasks[r.Partition].done {
		j.counters.StaleReports++
		return
	}
	t := &c.tasks[r.Partition]
	if err := r.Fault.AsError(); err != nil {
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
	data := make([][]byte, len(j.call.tasks))
	for i, t := range j.call.tasks {
		data[i] = t.data
	}
	j.call = nil
	j.emit(Command{CallDone: data})
}
