package sim

import (
	"time"
	"unsafe"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// watchedLease is a lease as the oracle has seen it granted.
type watchedLease struct {
	split, part, parts uint32
	holder             plan.ExecutorID
	epoch              uint64
	rows               int64
	folded, asked      bool
	dead               bool
	void               bool // its run has ended without it
}

// leaseWatch holds a pass of leases against section 6.
type leaseWatch struct {
	s      *Sim
	p      *simPack
	began  plan.Time
	leases map[uint32]*watchedLease
	asked  map[[2]uint32]*watchedLease // the one of a piece that was asked for
	parts  map[uint32]uint32
	handed map[handedPart][]*watchedLease // leases of results, by their parts
}

func newLeaseWatch(s *Sim, p *simPack, now plan.Time) *leaseWatch {
	return &leaseWatch{s: s, p: p, began: now, leases: map[uint32]*watchedLease{}, asked: map[[2]uint32]*watchedLease{},
		parts:  map[uint32]uint32{},
		handed: map[handedPart][]*watchedLease{}}
}

func (l *watchedLease) piece() [2]uint32 { return [2]uint32{l.split, l.part} }

// take gives up what an executor had.
func (l *leaseWatch) take(id plan.ExecutorID, epoch uint64) {
	for _, x := range l.leases {
		if x.holder == id && (epoch == 0 || x.epoch == epoch) && !x.dead {
			x.dead = true
			if l.asked[x.piece()] == x {
				delete(l.asked, x.piece())
			}
		}
	}
}

func (l *leaseWatch) lost(id plan.ExecutorID) { l.take(id, 0) }

func (l *leaseWatch) foldedBy(from plan.ExecutorID, p *wire.PiecesFolded) {
	for _, id := range p.Ids {
		if x := l.leases[id]; x != nil && x.holder == from && x.epoch == p.Epoch && !x.dead && !x.void {
			x.folded = true
		}
	}
}

// handedPart names a part of a result: the bytes are its own, and not copied on the way.
type handedPart struct {
	level, index int
	data         *byte
}

// result sees what an executor has handed in: a failure gives its run up.
func (l *leaseWatch) result(from plan.ExecutorID, r *wire.Result, _ plan.Time) {
	if r.Fault != nil {
		l.take(from, r.Epoch)
		return
	}
	if !l.runs(from, r.Epoch) {
		return
	}
	seen := map[uint32]bool{}
	for _, part := range r.Parts {
		for _, c := range r.Coverage {
			key := handedPart{int(part.Level), int(part.Index), unsafe.SliceData(part.Data)}
			l.handed[key] = append(l.handed[key], l.leases[c.Lease])
		}
	}
	for _, c := range r.Coverage {
		if x := l.leases[c.Lease]; seen[c.Lease] || x != nil && x.holder == from && x.epoch == r.Epoch && !x.dead &&
			!x.asked {
			l.s.violate("6.include", "%s hands in lease %d, which it was not asked for, or twice", from, c.Lease)
		}
		seen[c.Lease] = true
	}
}

// runs reports whether an executor was granted leases under an epoch.
func (l *leaseWatch) runs(id plan.ExecutorID, epoch uint64) bool {
	for _, x := range l.leases {
		if x.holder == id && x.epoch == epoch {
			return true
		}
	}
	return false
}

// after sees grants and what is asked for.
func (l *leaseWatch) after(cmds []driver.Command, now plan.Time) {
	for _, c := range cmds {
		if c.Send == nil {
			continue
		}
		if m := c.Send.Body.GetLeases(); m != nil {
			l.granted(c.Send.To, m)
		}
		if m := c.Send.Body.GetInclude(); m != nil {
			l.include(c.Send.To, m)
		}
		if c.StepDone != nil {
			return
		}
	}
}

func (l *leaseWatch) granted(to plan.ExecutorID, m *wire.Leases) {
	for _, x := range m.Leases {
		piece := [2]uint32{x.Task.Split, x.Part}
		if o := l.asked[piece]; o != nil { // the executor asked for it has not answered, and is given up
			o.dead = true
			delete(l.asked, piece)
		}
		_, rows := plan.VisitedOf(l.p.rows[x.Task.Split], int64(x.Task.Cursor), int64(x.Task.Limit), int(x.Parts),
			int(x.Part))
		l.leases[x.Id] = &watchedLease{split: x.Task.Split, part: x.Part, parts: x.Parts, holder: to, epoch: m.Epoch,
			rows: rows}
		if was, ok := l.parts[x.Task.Split]; ok && was != x.Parts {
			l.s.violate("6.pieces", "split %d is of %d parts and of %d", x.Task.Split, was, x.Parts)
		}
		l.parts[x.Task.Split] = x.Parts
		l.s.watch.place.given(to, l.p, x.Task)
	}
}

// include sees what one executor is asked for: nothing that another one was.
func (l *leaseWatch) include(to plan.ExecutorID, m *wire.Include) {
	for _, x := range l.leases {
		x.void = x.void || x.holder == to && x.epoch == m.Epoch && !x.folded
	}
	for _, id := range m.Ids {
		x := l.leases[id]
		switch {
		case x == nil || x.holder != to || x.epoch != m.Epoch:
			l.s.violate("6.include", "%s is asked for lease %d, which it was not granted", to, id)
			continue
		case !x.folded:
			l.s.violate("6.include", "%s is asked for lease %d, which it has not folded", to, id)
		}
		if o := l.asked[x.piece()]; o != nil && o != x && !o.dead && l.ofLiving(o) {
			l.s.violate("6.exactly-once", "piece %d of split %d is asked of %s and of %s", x.part, x.split, o.holder,
				to)
		}
		l.asked[x.piece()], x.asked = x, true
	}
}

// ofLiving reports whether a lease's run has not been given up for a later one.
func (l *leaseWatch) ofLiving(x *watchedLease) bool {
	for _, o := range l.leases {
		if o.holder == x.holder && o.epoch > x.epoch {
			return false
		}
	}
	return true
}

// inVain returns how many rows were folded under leases that were not merged: of results
// that are in the report all leases were.
func (l *leaseWatch) inVain(r *driver.StepReport) (rows int64) {
	merged := map[*watchedLease]bool{}
	for _, part := range r.Outcome.Parts {
		for _, x := range l.handed[handedPart{part.Level, part.Index, unsafe.SliceData(part.Data)}] {
			merged[x] = true
		}
	}
	for _, x := range l.leases {
		if x.folded && !merged[x] {
			rows += x.rows
		}
	}
	return rows
}

// patience is how long a pass may take on top of what the answering executors need where one
// has stopped, and half of it where none has. A stopped one is waited for four times as long
// as the pass has taken, so that each of several makes it five times as long.
const patience = 4 * time.Second

// inTurn returns how long to wait with a number of executors that have stopped.
func inTurn(stopped int) plan.Time {
	if stopped == 0 {
		return patience / 2
	}
	p := patience
	for range min(stopped, 5) - 1 {
		p *= 5
	}
	return p
}

// done holds the pass's time against what its living executors need for it: no
// step depends on a stopped owner.
func (l *leaseWatch) done(took plan.Time) {
	var rows int64
	var rate float64
	stopped := 0
	for _, n := range l.p.rows {
		rows += n
	}
	for _, n := range l.s.order {
		if n.up && n.stalled <= l.s.w.now {
			rate += l.s.speed[n.id]
		}
		if n.unheardAfter(l.s.w.now - took) {
			stopped++
		}
	}
	if need := time.Duration(float64(rows) / max(rate, 1) * float64(time.Second)); took > inTurn(stopped)+40*need &&
		l.s.law.stalls && l.s.harmed <= l.s.w.now-took {
		if l.s.getting {
			l.s.violate("6.stopped-getter", "a pass took %v, a split was on its way to an executor that had stopped",
				took)
			return
		}
		l.s.violate("6.stopped-owner", "a pass took %v, those who answer need %v", took, need)
	}
}
