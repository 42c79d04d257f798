package daemon

import (
	"encoding/json"
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// JobView is a job as commands and REST show it.
type JobView struct {
	ID        string          `json:"id"`
	Job       string          `json:"job"`
	State     string          `json:"state"`
	Why       string          `json:"why,omitempty"`
	Submitted time.Time       `json:"submitted"`
	Ended     *time.Time      `json:"ended,omitempty"`
	Step      uint64          `json:"step"`
	Restarts  uint32          `json:"restarts"`
	Args      []string        `json:"args"`
	Pool      string          `json:"pool,omitempty"`
	Weight    uint32          `json:"weight,omitempty"`
	Priority  int32           `json:"priority,omitempty"`
	Timeout   float64         `json:"timeout_seconds,omitempty"`
	Owner     string          `json:"owner,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// ViewJob shows a job.
func ViewJob(i *wire.JobInfo) JobView {
	v := JobView{ID: i.Id, Job: i.Job, State: i.State, Why: i.Why, Submitted: time.Unix(0, i.SubmittedUnixNs),
		Step: i.Step, Restarts: i.Restarts, Args: i.Args,
		Pool: i.Pool, Weight: i.Weight, Priority: i.Priority, Timeout: time.Duration(i.TimeoutNs).Seconds(),
		Owner: i.Owner}
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
