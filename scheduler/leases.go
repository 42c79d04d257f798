package scheduler

import (
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// LeaseTask is one split's share of a pass: Limit rows of it from its cursor on, in
// a number of pieces.
type LeaseTask struct {
	Rows, Cursor, Limit int64
	Pieces              int
	Bytes               int64 // of the split
}

// The granularity of leases: each takes at least two milliseconds; there is at most
// a fixed number for each slot, which also applies where speeds are not known.
// Parts are subtrees of a split's pieces.
const (
	leaseTime    = 2 * time.Millisecond
	finest       = 64
	unknownSpeed = 16
)

// fineness returns how many leases a pass over n rows should have.
func (s *State) fineness(rows int64) int {
	var rate float64
	slots := 0
	for _, x := range s.executors {
		if x.alive {
			rate += x.speed
			slots += x.slots
		}
	}
	if rate == 0 {
		return unknownSpeed * slots
	}
	took := seconds(float64(rows) / rate)
	return min(finest*slots, max(2*slots, slots*int(took/leaseTime)))
}

// LeaseConfig configures leases.
type LeaseConfig struct {
	Grace     time.Duration // least time without progress after which a lease expires
	Bandwidth float64       // bytes per second when a split is fetched; default 1e9
	CopyBytes int64         // of copies that an executor may fetch, where it has leastCopies; default 512 MiB
	Part      int64         // of a part of the result, as far as is known: a piece folded elsewhere is another one
}

// Lease is one executor's right to fold one piece; ids count from 1.
type Lease struct {
	ID            uint32
	Split, Part   int
	Rows          int64
	piece, holder int
	state         leaseState
}

type leaseState uint8

const (
	granted   leaseState = iota
	folded               // its holder has a result
	included             // that is to be merged
	merged               // it is here
	cancelled            // its holder is lost, or was given up
)

// LeaseCommandKind is what to do.
type LeaseCommandKind uint8

// The commands. Start begins an executor's run under an epoch; Grant hands
// leases to it; Include asks for the result of leases, which ends the run; Get
// makes it hold a split, from another executor or from its source; WakeAt asks
// for a Tick.
const (
	LeaseStart LeaseCommandKind = iota
	LeaseGrant
	LeaseInclude
	LeaseGet
	LeaseWakeAt
)

// LeaseCommand is one thing to do.
type LeaseCommand struct {
	Kind     LeaseCommandKind
	Executor plan.ExecutorID
	Epoch    plan.Epoch
	Leases   []*Lease
	Get      Command
	At       plan.Time
}

// piece is a part of a split as it is leased: one of its pieces, or several.
type piece struct {
	split, index int
	rows         int64
	leases       []*Lease // those granted and not cancelled
	by           *Lease   // the one to include, once some are folded
}

// lessee is an executor's part in the pass.
type lessee struct {
	epoch    plan.Epoch // of its run; 0: none
	queue    []*Lease   // granted, not folded
	folded   []*Lease   // not included
	awaited  []*Lease   // included, not merged
	sign     plan.Time  // when it last sent a message, or was given the first of its queue
	until    plan.Time  // bound of awaited
	queued   int64      // rows of queue
	largest  int64      // of those ever leased
	barred   bool       // it cannot run the pass
	mute     bool       // its result was given up, and it has sent nothing since
	ownAt    int        // its own splits before this index have no open piece
	rows     int64      // folded in this pass
	busy     plan.Time  // with something in its queue
	done     plan.Time  // when its last lease was folded that has a result
	rested   plan.Time  // when it can be asked again
	failures map[int]bool
}

// Leases grants the pieces of one pass to the executors that fold them soonest (SEMANTICS
// section 6): exactly one result of each piece is included, even if several executors fold
// it. It reads the placement, and changes it by its commands only.
type Leases struct {
	cfg     LeaseConfig
	s       *State
	tasks   []LeaseTask
	pieces  []piece
	first   []int // of the pieces, by split
	parts   []int // pieces, by split
	ex      []*lessee
	all     []*Lease
	open    int       // pieces without lease
	rows    int64     // of these
	left    int       // pieces without result
	last    *Lease    // folded of those that have one; nil once it is learnt from
	undone  []int64   // rows of these, by split
	vain    int64     // rows of leases that were folded and given up
	awaited []arrival // of copies, by split
	due     plan.Time // when to check again for a requested copy
	start   plan.Time
	out     []LeaseCommand

	smallest   struct{ rows, bytes int64 } // of the first pieces, of the splits
	view       view
	touched    []int     // executors that something has happened to since the last look
	lookAll    bool      // or to all of them
	nextLook   plan.Time // at all
	collecting bool      // all that has been folded was asked for at the last look
}

// NewLeases prepares a pass over splits placed as s says.
func NewLeases(cfg LeaseConfig, s *State, tasks []LeaseTask, now plan.Time) *Leases {
	if cfg.Bandwidth == 0 {
		cfg.Bandwidth = 1e9
	}
	if cfg.CopyBytes == 0 {
		cfg.CopyBytes = 512 << 20
	}
	l := &Leases{cfg: cfg, s: s, tasks: tasks, undone: make([]int64, len(tasks)), start: now}
	var all int64
	for _, t := range tasks {
		all += t.Limit
	}
	each := s.fineness(all) / max(1, len(tasks))
	for i, t := range tasks {
		l.first, l.awaited = append(l.first, len(l.pieces)), append(l.awaited, arrival{to: -1, since: -1})
		parts := 1
		for 2*parts <= min(t.Pieces, each) {
			parts *= 2
		}
		l.parts = append(l.parts, parts)
		for k := range parts {
			_, rows := plan.VisitedOf(t.Rows, t.Cursor, t.Limit, parts, k)
			p := piece{split: i, index: k, rows: rows}
			if rows > 0 {
				l.open++
				l.left++
			}
			l.rows += rows
			l.undone[i] += rows
			l.pieces = append(l.pieces, p)
		}
		l.noteSmallest(l.pieces[l.first[i]].rows, t.Bytes, i == 0)
	}
	return l
}

func (l *Leases) noteSmallest(rows, bytes int64, isFirst bool) {
	if s := &l.smallest; isFirst {
		s.rows, s.bytes = rows, bytes
	} else {
		s.rows, s.bytes = min(s.rows, rows), min(s.bytes, bytes)
	}
}

// Step returns the decisions that follow from the events so far.
func (l *Leases) Step(now plan.Time) []LeaseCommand {
	l.out = nil
	for len(l.ex) < len(l.s.executors) {
		l.ex, l.lookAll = append(l.ex, &lessee{failures: map[int]bool{}}), true
	}
	if l.glance(now) {
		return l.out
	}
	l.giveUpSilent(now)
	l.look(now)
	if l.left > 0 {
		l.grantAll(now)
		l.getMore(now)
	} else {
		l.prefetch(now)
		l.includeAll(now)
	}
	l.wake(now)
	l.lookedAtAll(now)
	return l.out
}

// lessee returns an executor's part, if it has one under this epoch.
func (l *Leases) lessee(id plan.ExecutorID, epoch plan.Epoch) (int, *lessee) {
	e, ok := l.s.byID[id]
	if !ok || e >= len(l.ex) || l.ex[e].epoch != epoch || epoch == 0 {
		return -1, nil
	}
	return e, l.ex[e]
}

// Folded notes leases that an executor has folded, and returns their splits.
func (l *Leases) Folded(id plan.ExecutorID, epoch plan.Epoch, ids []uint32, now plan.Time) []plan.SplitID {
	e, x := l.lessee(id, epoch)
	if x == nil {
		return nil
	}
	l.touch(e)
	var splits []plan.SplitID
	for _, k := range ids {
		lease := x.take(k)
		if lease == nil {
			continue
		}
		x.rows += lease.Rows
		lease.state = folded
		x.folded = append(x.folded, lease)
		if p := &l.pieces[lease.piece]; p.by == nil {
			p.by, l.last, x.done = lease, lease, now
			l.left--
			l.undone[p.split] -= p.rows
			splits = append(splits, plan.SplitID(p.split))
		}
	}
	x.busy += now - x.sign
	x.sign = now
	return splits
}

// take takes a lease out of the queue.
func (x *lessee) take(id uint32) *Lease {
	for i, lease := range x.queue {
		if lease.ID != id {
			continue
		}
		if x.queued -= lease.Rows; i == 0 { // the usual order
			x.queue = x.queue[1:]
		} else {
			x.queue = slices.Delete(x.queue, i, i+1)
		}
		return lease
	}
	return nil
}

// Accept reports whether a result over leases can be merged: they are all those of its executor
// that were included, each once, and nothing has replaced them. It marks them merged.
func (l *Leases) Accept(id plan.ExecutorID, epoch plan.Epoch, ids []uint32) bool {
	e, x := l.lessee(id, epoch)
	if x == nil || len(ids) == 0 || len(ids) != len(x.awaited) {
		return false
	}
	named := make(map[uint32]bool, len(ids))
	for _, k := range ids {
		if lease := l.lease(k); named[k] || lease == nil || lease.holder != e || lease.state != included ||
			!plantedFirst(l.pieces[lease.piece].by == lease) {
			return false
		}
		named[k] = true
	}
	for _, lease := range x.awaited {
		lease.state = merged
	}
	l.endRun(x)
	l.touch(e) // it may be given work again
	return true
}

// lease returns a lease by its id.
func (l *Leases) lease(id uint32) *Lease {
	if id == 0 || int(id) > len(l.all) {
		return nil
	}
	return l.all[id-1]
}

// Covers reports whether a lease is over as many rows of a split; one that there is not is not.
func (l *Leases) Covers(id, split uint32, rows uint64) bool {
	lease := l.lease(id)
	return lease != nil && lease.Split == int(split) && lease.Rows == int64(rows)
}

// Parts returns how many parts a split is leased in.
func (l *Leases) Parts(i plan.SplitID) int { return l.parts[i] }

// Rows returns how many rows of a split have been folded.
func (l *Leases) Rows(i plan.SplitID) (rows int64) {
	return l.tasks[i].Limit - l.undone[i]
}

// TakeVain returns how many rows have been folded in vain since the last call: under leases
// whose holder is lost or was given up, and of pieces that another executor folded first.
func (l *Leases) TakeVain() int64 {
	n := l.vain
	l.vain = 0
	return n
}

// Whole reports whether all pieces of a split have a result.
func (l *Leases) Whole(i plan.SplitID) bool {
	for k := range l.parts[i] {
		if p := &l.pieces[l.first[i]+k]; p.rows > 0 && (p.by == nil || p.by.state != merged) {
			return false
		}
	}
	return true
}

// Unsent notes that an executor could not fetch a split: it is not asked again
// at once.
func (l *Leases) Unsent(id plan.ExecutorID, i plan.SplitID, now plan.Time) {
	if e, ok := l.s.byID[id]; ok && e < len(l.ex) && l.s.executors[e].getting == int(i) {
		l.ex[e].rested, l.lookAll = now+l.cfg.Grace, true
		l.awaited[i].failed++
		l.s.got(e, i)
	}
}

// Lost takes back an executor's leases: what it folded is lost, unless it has
// been merged.
func (l *Leases) Lost(id plan.ExecutorID) {
	if e, ok := l.s.byID[id]; ok && e < len(l.ex) {
		l.lookAll = true
		l.takeBack(l.ex[e])
	}
}

// Failed takes back an executor's leases; it gets no lease of this split again
// while others can have it.
func (l *Leases) Failed(id plan.ExecutorID, epoch plan.Epoch, splits []plan.SplitID) bool {
	_, x := l.lessee(id, epoch)
	if x == nil {
		return false
	}
	for _, i := range splits {
		x.failures[int(i)] = true
	}
	l.lookAll = true
	l.takeBack(x)
	return true
}

// Bar removes an executor that cannot begin the pass; left reports whether another one
// remains.
func (l *Leases) Bar(id plan.ExecutorID) (left bool) {
	if e, ok := l.s.byID[id]; ok && e < len(l.ex) {
		l.ex[e].barred, l.lookAll = true, true
	}
	for e := range l.ex {
		left = left || l.s.executors[e].alive && !l.ex[e].barred
	}
	return left
}

// takeBack ends an executor's run without its result.
func (l *Leases) takeBack(x *lessee) {
	for _, list := range [][]*Lease{x.queue, x.folded, x.awaited} {
		for _, lease := range list {
			l.cancel(lease)
		}
	}
	l.endRun(x)
}

func (l *Leases) endRun(x *lessee) {
	x.epoch, x.queue, x.queued, x.folded, x.awaited = 0, nil, 0, nil, nil
}

// cancel gives a lease up. Where another executor has folded the piece as well,
// its result takes the place.
func (l *Leases) cancel(lease *Lease) {
	p := &l.pieces[lease.piece]
	if lease.state != granted {
		l.vain += lease.Rows
	}
	lease.state = cancelled
	if plantedForgotten(p) {
		return
	}
	p.leases = slices.DeleteFunc(p.leases, func(o *Lease) bool { return o == lease })
	if p.by == lease {
		p.by = nil
		l.left++
		l.undone[p.split] += p.rows
		for _, o := range p.leases {
			if o.state == folded {
				p.by = o
				l.left--
				l.undone[p.split] -= p.rows
				break
			}
		}
	}
	if len(p.leases) == 0 {
		l.open, l.lookAll = l.open+1, true
		l.rows += p.rows
		for _, x := range l.ex {
			x.ownAt = 0
		}
	}
}

// expiry returns when an executor's leases, of which it has some, expire: when it has sent
// nothing for three times as long as a piece takes it, or, where that is not known, for as
// long as the pass had lasted.
func (l *Leases) expiry(e int) plan.Time {
	x := l.ex[e]
	quiet := max(l.cfg.Grace, x.sign-l.start)
	if rate := l.measured(e); rate > 0 {
		quiet = max(l.cfg.Grace, 3*seconds(float64(x.largest)/rate*float64(l.s.executors[e].slots)))
	}
	return x.sign + quiet
}

func seconds(s float64) plan.Time {
	return plan.Time(min(s*float64(time.Second), math.MaxInt64/16))
}

// Heard notes a message of an executor, of any run: it is no longer silent.
func (l *Leases) Heard(id plan.ExecutorID) {
	if e, ok := l.s.byID[id]; ok && e < len(l.ex) {
		l.ex[e].mute = false
	}
}

// anotherSpeaks reports whether an executor that is not silent can be given work in place of e.
func (l *Leases) anotherSpeaks(e int) bool {
	for o, x := range l.ex {
		if o != e && !x.mute && l.usable(o) {
			return true
		}
	}
	return false
}

// silent reports whether an executor's leases have expired, or it was found silent before
// and is not waited for a second time.
func (l *Leases) silent(e int, now plan.Time) bool {
	if l.ex[e].mute && l.anotherSpeaks(e) {
		return true
	}
	return len(l.ex[e].queue) > 0 && plantedExpired(now >= l.expiry(e))
}

// giveUpSilent gives up results that executors did not send in time, where
// there are other executors.
func (l *Leases) giveUpSilent(now plan.Time) {
	for e, x := range l.ex {
		if len(x.awaited) > 0 && now >= x.until {
			if l.others(e) {
				l.takeBack(x)
				x.mute = true
			} else {
				x.until = now + l.patience(now)
			}
		}
	}
}

// patience returns the bound of waiting for results: several times as long as the
// pass has taken, since results may be larger than what was folded. A lost
// executor is detected sooner, by other means.
func (l *Leases) patience(now plan.Time) plan.Time {
	return plantedPatience(max(20*l.cfg.Grace, 4*(now-l.start)))
}

func (l *Leases) others(e int) bool {
	for o := range l.ex {
		if o != e && l.usable(o) {
			return true
		}
	}
	return false
}

// usable reports whether an executor can be given work now: one that is to send its
// result is not.
func (l *Leases) usable(e int) bool {
	return l.s.executors[e].alive && len(l.ex[e].awaited) == 0 && !l.ex[e].barred
}

// measured returns how many rows a second an executor folds, measured in this pass or those before it;
// 0 is not known. The first report of a pass has the way there and back in it: what was known before counts as much.
func (l *Leases) measured(e int) float64 {
	x, before := l.ex[e], l.s.executors[e].speed
	switch {
	case x.rows == 0 || x.busy <= 0:
		return before
	case before == 0 || x.rows > x.largest:
		return float64(x.rows) / x.busy.Seconds()
	}
	rows := float64(x.rows)
	return 2 * rows / (x.busy.Seconds() + rows/before)
}

// includeAll requests the results to be merged from all executors, once no
// piece is left.
func (l *Leases) includeAll(now plan.Time) {
	for e, x := range l.ex {
		if x.epoch != 0 && len(x.awaited) == 0 {
			l.include(e, now)
		}
	}
}

// include requests an executor's result, which ends its run.
func (l *Leases) include(e int, now plan.Time) {
	x := l.ex[e]
	for _, lease := range x.folded {
		if plantedFirst(l.pieces[lease.piece].by == lease) {
			lease.state = included
			x.awaited = append(x.awaited, lease)
		} else {
			l.cancel(lease)
		}
	}
	x.folded = nil
	l.emit(LeaseCommand{Kind: LeaseInclude, Executor: l.s.executors[e].id, Epoch: x.epoch, Leases: x.awaited})
	for _, lease := range x.queue {
		l.cancel(lease)
	}
	x.queue, x.queued = nil, 0
	x.until = now + l.patience(now)
	if len(x.awaited) == 0 {
		l.endRun(x)
	}
}

func (l *Leases) emit(c LeaseCommand) { l.out = append(l.out, c) }

// wake asks to be woken when the next bound ends.
func (l *Leases) wake(now plan.Time) {
	at := never
	for e, x := range l.ex {
		if len(x.awaited) > 0 {
			at = min(at, x.until)
		} else if len(x.queue) > 0 && l.expiry(e) > now {
			at = min(at, l.expiry(e))
		}
		if x.rested > now {
			at = min(at, x.rested)
		}
	}
	if l.left > 0 && l.due > now {
		at = min(at, l.due)
	}
	if at < never {
		l.emit(LeaseCommand{Kind: LeaseWakeAt, At: at})
	}
}
