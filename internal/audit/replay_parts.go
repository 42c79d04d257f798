package audit

import (
	"bytes"
	"encoding/json"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd"
)

// part is what one process of a run has done, or several under the same arguments: a run that is resumed under others
// is replayed in parts, each from where the one before it had come to.
type part struct {
	args  json.RawMessage
	until int  // line, of those that are replayed
	over  bool // its loop had ended
}

// partsOf splits a log's lines by the arguments that they were made under.
func partsOf(l *Log) (parts []part) {
	now, lines := part{args: l.Header.Args}, 0
	for _, line := range l.Lines {
		switch {
		case line.Resume != nil && len(line.Resume.Args) > 0 && !bytes.Equal(line.Resume.Args, now.args):
			now.until, now.over = lines, line.Resume.Ended
			parts, now = append(parts, now), part{args: line.Resume.Args}
		case line.Step != nil || line.Evaluation != nil:
			lines++
		}
	}
	now.until = lines
	return append(parts, now)
}

// ArgsOf returns the arguments of each part of a run: it has one for each time that it went on under others.
func ArgsOf(l *Log) (args []json.RawMessage) {
	for _, p := range partsOf(l) {
		args = append(args, p.args)
	}
	return args
}

// Begin has the next part replayed, by a program that was built from its arguments: the first one before anything, each
// other one after the program of the part before has ended.
func (r *Replay) Begin(k int, program runner.Program, maker *rdd.Maker) error {
	if program.Fingerprint() != r.log.Header.Plan {
		return fault.Newf(fault.PlanMismatch, "replay", r.log.Path, "the log's plan is %s, this program builds %s",
			r.log.Header.Plan.Short(), program.Fingerprint().Short())
	}
	r.program, r.maker, r.part = program, maker, k
	r.current, r.passed, r.repeats = nil, nil, len(r.marks) > 0
	return nil
}

// atEnd reports whether all lines of the part have been replayed.
func (r *Replay) atEnd() bool { return r.next == r.parts[r.part].until }

// keep keeps how far a loop has come, for the part that goes on from there; not how long it took: whether a limit of
// time has ended a part is what the log says.
func (r *Replay) keep(c rdd.Commit) {
	if len(r.parts) == 1 {
		return
	}
	for len(r.marks) < c.Loop {
		r.marks = append(r.marks, rdd.LoopMark{})
	}
	r.marks[c.Loop-1] = rdd.LoopMark{Iteration: c.Iteration, Ended: c.Stopped, State: c.State()}
}

// Resume returns where the part before has left a loop. From the last loop on the log has what the program does; what a
// process repeats before that it has once.
func (r *Replay) Resume(loop int) rdd.LoopMark {
	if loop >= len(r.marks) {
		r.repeats = false
	}
	if r.part == 0 || loop > len(r.marks) {
		return rdd.LoopMark{}
	}
	return r.marks[loop-1]
}

// repeat folds all rows for a pass that the log has of the first process alone.
func (r *Replay) repeat(req plan.StepRequest) (*plan.StepOutcome, error) {
	meta := r.packs[req.Pack].Meta
	counts := make([]int64, len(meta.Splits))
	for i, s := range meta.Splits {
		counts[i] = s.Rows
	}
	return r.fold(req, counts, make([]int64, len(counts)), (*driver.LogStep)(nil))
}
