package scheduler

import (
	"cmp"
	"slices"

	"github.com/volley-engine/volley/internal/plan"
)

// aheadPerSlot is how many pieces a slot has at the least while there are some:
// one in hand and one ahead.
const aheadPerSlot = 2

// grantAll gives pieces to every executor that is short of them. As with guided
// loop scheduling a grant is half an executor's share of what is left, and in
// the end one piece for each slot.
func (l *Leases) grantAll(now plan.Time) {
	for e := range l.ex {
		l.grantTo(e, now)
	}
}

func (l *Leases) grantTo(e int, now plan.Time) {
	want := l.target(e)
	if !l.usable(e) || len(l.ex[e].queue) > want/2 {
		return
	}
	var got []*Lease
	for len(l.ex[e].queue) < want {
		k := l.choose(e, now)
		if k < 0 {
			break
		}
		got = append(got, l.grant(e, k, now))
	}
	if len(got) > 0 {
		l.emit(LeaseCommand{Kind: LeaseGrant, Executor: l.s.executors[e].id, Epoch: l.ex[e].epoch, Leases: got})
	}
}

// target returns how many pieces an executor should have to fold.
func (l *Leases) target(e int) int {
	share := 0.0
	if l.view.sum > 0 {
		share = l.view.rates[e] / l.view.sum
	} else {
		for o := range l.ex {
			if l.usable(o) {
				share++
			}
		}
		share = 1 / max(1, share)
	}
	return max(aheadPerSlot*l.s.executors[e].slots, int(share*float64(l.open)/2))
}

// grant gives one piece to an executor.
func (l *Leases) grant(e, k int, now plan.Time) *Lease {
	x, p := l.ex[e], &l.pieces[k]
	if x.epoch == 0 {
		x.epoch = l.s.NextEpoch()
		l.emit(LeaseCommand{Kind: LeaseStart, Executor: l.s.executors[e].id, Epoch: x.epoch})
	}
	lease := &Lease{ID: uint32(len(l.all) + 1), Split: p.split, Part: p.index, Rows: p.rows, piece: k, holder: e}
	l.all = append(l.all, lease)
	if len(p.leases) == 0 {
		l.open--
		l.rows -= p.rows
	}
	p.leases = append(p.leases, lease)
	if len(x.queue) == 0 {
		x.sign = now
	}
	x.queue, x.queued, x.largest = append(x.queue, lease), x.queued+p.rows, max(x.largest, p.rows)
	return lease
}

// choose returns the piece that an executor should fold next: of its own splits,
// from the front; else, of others' splits that it holds, from the back of the
// one whose owner has most work left; else a piece leased to another executor
// that will finish it later than this one would. −1 is none.
func (l *Leases) choose(e int, now plan.Time) int {
	own, x := l.view.own[e], l.ex[e]
	passed := true // nothing before this index is open
	for at := x.ownAt; at < len(own); at++ {
		k := l.openPiece(own[at], 1)
		if k >= 0 && l.holds(e, own[at]) {
			if len(x.queue) >= l.s.executors[e].slots && l.leftToOthers(e, own[at], k) {
				break
			}
			return k
		}
		if passed = passed && k < 0; passed {
			x.ownAt = at + 1
		}
	}
	best, most := -1, plan.Time(-1)
	for _, i := range l.view.copies[e] {
		if l.undone[i] == 0 {
			continue
		}
		t := l.remainingOf(i)
		if t <= most || !l.holds(e, i) || l.reserved(e, i, now) || !l.worthMoving(t, now) {
			continue
		}
		if k := l.openPiece(i, -1); k >= 0 && !l.leftToOthers(e, i, k) {
			best, most = k, t
		}
	}
	if best >= 0 || len(x.queue) >= l.s.executors[e].slots {
		return best
	}
	return l.again(e, now)
}

// reserved reports whether what is open of a split is for its owner to begin with, whose slots have nothing yet. That
// it was slow before does not tell that it is, and where a split is one piece there is nothing else for it.
func (l *Leases) reserved(e, i int, now plan.Time) bool {
	o := l.s.splits[i].owner
	if o < 0 || o == e || !l.usable(o) || l.silent(o, now) || !l.holds(o, i) {
		return false
	}
	free, open := l.s.executors[o].slots-len(l.ex[o].queue), 0
	for _, own := range l.view.own[o] {
		if open > free || free <= 0 {
			return false
		}
		open += l.openUpTo(own, free+1-open)
	}
	return open <= free
}

// openUpTo returns how many pieces of a split have no lease, up to a number.
func (l *Leases) openUpTo(i, most int) (n int) {
	for k := 0; k < l.parts[i] && n < most; k++ {
		if p := &l.pieces[l.first[i]+k]; p.rows > 0 && p.by == nil && len(p.leases) == 0 {
			n++
		}
	}
	return n
}

// remainingOf returns how long a split's owner has work left.
func (l *Leases) remainingOf(i int) plan.Time {
	o := l.s.splits[i].owner
	if o < 0 || o >= len(l.view.remaining) || !l.holds(o, i) {
		return never // no executor that holds it folds it
	}
	if l.view.remaining[o] < 0 {
		l.view.remaining[o] = l.remaining(o, l.view.now)
	}
	return l.view.remaining[o]
}

// holds reports whether an executor can fold a split: it has a copy. One that has failed
// with it qualifies where all have; one that drains, where no other holds it.
func (l *Leases) holds(e, i int) bool {
	sp := &l.s.splits[i]
	if !sp.holders[e] {
		return false
	}
	failed, out := l.failed(e, i), !l.s.usable(e)
	if !failed && !out {
		return true
	}
	for o := range l.ex {
		if o == e || !l.usable(o) || l.failed(o, i) {
			continue
		}
		if failed || sp.holders[o] && l.s.usable(o) {
			return false
		}
	}
	return true
}

// failed reports whether an executor has failed with a split in this pass.
func (l *Leases) failed(e, i int) bool { return len(l.ex[e].failures) > 0 && l.ex[e].failures[i] }

// openPiece returns the first piece of a split without a lease, from the front
// or the back; −1 is none.
func (l *Leases) openPiece(i, step int) int {
	k, n := 0, l.parts[i]
	if step < 0 {
		k = n - 1
	}
	if l.undone[i] == 0 {
		return -1
	}
	for ; k >= 0 && k < n; k += step {
		if p := &l.pieces[l.first[i]+k]; p.rows > 0 && p.by == nil && len(p.leases) == 0 {
			return l.first[i] + k
		}
	}
	return -1
}

// leftToOthers reports whether an executor should leave a piece to others: another
// one that holds its split will have folded it sooner, and all of them what else
// is open.
func (l *Leases) leftToOthers(e, i, k int) bool {
	if l.view.rates[e] == 0 {
		return false
	}
	mine := l.finish(e, k)
	if !l.sooner(e, i, k, mine) {
		return false
	}
	rows, rate := l.rows, 0.0
	for o := range l.ex {
		if l.answers(e, o) {
			rows += l.ex[o].queued
			rate += l.view.rates[o]
		}
	}
	return float64(rows)/rate < mine
}

// sooner reports whether another executor that holds a split would have folded a piece of it before a time.
func (l *Leases) sooner(e, i, k int, mine float64) bool {
	for o := range l.s.splits[i].holders {
		if o < len(l.ex) && l.answers(e, o) && l.finish(o, k) < mine && l.holds(o, i) {
			return true
		}
	}
	return false
}

// answers reports whether an executor is another than e that may be given work: no step depends on one that does not
// answer.
func (l *Leases) answers(e, o int) bool { return o != e && l.usable(o) && !l.silent(o, l.view.now) }

// finish returns the seconds in which an executor would have folded a piece.
func (l *Leases) finish(e, k int) float64 {
	return (float64(l.ex[e].queued) + float64(l.pieces[k].rows)*float64(l.s.executors[e].slots)) / l.view.rates[e]
}

// leastCopies is how many copies of others' splits an executor may fetch for leases at the least, however few splits it
// owns; up to some bytes it may fetch any number. Where speeds change from pass to pass it is those who were fast
// before that are slow now, and their splits have to be where there is time.
//
// mostCopies is beyond how many copies in all executors none fetches more than that: they are looked through whenever
// one arrives.
const (
	leastCopies = 8
	mostCopies  = 4096
)

// prospects are the splits with pieces left, as executors without work see them at one moment.
type prospects struct {
	settled  []prospect // with an owner, and not moving: of the owner with most work left first
	unheld   []int      // of the others, those that are forsaken
	forsaken []int      // of all, those that are; looked up when the first executor with enough copies asks
	looked   bool
	helpers  []int // by owner: executors that fetch a split of its
}

// prospect is a split, and how long its owner has work left.
type prospect struct {
	left  plan.Time
	split int
}

// getMore makes idle executors fetch a split, one at a time, of an owner with more work
// left than the transfer takes. One that has its fill of copies fetches only splits without
// an answering holder.
func (l *Leases) getMore(now plan.Time) {
	l.due = never
	var p *prospects
	for e := range l.ex {
		if !l.idle(e, now) {
			continue
		}
		if p == nil {
			p = l.prospects(now)
		}
		enough := l.hasFill(e)
		if i := l.worthGetting(p, e, enough, now); i >= 0 {
			l.s.executors[e].getting, l.awaited[i].since, l.awaited[i].asked = i, now, true
			l.emit(LeaseCommand{Kind: LeaseGet, Executor: l.s.executors[e].id, Get: l.get(i, e, now)})
			p.asked(i)
			p.helped(l, i)
		}
	}
}

// hasFill reports whether an executor has as many copies of others' splits as it may fetch.
func (l *Leases) hasFill(e int) bool {
	copies := l.view.copies[e]
	switch {
	case len(copies) < max(leastCopies, len(l.view.own[e])):
		return false
	case len(copies) >= mostCopies/len(l.ex):
		return true
	}
	var bytes int64
	for _, i := range copies {
		bytes += l.tasks[i].Bytes
	}
	return bytes >= l.cfg.CopyBytes
}

// idle reports whether an executor has nothing left of its own and can fetch a split.
func (l *Leases) idle(e int, now plan.Time) bool {
	x := l.ex[e]
	return l.usable(e) && l.s.usable(e) && l.s.executors[e].getting < 0 && now >= x.rested &&
		len(x.queue) <= l.s.executors[e].slots && x.ownAt >= len(l.view.own[e])
}

// prospects returns the splits that executors without work may fetch.
func (l *Leases) prospects(now plan.Time) *prospects {
	p, least := &prospects{helpers: make([]int, len(l.ex))}, l.leastOfAll()
	for _, x := range l.s.executors {
		if x.alive && x.getting >= 0 {
			p.helped(l, x.getting)
		}
	}
	for i := range l.tasks {
		switch {
		case l.undone[i] == 0:
		case l.isSettled(i):
			if left := l.remainingOf(i); left > least {
				p.settled = append(p.settled, prospect{left, i})
			}
		case l.forsaken(i, now):
			p.unheld = append(p.unheld, i)
		}
	}
	slices.SortFunc(p.settled, func(a, b prospect) int {
		return cmp.Or(cmp.Compare(b.left, a.left), cmp.Compare(l.undone[b.split], l.undone[a.split]),
			cmp.Compare(a.split, b.split))
	})
	return p
}

func (l *Leases) isSettled(i int) bool { return l.s.splits[i].owner >= 0 && l.s.splits[i].next < 0 }

// allForsaken returns also the forsaken among the splits that have an owner.
func (l *Leases) allForsaken(p *prospects, now plan.Time) []int {
	if !p.looked {
		p.looked, p.forsaken = true, slices.Clone(p.unheld)
		for _, o := range p.settled {
			if o.left < never {
				break // the owners of the rest answer
			}
			if l.forsaken(o.split, now) {
				p.forsaken = append(p.forsaken, o.split)
			}
		}
	}
	return p.forsaken
}

// asked notes that an executor was asked to fetch a split: it is not forsaken now.
func (p *prospects) asked(i int) {
	is := func(o int) bool { return o == i }
	p.unheld, p.forsaken = slices.DeleteFunc(p.unheld, is), slices.DeleteFunc(p.forsaken, is)
}

// helped notes that an executor fetches a split.
func (p *prospects) helped(l *Leases, i int) {
	if o := l.s.splits[i].owner; o >= 0 && o < len(p.helpers) {
		p.helpers[o]++
	}
}

// worthGetting returns the split to fetch, −1 for none: of the owner with most
// work left, the one of which most is left.
func (l *Leases) worthGetting(p *prospects, e int, enough bool, now plan.Time) int {
	best, most := -1, plan.Time(0)
	consider := func(i int, gain plan.Time) {
		if gain > most || gain == most && best >= 0 && l.moreLeft(i, best) {
			best, most = i, gain
		}
	}
	if enough {
		for _, i := range l.allForsaken(p, now) {
			if l.canFetch(e, i) {
				consider(i, never)
			}
		}
		return best
	}
	for _, i := range p.unheld {
		if l.canFetch(e, i) {
			consider(i, never)
		}
	}
	least := l.leastCost(e)
	for _, o := range p.settled {
		if o.left < never && (o.left <= least || o.left-least < most || best >= 0 && o.left-least == most) {
			break // as little is left to the owners of the rest
		}
		if l.canFetch(e, o.split) {
			consider(o.split, l.gainOfGetting(o.split, e, p))
		}
	}
	return best
}

// moreLeft reports whether more rows are left of split i than of k, or as many and it is the first.
func (l *Leases) moreLeft(i, k int) bool {
	return l.undone[i] > l.undone[k] || l.undone[i] == l.undone[k] && i < k
}

// canFetch reports whether an executor neither has a split, nor is to have it, nor has failed with it.
func (l *Leases) canFetch(e, i int) bool {
	sp := &l.s.splits[i]
	return sp.owner != e && sp.next != e && !sp.holders[e] && !l.failed(e, i)
}

// leastOfAll returns the least of what leastCost returns for the executors.
func (l *Leases) leastOfAll() plan.Time {
	least := never
	for e := range l.ex {
		least = min(least, l.leastCost(e))
	}
	return least
}

// leastCost returns a bound below the time in which an executor has fetched any split and folded a piece of it.
func (l *Leases) leastCost(e int) plan.Time {
	rate := l.view.rates[e]
	if rate == 0 {
		return 0
	}
	piece := float64(l.smallest.rows) / rate * float64(l.s.executors[e].slots)
	return seconds(piece + 2*float64(l.smallest.bytes)/l.cfg.Bandwidth)
}

// gainOfGetting returns how much sooner than its owner, and those who are about to help it, an executor would have
// folded a piece of a split that it does not have.
func (l *Leases) gainOfGetting(i, e int, p *prospects) plan.Time {
	gain, rate := l.remainingOf(i), l.view.rates[e]
	if o := l.s.splits[i].owner; gain < never {
		gain /= plan.Time(1 + p.helpers[o])
	}
	switch {
	case rate > 0:
		piece := float64(l.pieces[l.first[i]].rows) / rate * float64(l.s.executors[e].slots)
		return gain - seconds(piece+2*float64(l.tasks[i].Bytes)/l.cfg.Bandwidth) - l.partTime()
	case gain < never:
		return 0
	}
	return gain
}

// arrival is what a pass knows of a copy of a split being fetched: its executor, when it
// was checked last, and since when; below 0 none has been requested.
type arrival struct {
	to     int
	since  plan.Time
	asked  bool // of another executor
	failed int  // copies that could not be fetched
}

// copiesTried is how many copies of a split may fail in a pass before it is fetched from
// its source: the executors asked may not answer, and not be known to be silent yet.
const copiesTried = 2

// forsaken reports whether no answering executor holds a split, and the one that was to fetch
// it has failed or timed out: no pass depends on an executor that does not answer, not even for
// a copy. While there is time left it notes the deadline.
func (l *Leases) forsaken(i int, now plan.Time) bool {
	for e := range l.s.splits[i].holders {
		if e < len(l.ex) && l.holds(e, i) && l.usable(e) && !l.silent(e, now) {
			return false
		}
	}
	a := &l.awaited[i]
	if to := l.s.splits[i].next; to != a.to {
		a.to, a.since, a.asked = to, now, false
	}
	due := a.since + l.arrivalBound(i)
	if a.since < 0 || now >= due || a.asked && !l.coming(i) {
		return true
	}
	l.due = min(l.due, due)
	return false
}

// coming reports whether an executor was asked to fetch a split and has not reported the outcome.
func (l *Leases) coming(i int) bool {
	return slices.ContainsFunc(l.s.executors, func(e *executor) bool { return e.alive && e.getting == i })
}

// arrivalBound returns how long a pass waits for a copy before it asks another executor to
// fetch one: as long as for a result, and several times what the bytes should take.
func (l *Leases) arrivalBound(i int) plan.Time {
	return plantedArrival(max(l.patience(l.awaited[i].since), seconds(4*float64(l.tasks[i].Bytes)/l.cfg.Bandwidth)))
}

// get returns the command to hold a copy of a split: from an executor that
// answers, else from its source.
func (l *Leases) get(i, e int, now plan.Time) Command {
	c := Command{Kind: Hold, Executor: l.s.executors[e].id, Split: plan.SplitID(i)}
	if l.s.splits[i].damaged || l.awaited[i].failed >= copiesTried {
		return c
	}
	for o := range l.ex {
		if l.s.splits[i].holders[o] && l.s.executors[o].alive && !l.silent(o, now) {
			c.From = l.s.executors[o].id
			return c
		}
	}
	return c
}
