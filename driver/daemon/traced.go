package daemon

import (
	"time"

	"github.com/volley-engine/volley/internal/traces"
	"github.com/volley-engine/volley/internal/wire"
)

// What a collector of traces is told.

// traced returns the job as its trace names it.
func (w *jobHandle) traced() traces.Job {
	info, _ := w.snapshot()
	return traces.Job{ID: info.Id, Submitted: time.Unix(0, info.SubmittedUnixNs), Kind: info.Job, Owner: info.Owner}
}

// trace tells the collector of a step, if there is one.
func (w *jobHandle) trace(c *wire.Commit) {
	if w.d.traces != nil {
		w.d.traces.Step(w.traced(), tracedStep(c))
	}
}

// tracedStep returns a step that was committed as a trace has it.
func tracedStep(c *wire.Commit) traces.Step {
	return traces.Step{Number: c.Step, Epoch: c.Epoch, Took: time.Duration(c.TookNs), Waited: time.Duration(c.WaitNs),
		Share: c.Share, Rows: c.Rows, Bytes: c.Bytes, Cut: c.Cut}
}

// tracedEnd returns how a job has ended as a trace has it.
func tracedEnd(c *JobShown) traces.End {
	return traces.End{At: time.Unix(0, c.Ended), State: c.State, Why: c.Why, Failed: c.State == JobFailed,
		Steps: c.Step, Restarts: c.Restarts}
}
