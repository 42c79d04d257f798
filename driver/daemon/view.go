package daemon

import (
	"encoding/json"
	"math"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// JobView is a job as commands and REST show it.
type JobView struct {
	ID        string     `json:"id"`
	Job       string     `json:"job"`
	State     string     `json:"state"`
	Why       string     `json:"why,omitempty"`
	Submitted time.Time  `json:"submitted"`
	Ended     *time.Time `json:"ended,omitempty"`
	Step      uint64     `json:"step"`
	LoopView
	Restarts uint32          `json:"restarts"`
	Args     []string        `json:"args"`
	Pool     string          `json:"pool,omitempty"`
	Weight   uint32          `json:"weight,omitempty"`
	Priority int32           `json:"priority,omitempty"`
	Timeout  float64         `json:"timeout_seconds,omitempty"`
	Owner    string          `json:"owner,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// LoopView is how a job's loop stands: of one that has ended, how it stood last. What is not known is not there.
type LoopView struct {
	Iteration *uint64  `json:"iteration,omitempty"`
	Objective *float64 `json:"objective,omitempty"`
	PerSecond float64  `json:"iterations_per_second,omitempty"` // of one that runs
	Left      float64  `json:"left_seconds,omitempty"`          // about, to its limits
}

// stoodLast returns how the loop of a job stood that has ended, by its result.
func stoodLast(result string) *wire.LoopStanding {
	var r struct {
		Iterations uint64   `json:"iterations"`
		Objective  *float64 `json:"objective"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || r.Iterations == 0 {
		return nil
	}
	return &wire.LoopStanding{Iteration: r.Iterations, Objective: r.Objective}
}

// viewLoop shows how a job's loop stands.
func viewLoop(i *wire.JobInfo) (v LoopView) {
	s := i.Standing
	if s == nil { // it had ended before this driver was started
		s = stoodLast(i.Result)
	}
	if s == nil {
		return v
	}
	if v.Iteration = &s.Iteration; s.Objective != nil && !math.IsNaN(*s.Objective) && !math.IsInf(*s.Objective, 0) {
		v.Objective = s.Objective
	}
	if i.State == "running" {
		v.PerSecond, v.Left = s.PerSecond, time.Duration(s.LeftNs).Seconds()
	}
	return v
}

// ViewJob shows a job.
func ViewJob(i *wire.JobInfo) JobView {
	v := JobView{ID: i.Id, Job: i.Job, State: i.State, Why: i.Why, Submitted: time.Unix(0, i.SubmittedUnixNs),
		Step: i.Step, Restarts: i.Restarts, Args: i.Args,
		Pool: i.Pool, Weight: i.Weight, Priority: i.Priority, Timeout: time.Duration(i.TimeoutNs).Seconds(),
		Owner: i.Owner, LoopView: viewLoop(i)}
	if v.Args == nil {
		v.Args = []string{}
	}
	if i.EndedUnixNs != 0 {
		t := time.Unix(0, i.EndedUnixNs)
		v.Ended = &t
	}
	if json.Valid([]byte(i.Result)) {
		v.Result = json.RawMessage(i.Result)
	}
	return v
}

// ExecutorView is an executor as commands and REST show it.
type ExecutorView struct {
	Name          string            `json:"name"`
	State         string            `json:"state"`
	Slots         uint32            `json:"slots"`
	Splits        uint64            `json:"splits"`
	RowsPerSecond float64           `json:"rows_per_second"`
	Memory        uint64            `json:"memory"`
	Disk          uint64            `json:"disk"`
	Since         time.Time         `json:"since"`
	Version       string            `json:"version"` // of its module, and of the protocol that it speaks with the driver
	Why           string            `json:"why,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// ViewExecutor shows an executor.
func ViewExecutor(e *wire.ExecutorInfo) ExecutorView {
	return ExecutorView{Name: e.Name, State: e.State, Slots: e.Slots, Splits: e.Splits, RowsPerSecond: e.RowsPerSecond,
		Memory: e.Memory, Disk: e.Disk, Since: time.Unix(0, e.SinceUnixNs), Version: e.Version, Why: e.Why,
		Labels: e.Labels}
}
