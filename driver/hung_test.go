package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// actor is a job with an action under way, in virtual time.
type actor struct {
	t      *testing.T
	job    *Job
	now    plan.Time
	gave   []Outgoing // tasks, in order
	failed error
	done   *plan.CallOutcome

	excluded []*Exclusion
}

// reports is how often a task says how far it has come.
const reports = 250 * time.Millisecond

// actingJob is a job with n executors of one slot each, and an action of tasks.
func actingJob(t *testing.T, executors, tasks int) *actor {
	a := &actor{t: t, job: NewJob(JobConfig{ID: "job", Executors: executors}, 0)}
	for i := range executors {
		id := plan.ExecutorID(fmt.Sprint("e", i+1))
		a.step(Event{Joined: &Joined{Executor: id, Slots: 1}})
		prepared := &wire.Prepared{Job: "job", Fingerprint: make([]byte, 32)}
		a.hear(id, &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: prepared}})
	}
	a.step(Event{Call: &plan.CallRequest{Pack: -1, Args: make([][]byte, tasks)}})
	return a
}

func (a *actor) step(ev Event) {
	for _, c := range a.job.Step(ev, a.now) {
		switch {
		case c.Send != nil && c.Send.Body.GetRunTask() != nil:
			a.gave = append(a.gave, *c.Send)
		case c.Failed != nil:
			a.failed = c.Failed
		case c.Excluded != nil:
			a.excluded = append(a.excluded, c.Excluded)
		case c.CallDone != nil:
			a.done = c.CallDone
		}
	}
}

// hear hands the job what an executor has sent.
func (a *actor) hear(from plan.ExecutorID, m *wire.ToDriver) {
	a.step(Event{Message: &Message{From: from, Body: m}})
}

// hungOn reports whether the job has failed since a task hung on an executor.
func (a *actor) hungOn(what string) bool {
	why := fmt.Sprint(a.failed)
	return fault.KindOf(a.failed) == fault.Timeout && strings.Contains(why, what) && strings.Contains(why, "10m0s")
}

// report says how many rows a task has read. The machine is woken as often as tasks report.
func (a *actor) report(on plan.ExecutorID, partition uint32, rows int64) {
	a.hear(on, &wire.ToDriver{Body: &wire.ToDriver_TaskProgress{TaskProgress: &wire.TaskProgress{
		Job: "job", Call: 1, Partition: partition, Rows: rows, BusyNs: int64(a.now)}}})
}

// result ends a task well.
func (a *actor) result(on plan.ExecutorID, partition uint32) {
	a.hear(on, &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{
		Job: "job", Call: 1, Partition: partition, Data: []byte{1}, Rows: 1, BusyNs: 1}}})
}

// given is where a task has been given to, in order.
func (a *actor) given(partition uint32) (to []plan.ExecutorID) {
	for _, m := range a.gave {
		if m.Body.GetRunTask().Partition == partition {
			to = append(to, m.To)
		}
	}
	return to
}

// run lets time pass, and calls each at every report, until it is over or has been so
// long.
func (a *actor) run(long time.Duration, each func()) {
	for end := a.now + long; a.now < end && a.failed == nil && a.done == nil; {
		a.now += reports
		each()
		a.step(Event{})
	}
}

// timeout is how long a task may get on with nothing, unless told, and a little more.
const timeout = 10*time.Minute + time.Second

// TestAHungTaskIsTriedElsewhere: reports of no rows are heartbeats of its runner, not of
// the task.
func TestAHungTaskIsTriedElsewhere(t *testing.T) {
	a := actingJob(t, 2, 1)
	a.run(24*time.Hour, func() {
		a.report("e1", 0, 0)
		if len(a.given(0)) > 1 {
			a.result("e2", 0)
		}
	})
	if got := a.given(0); len(got) != 2 || got[1] != "e2" {
		t.Errorf("the task was given to %v", got)
	}
	if a.done == nil || a.now > timeout {
		t.Errorf("after %v: done is %v, failed %v", a.now, a.done != nil, a.failed)
	}
}

// TestAHungTaskIsGivenUpWhileOthersGetOn: what one task does is no progress of another.
func TestAHungTaskIsGivenUpWhileOthersGetOn(t *testing.T) {
	a := actingJob(t, 3, 2)
	rows := int64(0)
	a.run(time.Hour, func() {
		rows++
		a.report("e1", 0, 7)
		a.report("e2", 1, rows)
		if len(a.given(0)) > 1 {
			a.result("e3", 0)
			a.result("e2", 1)
		}
	})
	if got := a.given(0); len(got) != 2 || got[1] != "e3" || a.now > timeout {
		t.Errorf("the task was given to %v within %v", got, a.now)
	}
}

// TestATaskThatHangsEverywhereFailsByName: the user is told which partition, on which
// executors, for how long, and of the flag.
func TestATaskThatHangsEverywhereFailsByName(t *testing.T) {
	a := actingJob(t, 5, 6)
	for p := range uint32(6) {
		if on := a.given(p)[0]; p != 3 {
			a.result(on, p)
		}
	}
	a.run(24*time.Hour, func() {
		for _, on := range a.given(3) {
			a.report(on, 3, 0)
		}
	})
	if !a.hungOn("partition 3 on e") {
		t.Errorf("after %v it failed with %v", a.now, a.failed)
	}
}

// TestATaskThatGetsOnIsNotGivenUp, however slow it is.
func TestATaskThatGetsOnIsNotGivenUp(t *testing.T) {
	a := actingJob(t, 2, 1)
	a.run(24*time.Hour, func() { a.report("e1", 0, int64(a.now/(9*time.Minute))) })
	if len(a.given(0)) != 1 || a.failed != nil {
		t.Errorf("given to %v; failed: %v", a.given(0), a.failed)
	}
}

// TestATaskThatWaitsForItsSlotIsNotGivenUp: an executor has one task more than slots, which
// says nothing before it has begun.
func TestATaskThatWaitsForItsSlotIsNotGivenUp(t *testing.T) {
	a := actingJob(t, 1, 2)
	rows := int64(0)
	a.run(time.Hour, func() { rows++; a.report("e1", 0, rows) })
	a.result("e1", 0)
	a.result("e1", 1)
	if a.done == nil || len(a.gave) != 2 {
		t.Errorf("%d tasks were given; failed: %v", len(a.gave), a.failed)
	}
}

// TestAHungTaskKeepsItsSlot: a function that hangs cannot be ended, so that its executor has
// room for one task less until it answers.
func TestAHungTaskKeepsItsSlot(t *testing.T) {
	a := actingJob(t, 2, 5)
	given := len(a.gave)
	a.run(11*time.Minute, func() {
		for p := range uint32(5) {
			for _, on := range a.given(p) {
				rows := int64(a.now)
				if on == "e1" && p == 0 {
					rows = 0
				}
				a.report(on, p, rows)
			}
		}
	})
	late := 0
	for _, m := range a.gave[given:] {
		if m.To == "e1" {
			late++
		}
	}
	if late > 0 {
		t.Errorf("%d tasks more are given to an executor whose slot is taken", late)
	}
	a.result("e1", 0) // at last: it counts if nobody was faster
	if a.failed != nil {
		t.Error(a.failed)
	}
}

// TestAHungTaskFailsByNameWhereThereIsNobodyElse: on its own executor it is not tried again,
// behind itself.
func TestAHungTaskFailsByNameWhereThereIsNobodyElse(t *testing.T) {
	a := actingJob(t, 1, 1)
	a.run(24*time.Hour, func() { a.report("e1", 0, 5) })
	if len(a.gave) != 1 || !a.hungOn("partition 0 on e1") || a.now > 2*timeout {
		t.Errorf("after %v and %d attempts it failed with %v", a.now, len(a.gave), a.failed)
	}
}

// TestNothingWaitsForAHomeThatHangs: tasks go where their input is, unless all slots there
// have been given up. Before, those that nobody had begun waited for them until the action
// was given up.
func TestNothingWaitsForAHomeThatHangs(t *testing.T) {
	const tasks = 5
	a := actingJob(t, 2, 0)
	a.done, a.gave = nil, nil
	a.step(Event{Call: &plan.CallRequest{Pack: -1, Prefer: "e1", Args: make([][]byte, tasks)}})
	call := a.gave[0].Body.GetRunTask().Call
	a.run(time.Hour, func() {
		for p := range uint32(tasks) {
			if given := a.given(p); len(given) > 0 && given[len(given)-1] == "e2" {
				a.hear("e2", &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{
					Job: "job", Call: call, Partition: p, Data: []byte{1}, Rows: 1, BusyNs: 1}}})
			}
		}
	})
	if a.done == nil || a.failed != nil || a.now > 2*timeout {
		t.Errorf("after %v: done is %v, failed %v", a.now, a.done != nil, a.failed)
	}
}
