package host

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/rdd"
)

// record is the event log of a job, with the lines that wait for what is not known yet: a step for the
// digest that its commit brings, a pass for its objective.
type record struct {
	log       *driver.EventLog
	header    driver.LogHeader
	begun     bool // the header is in the log
	continued bool // the log is that of the run resumed
	repeats   bool // the passes that the log has are made again, until the loop that the checkpoint is of goes on
	pending   *driver.LogStep
	did       *did        // in that step
	turned    *rdd.Commit // of that step; nil where it has none
	passes    []pass
	slots     sampled
	tables    sampled
	loop      int               // of the last line of tables
	unlogged  driver.LogReports // of passes that have no line

	actions sync.Mutex // actions run side by side, and beside steps
	nodes   int        // of the plan that are in the log
	early   []any      // lines that wait for the header, which is that of the first pack where there may be one
}

// pass is the line of a pass, what was done in it where it is one of the method, and the commit of the iteration that
// it is the last of.
type pass struct {
	*driver.LogEvaluation
	did    *did
	commit rdd.Commit
}

// openRecord continues the log of the run that is resumed, where it has the lines up to its
// checkpoint, or begins one.
func openRecord(cfg Config, resumed *checkpoint) (r *record, err error) {
	r = &record{}
	if resumed != nil {
		r.log, r.continued = driver.ContinueEventLog(cfg.EventLog, resumed.Log)
	}
	if r.begun = r.continued; r.continued {
		r.repeats = len(resumed.Loops) > 0
		return r, nil
	}
	if cfg.Resume {
		if err := keepOldLog(cfg.EventLog); err != nil {
			return nil, fault.New(fault.NoResources, "keep", cfg.EventLog, err)
		}
	}
	r.log, err = driver.CreateEventLog(cfg.EventLog)
	return r, err
}

// header returns the log's first line.
func (j *Job) header(job driver.JobConfig) driver.LogHeader {
	return driver.LogHeader{Event: "header", Version: driver.LogVersion, Job: j.program.Name, Plan: job.Fingerprint,
		Args: j.program.Args, Options: j.options(job),
		Machine: driver.LogMachine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Kernels: kernel.Path()},
		Versions: driver.LogVersions{Volley: j.program.Version, Go: runtime.Version(), Wire: version.Newest}}
}

// options returns the job's options, in the form of the log.
func (j *Job) options(job driver.JobConfig) driver.LogOptions {
	if j.remote != nil {
		job.Executors, job.Gather = j.remote.executors, j.remote.gather
	}
	o := driver.OptionsOf(job)
	if o.Clock = "real"; j.cfg.Virtual {
		o.Clock = "virtual"
	}
	if j.remote == nil {
		o.Slots = j.cfg.Slots
	}
	if j.cfg.Pace != nil {
		o.Pace = j.cfg.Pace.Text()
	}
	return o
}

// pack writes the line of an opened pack; the header describes the first. A continued log has
// the lines of the packs opened before.
func (r *record) pack(number int, info *driver.PackInfo, before bool) {
	switch {
	case number == 0 && !r.begun:
		h := r.header
		h.N, h.Weights, h.Entries, h.Splits = info.Rows, info.Weights, info.Entries, info.SHA256
		r.begin(&h)
	case number > 0 && !(r.continued && before):
		r.log.Write(&driver.LogPack{Event: "pack", Pack: number, N: info.Rows, Weights: info.Weights,
			Entries: info.Entries, Splits: info.SHA256})
	}
}

// resume writes the resumed run's progress in a pack.
func (r *record) resume(at *driver.Restored, ended bool) {
	line := &driver.LogResume{Event: "resume", Pack: at.Pack, Step: at.Steps, Options: r.header.Options,
		Args: r.header.Args, Ended: ended}
	for _, a := range at.Entries {
		line.Cursor = append(line.Cursor, a.Cursor)
		line.Merged = append(line.Merged, a.Merged)
	}
	r.log.Write(line)
}

// step notes a step or a pass.
func (r *record) step(s *driver.StepReport, params plan.Digest, train bool) {
	if train {
		r.flush()
		r.pending = driver.StepLine(s)
		r.pending.Params, r.pending.LogReports, r.did, r.turned = params, r.reportsOf(s), didIn(s), nil
		return
	}
	reports := r.reportsOf(s)
	if r.repeats {
		r.unlogged = reports
		return
	}
	line := driver.EvaluationLine(s, params)
	line.LogReports = reports
	r.passes = append(r.passes, pass{LogEvaluation: line, did: didIn(s)})
}

// goesOn notes that the program goes on in the loop of the checkpoint: what it does from now on is not in the log.
func (r *record) goesOn() { r.repeats = false }

// reportsOf returns the reports of a step, and of the passes before it that have no line.
func (r *record) reportsOf(s *driver.StepReport) driver.LogReports {
	out := driver.LogReports{Reports: append(r.unlogged.Reports, s.Reports...), LeftOut: r.unlogged.LeftOut || !s.Kept}
	if r.unlogged = (driver.LogReports{}); out.LeftOut {
		out.Reports = nil
	}
	return out
}

// commit completes the line of the step that waits for it, and reports whether there is one.
func (r *record) commit(c rdd.Commit, update time.Duration) bool {
	if n := len(r.passes); n > 0 && !r.repeats {
		r.passes[n-1].Commit = &driver.LogCommit{Loop: c.Loop, Iteration: c.Iteration, Values: c.Values,
			Params: c.Digest}
		r.passes[n-1].commit = c
	}
	if r.pending == nil && len(r.passes) == 0 && !r.repeats {
		r.turn(c)
		r.used(r.write(&driver.LogIteration{Event: "iteration", Loop: c.Loop, Iteration: c.Iteration,
			TookNs: int64(c.Took), Values: c.Values, Params: c.Digest}), c)
	}
	if r.pending == nil {
		return false
	}
	r.turned = &c
	r.pending.Iteration, r.pending.Params, r.pending.Values = c.Iteration, c.Digest, c.Values
	if c.Loop > 1 {
		r.pending.Loop = c.Loop
	}
	r.pending.Phases.Update = int64(update)
	return true
}

// evaluated adds the objective to the line of the pass that found it.
func (r *record) evaluated(ev rdd.Evaluation) {
	if n := len(r.passes); n > 0 {
		r.passes[n-1].Iteration, r.passes[n-1].Objective = ev.Iteration, &ev.Objective
	}
}

// flush writes the lines that wait, in the order in which the program ran
// them: a step, whose digest its commit has brought, then the passes after it.
func (r *record) flush() {
	if r.pending != nil {
		if r.turned != nil {
			r.turn(*r.turned)
		}
		r.tell(r.write(r.pending), r.did)
		r.pending, r.did, r.turned = nil, nil, nil
	}
	for _, p := range r.passes {
		if p.Commit != nil {
			r.turn(p.commit)
		}
		line := r.write(p.LogEvaluation)
		r.tell(line, p.did)
		r.used(line, p.commit)
	}
	r.passes = nil
}

// write writes a line, and returns its number.
func (r *record) write(line any) int {
	r.log.Write(line)
	return r.log.Lines()
}

// broken ends the log of a run that has failed, which has no last line; of one that was interrupted it has.
func (r *record) broken(ctx context.Context) {
	if ctx.Err() != nil && r.begun {
		_ = r.finish(context.WithoutCancel(ctx), "interrupted") // the run's own error is told
		return
	}
	r.log.Close()
}

// finish writes the last line. The header of a job that has opened no pack has no splits.
func (r *record) finish(ctx context.Context, stoppedBy string) error {
	if !r.begun {
		r.begin(&r.header)
	}
	r.flush()
	r.slots.last(r.log)
	r.tables.last(r.log)
	return r.log.Finish(ctx, stoppedBy)
}
