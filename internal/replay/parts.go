package replay

import (
	"bytes"
	"encoding/json"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
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
	// lastTurn is the first training pass of the last turn of its loop. A limit of time that ends it is reached in that
	// turn, which looks at its clock once, after such a pass.
	lastTurn int
}

// partsOf splits a log's lines by the arguments that they were made under.
func partsOf(l *audit.Log) (parts []part) {
	now, lines, turn := part{args: l.Header.Args}, 0, -1
	for k, line := range l.Lines {
		if line.Resume != nil && len(line.Resume.Args) > 0 && !bytes.Equal(line.Resume.Args, now.args) {
			now.until, now.over = lines, line.Resume.Ended
			parts, now, turn = append(parts, now), part{args: line.Resume.Args, lastTurn: lines}, -1
		}
		if line.Step == nil && line.Evaluation == nil {
			continue
		}
		if trains := line.Step != nil || line.Evaluation.Work; trains && turn < 0 {
			turn = lines
		}
		lines++
		if line.Step != nil && endsTurn(l.Lines[k+1:]) || line.Evaluation != nil && line.Evaluation.Commit != nil {
			now.lastTurn, turn = max(turn, now.lastTurn), -1
		}
	}
	now.until = lines
	return append(parts, now)
}

// endsTurn reports whether a step is the last pass of its turn: none that follows has the turn's end.
func endsTurn(lines []audit.Line) bool {
	for _, line := range lines {
		if line.Evaluation == nil {
			return true
		}
		if line.Evaluation.Commit != nil {
			return false
		}
	}
	return true
}

// ArgsOf returns the arguments of each part of a run: it has one for each time that it went on under others.
func ArgsOf(l *audit.Log) (args []json.RawMessage) {
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
	r.loopFrom = r.next
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
