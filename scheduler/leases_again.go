package scheduler

import "github.com/volley-engine/volley/internal/plan"

// again returns a piece leased to another executor that this idle one will have
// folded sooner; or whose lease has expired.
func (l *Leases) again(e int, now plan.Time) int {
	best, most := -1, plan.Time(0)
	for _, list := range [][]int{l.view.own[e], l.view.copies[e]} {
		for _, i := range list {
			if l.undone[i] == 0 || !l.holds(e, i) {
				continue
			}
			for k := range l.parts[i] {
				p := &l.pieces[l.first[i]+k]
				if p.rows == 0 || p.by != nil || len(p.leases) == 0 || l.has(e, p) {
					continue
				}
				if gain := l.gain(e, p, now); gain > most {
					best, most = l.first[i]+k, gain
				}
			}
		}
	}
	return best
}

func (l *Leases) has(e int, p *piece) bool {
	for _, lease := range p.leases {
		if lease.holder == e {
			return true
		}
	}
	return false
}

// overdue is what part of the time that a piece has taken it is taken to need still, however soon it was to be done:
// what has taken long may be on an executor that has become slow.
const overdue = 2

// gain returns how much sooner an idle executor would have folded a piece than
// its present holders, less a margin of a quarter; 0 where no speed is known.
func (l *Leases) gain(e int, p *piece, now plan.Time) plan.Time {
	soonest := never
	for _, lease := range p.leases {
		if o := lease.holder; !l.silent(o, now) {
			soonest = min(soonest, max(l.done(lease)-now, plantedOverdue((now-l.ex[o].sign)/overdue)))
		}
	}
	mine := l.view.rates[e]
	if mine == 0 && soonest < never {
		return 0
	} else if mine == 0 {
		return never
	}
	return soonest - seconds(1.25*float64(p.rows)/mine*float64(l.s.executors[e].slots)) - l.partTime()
}

// done returns when an executor will have folded a lease of its queue.
func (l *Leases) done(lease *Lease) plan.Time {
	x, rate := l.ex[lease.holder], l.view.rates[lease.holder]
	if rate == 0 {
		return 0
	}
	var before int64
	for _, o := range x.queue {
		before += o.Rows
		if o == lease {
			break
		}
	}
	slots := float64(l.s.executors[lease.holder].slots)
	return x.sign + seconds(max(float64(before)/rate, float64(lease.Rows)/rate*slots))
}
