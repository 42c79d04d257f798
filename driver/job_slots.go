package driver

import (
	"slices"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// ExecutorSlots is what the slots of an executor did in a step. Nothing is decided by it.
type ExecutorSlots struct {
	Executor plan.ExecutorID
	Slots    int
	Rows     int64           // of what was merged
	Helped   int64           // of these, rows of splits that others own
	Busy     plan.Time       // folding them, per slot
	Arrived  plan.Time       // when its last result was here, since the step began
	Spans    []plan.SlotSpan // since the step began
}

// did takes what an executor's slots did for a result of the step, be it merged or not. Clocks of executors are their
// own: how long the run took is known, and how long its messages were on their way in all. That is shared evenly
// between work and result.
func (j *Job) did(from plan.ExecutorID, r *wire.Result, now plan.Time) {
	s, took := j.step, min(plan.Time(r.TookNs), now-j.step.began)
	if took <= 0 {
		return
	}
	sent := s.began
	for _, at := range s.sent[from] {
		if at+took <= now {
			sent = max(sent, at)
		}
	}
	began := sent + max(0, now-sent-took)/2
	slots := j.executors.SlotsOf(from)
	all := append(s.spans[from], plan.SlotSpan{Kind: plan.Carrying, Split: -1, From: sent - s.began,
		To: began - s.began}, plan.SlotSpan{Kind: plan.Carrying, Split: -1, From: began + took - s.began,
		To: now - s.began})
	for _, p := range r.Spans {
		at, to := plan.Time(p.FromNs), min(plan.Time(p.ToNs), took)
		worked := min(plan.Time(p.WorkedNs), to-at)
		if int(p.Slot) > slots || p.Kind >= uint32(plan.Carrying) || p.Split < -1 ||
			int(p.Split) >= len(s.coverage) || at < 0 || at > to || worked < 0 { // beyond what an int64 has, too
			continue
		}
		all = append(all, plan.SlotSpan{Slot: int(p.Slot), Kind: plan.SpanKind(p.Kind), Split: plan.SplitID(p.Split),
			From: began + at - s.began, To: began + to - s.began, Worked: worked})
	}
	s.spans[from] = all[:min(len(all), plan.MostToldOf(slots))]
}

// slotsOf returns what the slots of a pack's executors did in a step.
func (j *Job) slotsOf(p *pack, s *step) (all []ExecutorSlots) {
	for _, id := range p.sched.Executors() {
		slots := j.executors.SlotsOf(id)
		spans := slices.DeleteFunc(s.spans[id], func(p plan.SlotSpan) bool { // it has joined again with fewer
			return p.Slot > slots
		})
		spans = spans[:min(len(spans), plan.MostToldOf(slots))]
		slices.SortStableFunc(spans, func(a, b plan.SlotSpan) int {
			if a.Slot != b.Slot {
				return a.Slot - b.Slot
			}
			return int(a.From - b.From)
		})
		all = append(all, ExecutorSlots{Executor: id, Slots: slots, Rows: s.rows[id],
			Helped: s.helped[id], Busy: s.busy[id], Arrived: s.arrived[id], Spans: spans})
	}
	return all
}
