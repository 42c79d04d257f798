package driver

import (
	"fmt"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// LogOptions are the engine's options that affect what a step may do and what follows from
// executors' reports.
type LogOptions struct {
	Sync             string  `json:"sync"`
	Ratio            float64 `json:"ratio"`
	MinRatio         float64 `json:"min_ratio"`
	MinShare         float64 `json:"min_share"`
	MinRows          int64   `json:"min_rows"`
	MaxMissing       float64 `json:"max_missing"`
	GraceNs          int64   `json:"grace_ns"`
	StepTimeoutNs    int64   `json:"step_timeout_ns"`
	MaxWaitNs        int64   `json:"max_wait_ns"`
	GatherNs         int64   `json:"gather_ns"`
	Cursor           bool    `json:"cursor"`
	Weighting        string  `json:"weighting"`
	BatchFraction    float64 `json:"batch_fraction"`
	Exchange         string  `json:"exchange"`
	Threshold        int64   `json:"exchange_threshold"`
	Interval         int     `json:"exchange_interval"`
	Horizon          int     `json:"exchange_horizon"`
	Bandwidth        float64 `json:"exchange_bandwidth"`
	TaskFailures     int     `json:"max_task_failures"`
	ExecutorFailures int     `json:"max_executor_failures"`
	ExclusionNs      int64   `json:"exclusion_ns"`
	FewExecutors     int     `json:"few_executors"` // that are all looked at whenever leases change
	Executors        int     `json:"executors"`
	Slots            int     `json:"slots"` // of each executor; 0 where they differ
	Clock            string  `json:"clock"`
	Pace             string  `json:"pace"`
}

// weightings are the log's names for whether partial results are scaled.
var weightings = map[bool]string{true: "rows", false: "split"}

// OptionsOf returns a job's options as the log has them; the executors, the clock and the
// pace are of the cluster.
func OptionsOf(c JobConfig) LogOptions {
	c = c.EnsureDefaults()
	return LogOptions{Sync: c.Sync.Policy.String(), Ratio: c.Sync.Ratio, MinRatio: c.Sync.MinRatio,
		MinShare: max(0, c.Sync.MinShare), MinRows: c.Sync.MinRows,
		MaxMissing: max(0, c.Sync.MaxMissing), GraceNs: int64(c.Sync.Grace), StepTimeoutNs: int64(c.Sync.StepTimeout),
		MaxWaitNs: int64(c.MaxWait), GatherNs: int64(c.Gather),
		Cursor: !c.FixedCursors, Weighting: weightings[c.ByRows], BatchFraction: c.BatchFraction,
		Exchange: c.Exchange.Mode.String(), Threshold: c.Exchange.Threshold, Interval: c.Exchange.Interval,
		Horizon: c.Exchange.Horizon, Bandwidth: c.Exchange.Bandwidth,
		TaskFailures: c.Schedule.MaxTaskFailures, ExecutorFailures: c.Schedule.MaxExecutorFailures,
		ExclusionNs: int64(c.Schedule.Exclusion), FewExecutors: c.Schedule.Few,
		Executors: c.Executors}
}

// Config returns the job options that the log's stand for. A log has every option with
// its effective value, never a zero for a default.
func (o LogOptions) Config() (JobConfig, error) {
	c, err := o.config()
	if err != nil {
		return JobConfig{}, err
	}
	obeyed := OptionsOf(c)
	if obeyed.Slots, obeyed.Clock, obeyed.Pace = o.Slots, o.Clock, o.Pace; obeyed != o {
		return JobConfig{}, fmt.Errorf("they are %+v, such a job obeys %+v", o, obeyed)
	}
	return c, nil
}

func (o LogOptions) config() (JobConfig, error) {
	policy, err := abss.ParsePolicy(o.Sync)
	if err != nil {
		return JobConfig{}, err
	}
	mode, err := prioritizer.ParseMode(o.Exchange)
	if err != nil {
		return JobConfig{}, err
	}
	if o.Weighting != weightings[true] && o.Weighting != weightings[false] {
		return JobConfig{}, fmt.Errorf("%q is no weighting", o.Weighting)
	}
	c := JobConfig{Executors: o.Executors, Gather: time.Duration(o.GatherNs), MaxWait: time.Duration(o.MaxWaitNs),
		FixedCursors: !o.Cursor,
		ByRows:       o.Weighting == weightings[true], BatchFraction: o.BatchFraction,
		Sync: abss.Config{Policy: policy, Ratio: o.Ratio, MinRatio: o.MinRatio, MinShare: orNone(o.MinShare),
			MinRows: o.MinRows, MaxMissing: orNone(o.MaxMissing),
			Grace: time.Duration(o.GraceNs), StepTimeout: time.Duration(o.StepTimeoutNs)},
		Exchange: prioritizer.ExchangeConfig{Mode: mode, Threshold: o.Threshold, Interval: o.Interval,
			Horizon: o.Horizon, Bandwidth: o.Bandwidth},
		Schedule: scheduler.Config{MaxTaskFailures: o.TaskFailures, MaxExecutorFailures: o.ExecutorFailures,
			Exclusion: time.Duration(o.ExclusionNs), Few: o.FewExecutors}}
	return c, nil
}

// orNone returns a share as a configuration has it, where zero is the default and
// none is negative.
func orNone(share float64) float64 {
	if share == 0 {
		return -1
	}
	return share
}
