package audit

import (
	"bytes"
	"iter"

	"github.com/volley-engine/volley/driver"
)

// FollowOwn begins to follow the log of a path that a job of this cluster writes. What follows from a line's reports is
// recomputed, as of any log, but neither read nor compared: a page is open on it while its job runs. Other lines are
// checked, as the job is a user's program.
func FollowOwn(what, path string) *Following {
	f := Follow(what, path)
	f.own = true
	return f
}

// takeOwn takes a line of the cluster's own log, after the header.
func (f *Following) takeOwn(raw []byte, t *Told) error {
	if f.v.retelling != nil && !f.v.leftOut {
		raw = shortened(raw)
	}
	if err := f.l.take(f.number, raw, ""); err != nil {
		return err
	}
	if t.Footer = f.l.Footer; t.Footer != nil {
		return nil
	}
	t.Line = f.l.Lines[0]
	switch l, v := &t.Line, f.v; {
	case l.Resume != nil:
		v.steps = l.Resume.Step
		v.goesOn(l.Resume, l.Number)
	case l.Step != nil:
		v.ownStep(l)
	case l.Evaluation != nil:
		v.ownPass(l)
	default:
		v.line(l)
	}
	return nil
}

func (v *verifier) ownStep(l *Line) {
	r := v.reported(l.Step.LogReports, l.Number)
	if r != nil {
		l.Step = stepOf(r, l.Step)
		v.update = l.Step.Phases.Update
	}
	v.steps = l.Step.Step
	v.worked(l.Number, l.Step.C, l.Step.Phases.Compute+l.Step.Phases.Collect, r)
}

func (v *verifier) ownPass(l *Line) {
	if c := l.Evaluation.Commit; c != nil {
		v.tick.turned(l.Number, c.Loop, c.Iteration, c.Values)
	}
	r := v.reported(l.Evaluation.LogReports, l.Number)
	if r != nil {
		l.Evaluation = passOf(r, l.Evaluation)
	}
	if l.Evaluation.Work {
		v.worked(l.Number, l.Evaluation.C, l.Evaluation.TookNs, r)
	}
}

// stepOf returns a step's line as its reports give it, with what its own says that they do not.
func stepOf(r *driver.StepReport, said *driver.LogStep) *driver.LogStep {
	l := driver.StepLine(r)
	l.Iteration, l.Loop, l.Values, l.LogReports = said.Iteration, said.Loop, said.Values, said.LogReports
	l.Params, l.Phases.Update = said.Params, said.Phases.Update
	return l
}

// passOf does the same of a pass.
func passOf(r *driver.StepReport, said *driver.LogEvaluation) *driver.LogEvaluation {
	l := driver.EvaluationLine(r, said.Params)
	l.Iteration, l.Objective, l.Commit, l.LogReports = said.Iteration, said.Objective, said.Commit, said.LogReports
	return l
}

// ownMembers are the members of steps' and passes' lines that do not follow from their reports.
var ownMembers = map[string]bool{"event": true, "iteration": true, "loop": true, "values": true, "phases_ns": true,
	"objective": true, "params": true, "commit": true, "reports": true}

// shortened returns the line of a step or a pass without what follows from its reports; other lines, and those without
// reports, as they are.
func shortened(raw []byte) []byte {
	if event, err := eventOf(raw); err != nil || event != "step" && event != "evaluation" {
		return raw
	}
	short, has := []byte{'{'}, false
	for name, member := range members(raw) {
		switch {
		case string(name) == "reports_left_out":
			return raw
		case ownMembers[string(name)]:
			short, has = append(append(short, member...), ','), has || string(name) == "reports"
		}
	}
	if !has {
		return raw
	}
	short[len(short)-1] = '}'
	return short
}

// members yields the names of an object's members, and the members with their names.
func members(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, member []byte) bool) {
		var name []byte
		begin, depth := 0, 0
		for at := 0; at < len(raw); at++ {
			end := false
			switch raw[at] {
			case '{', '[':
				if depth++; depth == 1 {
					begin = at + 1
				}
			case '}', ']':
				depth--
				end = depth == 0
			case ',':
				end = depth == 1
			case '"':
				after := endOfText(raw, at)
				if depth == 1 && name == nil {
					name = bytes.Trim(raw[at:after], `"`)
				}
				at = after - 1
			}
			if end {
				if !yield(name, raw[begin:at]) {
					return
				}
				name, begin = nil, at+1
			}
		}
	}
}
