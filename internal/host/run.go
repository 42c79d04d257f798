package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// Program is a user's program: its arguments, and the plan that it builds of them.
type Program struct {
	Name    string
	Version string // of the engine
	Args    json.RawMessage
	Graph   *rdd.Graph
	Again   func() (executor.Program, error) // builds the plan once more, for an executor of its own
}

// Loop is what a program does with its plan: it returns what has stopped it.
type Loop func(ctx context.Context, s *rdd.Session) (stoppedBy string, err error)

// Run runs a program in the process p: on a cluster embedded in it, or in the role for which a
// cluster has started it. In a runner it does not return.
func Run(ctx context.Context, cfg Config, p wire.Process, program Program, loop Loop) (*Outcome, error) {
	cfg = cfg.ensureDefaults()
	defer cfg.limitMemory()()
	if p.Role == wire.RunnerRole {
		os.Exit(runnerMain(ctx, cfg, p, program))
	}
	var shown *page
	if cfg.UI != "" && p.Role == "" {
		var err error
		if shown, cfg, err = openPage(cfg, program); err != nil {
			return nil, err
		}
		defer shown.close()
	}
	j, err := openJob(ctx, cfg, p, program)
	if err != nil {
		return nil, err
	}
	defer j.close()
	if shown != nil {
		shown.follow(j)
	}
	s := j.session(p)
	stoppedBy, err := loop(ctx, s)
	if err == nil {
		err = s.Err() // of a loop, whether or not the program has called it
	}
	if err != nil {
		j.record.broken(ctx)
		return nil, err
	}
	if err := j.record.finish(ctx, stoppedBy); err != nil {
		return nil, err
	}
	return j.outcome(s, stoppedBy), nil
}

// session returns the session of the program's loop.
func (j *Job) session(p wire.Process) *rdd.Session {
	return rdd.NewSession(j.program.Graph, j,
		rdd.Config{OutDir: j.cfg.OutDir, Owner: ownerOf(p), Saved: noteSaved(p), Progress: j.cfg.Progress,
			Unscaled: j.unscaled,
			Slots:    j.cluster.Slots, TaskMemory: j.cfg.heldByTask(), Copies: p.Role == wire.JobRole,
			Warn: func(text string) { j.cfg.Logger.Warn(text) }})
}

// ownerOf returns a name that no other job of a cluster has; empty where there
// is no cluster to start it again.
func ownerOf(p wire.Process) string {
	if p.Role != wire.JobRole {
		return ""
	}
	return p.Job + " " + plan.DigestOf([]byte(p.Token)).Short()
}

func (j *Job) outcome(s *rdd.Session, stoppedBy string) *Outcome {
	o := &Outcome{Load: s.LoadTime(), Train: j.meter.train(), Evaluation: s.EvaluationTime(),
		Executors: j.cfg.Executors, StoppedBy: stoppedBy, Passes: j.meter.passes,
		LogDigest: j.record.log.Digest()}
	if r := j.meter.last; r != nil {
		o.Counters, o.Splits = r.Counters, len(r.Coverage)
	}
	o.Counters.ExecutorsLost = max(o.Counters.ExecutorsLost, j.meter.lost.Load())
	return o
}

// OnCluster sets what a cluster decides for a program: its output goes to its
// job's directory, it continues from its last checkpoint, and relative paths
// are resolved against the directory of submission.
func (c *Config) OnCluster(p wire.Process) error {
	if p.Role == wire.JobRole {
		c.OutDir, c.EventLog = filepath.Join(p.JobDir, "out"), filepath.Join(p.JobDir, driver.EventsName)
		c.Checkpoints, c.CheckpointEach, c.Resume = filepath.Join(p.JobDir, "checkpoints"), 1, true
	}
	if p.Dir == "" {
		return nil
	}
	if err := os.Chdir(p.Dir); err != nil && p.Role == wire.JobRole {
		return fault.New(fault.BadInput, "run in", p.Dir,
			err).WithHint("submit from a directory that the driver's machine has too")
	}
	return nil
}
