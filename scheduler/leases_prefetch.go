package scheduler

import "github.com/volley-engine/volley/internal/plan"

// prefetch has a copy of the split that a pass has ended with made where it would have ended sooner by it. It is made
// once what its lack has cost in the passes so far comes to what a copy costs, which is at most twice what who knows
// the passes to come would pay (ski rental): one short pass is not worth the bytes of a split, a thousand are.
func (l *Leases) prefetch(now plan.Time) {
	if l.last == nil {
		return
	}
	i := l.last.Split
	e, gain := l.helper()
	l.last = nil
	if e < 0 {
		return
	}
	sp := &l.s.splits[i]
	if sp.missed += gain; sp.missed > seconds(2*float64(l.tasks[i].Bytes)/l.cfg.Bandwidth) {
		sp.missed, l.s.executors[e].getting = 0, i
		l.emit(LeaseCommand{Kind: LeaseGet, Executor: l.s.executors[e].id, Get: l.get(i, e, now)})
	}
}

// helper returns which executor, and how much sooner, would have ended the pass with a copy of the split that it ended
// with; −1 is none.
func (l *Leases) helper() (helper int, most plan.Time) {
	last, rate := l.last, l.view.rates[l.last.holder]
	if rate == 0 || !l.isSettled(last.Split) {
		return -1, 0
	}
	end, others := l.ex[last.holder].done, plan.Time(0) // of the pass, of all else
	for e, x := range l.ex {
		if e != last.holder {
			others = max(others, x.done)
		}
	}
	others = max(others, end-seconds(float64(last.Rows)/rate))
	helper = -1
	for e, x := range l.ex {
		rate := l.measured(e)
		if rate == 0 || !l.canHelp(e) {
			continue
		}
		mine := max(x.done, l.start) + seconds(float64(last.Rows)/rate*float64(l.s.executors[e].slots))
		if gain := end - max(mine, others) - l.partTime(); gain > most {
			helper, most = e, gain
		}
	}
	return helper, most
}

// canHelp reports whether an executor has time for the split that a pass has ended with, and can get it.
func (l *Leases) canHelp(e int) bool {
	return e != l.last.holder && l.usable(e) && l.s.usable(e) && len(l.ex[e].queue) == 0 &&
		l.s.executors[e].getting < 0 && l.canFetch(e, l.last.Split) && !l.hasFill(e)
}
