package audit

import (
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// worked is what a line of slots is held against: the last step, or pass of the method.
type worked struct {
	line   int // of the log; 0 is that there is none that has no such line
	splits int
	rows   int64
	took   int64              // ns; where its reports were left out as its phases say
	did    *driver.StepReport // nil where they were left out
}

// worked notes a step, or a pass of the method.
func (v *verifier) worked(line int, counts []int64, took int64, did *driver.StepReport) {
	v.last = worked{line: line, splits: len(counts), took: took, did: did}
	for _, n := range counts {
		v.last.rows += n
	}
	if did != nil {
		v.last.took = int64(did.Took)
	}
}

// slots checks what a line says of slots: it must be that of the last step, and what its reports say of executors.
func (v *verifier) slots(l *driver.LogSlots, line int) {
	of := v.last
	v.last.line = 0
	v.fact(of.line > 0 && l.Line == of.line, whole, v.steps, line, "it is of line %d, the last step of line %d", l.Line,
		of.line)
	if of.line == 0 {
		return
	}
	var rows int64
	names := map[string]bool{}
	for i := range l.Executors {
		e := &l.Executors[i]
		v.fact(!names[e.Executor], whole, v.steps, line, "%s is there twice", e.Executor)
		names[e.Executor] = true
		rows += e.Rows
		v.fact(possible(e, of.took), whole, v.steps, line, "%s has done more than the step lets it", e.Executor)
		for _, s := range e.Spans {
			v.fact(s[2] < int64(of.splits), whole, v.steps, line, "%s: split %d of %d", e.Executor, s[2], of.splits)
		}
	}
	v.fact(rows == of.rows, whole, v.steps, line, "executors have folded %d rows of %d", rows, of.rows)
	if of.did == nil {
		return
	}
	same := len(l.Executors) == len(of.did.Slots)
	for i := range min(len(l.Executors), len(of.did.Slots)) {
		got, want := &l.Executors[i], &of.did.Slots[i]
		same = same && got.Executor == string(want.Executor) && got.Slots == want.Slots && got.Rows == want.Rows &&
			got.Helped == want.Helped && got.BusyNs == int64(want.Busy) && got.ArrivedNs == int64(want.Arrived)
	}
	v.fact(same, derived, v.steps, line, "executors have done other than the step's reports say")
}

// possible reports whether an executor can have done what is said of it in a step of a length.
func possible(e *driver.LogSlotsOf, took int64) bool {
	ok := e.Slots >= 0 && e.Slots <= plan.MostSlots && len(e.Spans) <= plan.MostToldOf(e.Slots)
	ok = ok && e.Rows >= 0 && e.Helped >= 0 && e.Helped <= e.Rows
	ok = ok && e.BusyNs >= 0 && e.ArrivedNs >= 0 && e.ArrivedNs <= took
	slot, from := int64(0), int64(0)
	for _, s := range e.Spans {
		if s[0] > slot {
			slot, from = s[0], 0
		}
		where := s[0] == slot && slot <= int64(e.Slots) && s[1] >= 0 && s[1] < int64(plan.SpanKinds) && s[2] >= -1
		when := s[3] >= from && s[4] >= s[3] && s[4] <= took && s[5] >= 0 && s[5] <= s[4]-s[3]
		ok = ok && where && when
		from = s[3]
	}
	return ok
}
