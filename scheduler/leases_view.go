package scheduler

import (
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// view is the state that the decisions of one moment use.
type view struct {
	rates     []float64   // by executor: rows per second, where not known the others' mean; 0 where none is known
	sum       float64     // of those that can be given work
	remaining []plan.Time // by executor, for the pieces of its splits that have no result; −1 is not looked at yet
	own       [][]int     // by executor: its splits
	copies    [][]int     // by executor: the splits of others that it holds
	seen      int         // placement that own and copies are of
	held      int         // of the copies that have arrived since then, those that they have
	listed    []listing   // by split: where own and copies have it
	now       plan.Time
	worth     worth
}

// listing is where lists have a split.
type listing struct {
	owner   int
	holders []int
}

// look makes the view of the moment.
func (l *Leases) look(now plan.Time) {
	v := &l.view
	v.rates = v.rates[:0]
	var known, slots float64
	for e := range l.ex {
		r := l.measured(e)
		v.rates = append(v.rates, r)
		if r > 0 {
			known += r
			slots += float64(l.s.executors[e].slots)
		}
	}
	v.sum = 0
	for e := range l.ex {
		if v.rates[e] == 0 && slots > 0 {
			v.rates[e] = known / slots * float64(l.s.executors[e].slots)
		}
		if l.usable(e) {
			v.sum += v.rates[e]
		}
	}
	l.lookAtPlacement()
	v.remaining = v.remaining[:0]
	v.now, v.worth = now, unknown
	for range l.ex {
		v.remaining = append(v.remaining, -1)
	}
}

// lookAtPlacement brings the lists of splits up to date.
func (l *Leases) lookAtPlacement() {
	v := &l.view
	if v.seen == l.s.changes && len(v.own) == len(l.ex) {
		for ; v.held < len(l.s.held); v.held++ {
			l.relist(l.s.held[v.held])
		}
		return
	}
	v.seen, v.held = l.s.changes, len(l.s.held)
	v.own, v.copies = emptied(v.own, len(l.ex)), emptied(v.copies, len(l.ex))
	v.listed = slices.Grow(v.listed[:0], len(l.tasks))[:len(l.tasks)]
	for _, x := range l.ex {
		x.ownAt = 0
	}
	for i := range l.tasks {
		v.listed[i] = listing{-1, v.listed[i].holders[:0]}
		l.list(i)
	}
}

// relist puts a split of which a copy has arrived where it belongs.
func (l *Leases) relist(i int) {
	v := &l.view
	was := &v.listed[i]
	for _, e := range was.holders {
		if list := l.listOf(e, was.owner); len(*list) > 0 {
			if at, there := slices.BinarySearch(*list, i); there {
				*list = slices.Delete(*list, at, at+1)
			}
		}
		l.ex[e].ownAt = 0
	}
	was.holders = was.holders[:0]
	l.list(i)
	for _, e := range was.holders {
		l.ex[e].ownAt = 0
		l.touch(e)
	}
}

// list enters a split into the lists of its holders.
func (l *Leases) list(i int) {
	v, sp := &l.view, &l.s.splits[i]
	to := &v.listed[i]
	to.owner = sp.owner
	for e, has := range sp.holders {
		if !has || e >= len(l.ex) {
			continue
		}
		to.holders = append(to.holders, e)
		list := l.listOf(e, sp.owner)
		at, _ := slices.BinarySearch(*list, i)
		*list = slices.Insert(*list, at, i)
	}
	slices.Sort(to.holders) // so that what follows is the same always
}

// listOf returns the list of an executor that has the splits of an owner.
func (l *Leases) listOf(e, owner int) *[]int {
	if e == owner {
		return &l.view.own[e]
	}
	return &l.view.copies[e]
}

// emptied returns n lists without elements, in the memory of those given.
func emptied(lists [][]int, n int) [][]int {
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	for len(lists) < n {
		lists = append(lists, nil)
	}
	return lists
}

// remaining returns how long an executor will take for the pieces of its splits
// that have no result.
func (l *Leases) remaining(e int, now plan.Time) plan.Time {
	if !l.usable(e) || l.silent(e, now) {
		return never // no executor folds them
	}
	var rows int64
	for _, i := range l.view.own[e] {
		rows += l.undone[i]
	}
	if r := l.view.rates[e]; r > 0 {
		return seconds(float64(rows) / r)
	}
	return plan.Time(rows) // of two unknown, the one with more
}

// never is later than any event.
const never = plan.Time(math.MaxInt64 / 4)

// Of more executors than few (Config), an event is a reason to look at the one that it is of; at all of them only so
// often that the driver does not do it all the time, or something has changed for all.
const (
	lookCost = 10 * time.Microsecond // of an executor
	looks    = 32                    // in the time that the pass has taken so far
)

// glance gives pieces to the executors that something has happened to, where that is enough, and reports whether it is.
func (l *Leases) glance(now plan.Time) bool {
	if len(l.ex) <= l.s.cfg.Few || l.lookAll || now >= l.nextLook || l.left == 0 && !l.collecting {
		return false
	}
	if l.left == 0 {
		l.emit(LeaseCommand{Kind: LeaseWakeAt, At: l.nextLook})
		return true // results are on their way
	}
	l.view.now = now
	l.lookAtPlacement()
	for _, e := range l.touched {
		if r := l.measured(e); r > 0 {
			l.view.rates[e] = r
		}
		l.view.remaining[e] = -1
		l.grantTo(e, now)
	}
	l.touched = l.touched[:0]
	l.emit(LeaseCommand{Kind: LeaseWakeAt, At: l.nextLook})
	return true
}

// touch has the next glance look at an executor.
func (l *Leases) touch(e int) {
	if !slices.Contains(l.touched, e) {
		l.touched = append(l.touched, e)
	}
}

// lookedAtAll notes that all executors have been looked at.
func (l *Leases) lookedAtAll(now plan.Time) {
	l.lookAll, l.touched, l.collecting = false, l.touched[:0], l.left == 0
	l.nextLook = now + max((now-l.start)/looks, plan.Time(len(l.ex))*lookCost)
}
