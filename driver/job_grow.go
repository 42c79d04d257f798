package driver

import (
	"fmt"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// growth is what the plan has come to have since the job began.
type growth struct {
	before map[plan.Digest]bool     // fingerprints that the plan had
	awaits map[plan.ExecutorID]bool // who takes part and has not said that its plan has grown
	since  plan.Time
}

// onExtend tells executors of the plan as it is now: those that take part, and those that are about to.
func (j *Job) onExtend(e *plan.Extension, now plan.Time) {
	if j.growth.before == nil {
		j.growth.before = map[plan.Digest]bool{}
	}
	j.growth.before[j.cfg.Fingerprint] = true
	delete(j.growth.before, e.Fingerprint)
	j.cfg.Fingerprint, j.cfg.Sources = e.Fingerprint, e.Sources
	j.growth.awaits, j.growth.since = map[plan.ExecutorID]bool{}, now
	for id := range j.executors.All() {
		if j.executors.Present(id) {
			j.growth.awaits[id] = true
		}
		j.prepare(id)
	}
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	j.grown("")
}

// onGrown takes what an executor's plan has grown to.
func (j *Job) onGrown(from plan.ExecutorID, got plan.Digest, err error) {
	switch {
	case err != nil:
		j.fail(fault.New(fault.KindOf(err), "build a later part on", string(from), err))
	case got != j.cfg.Fingerprint:
		j.fail(fault.Newf(fault.PlanMismatch, "build a later part on", string(from), "it is %s there and %s here",
			got.Short(), j.cfg.Fingerprint.Short()).WithHint("what is built may depend on its argument only"))
	default:
		j.grown(from)
	}
}

// grown no longer waits for an executor, and answers the session once it waits for none.
func (j *Job) grown(id plan.ExecutorID) {
	if j.growth.awaits == nil {
		return
	}
	if delete(j.growth.awaits, id); len(j.growth.awaits) == 0 {
		j.growth.awaits = nil
		j.emit(Command{Extended: true})
	}
}

// growthDue fails a job whose executors do not answer in time.
func (j *Job) growthDue(now plan.Time) {
	switch {
	case j.growth.awaits == nil:
	case now >= j.growth.since+j.cfg.MaxWait:
		j.fail(fault.Newf(fault.Timeout, "wait for", fmt.Sprintf("%d executors", len(j.growth.awaits)),
			"they have not built a later part of the plan within %v", j.cfg.MaxWait))
	default:
		j.emit(Command{WakeAt: j.growth.since + j.cfg.MaxWait})
	}
}
