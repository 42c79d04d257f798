package driver

import (
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// pack is the placement and progress of one pack.
type pack struct {
	id       int
	info     *PackInfo
	sched    *scheduler.State
	ledger   *prioritizer.Ledger
	exchange *prioritizer.Exchange
	waiting  bool // the session waits for every split to be held
	givenUp  bool // it did, and no longer does: it has not been told that the pack is open
	makings  int  // how often it has been made again
	since    plan.Time
	shown    []int // placement as last reported
	moves    map[plan.SplitID]plan.Time
	moveTime plan.Time       // time of moves that ended during this step
	learned  plan.Time       // time after which Deadline cuts
	perRow   map[int]float64 // nanoseconds for each row merged that the last pass of a node took, and that of any
	states   map[stateKey]splitState

	partBytes map[int]int64 // of a part of a node's last result, on average
}

// anyNode stands for all of them.
const anyNode = -1

func (j *Job) onPack(info *PackInfo, now plan.Time) {
	if p := j.givenUp(info.Node); p != nil {
		p.waiting, p.givenUp, p.since = true, false, now
		j.emit(Command{WakeAt: now + j.cfg.MaxWait})
		j.packProgress(p)
		j.packGone(p)
		return
	}
	p := &pack{id: len(j.packs), info: info, waiting: true, since: now, moves: map[plan.SplitID]plan.Time{}}
	cfg := j.cfg.Schedule
	cfg.Sourceless = info.Sourceless
	p.sched = scheduler.New(cfg, len(info.Rows))
	p.sched.Restore(j.term())
	p.ledger = prioritizer.NewLedger(info.Rows, plantedCursors(!j.cfg.FixedCursors))
	p.states, p.partBytes, p.perRow = map[stateKey]splitState{}, map[int]int64{}, map[int]float64{}
	p.exchange = prioritizer.NewExchange(j.cfg.Exchange, len(info.Rows))
	j.packs = append(j.packs, p)
	for id := range j.executors.All() {
		if j.executors.Present(id) {
			p.sched.Joined(id, j.executors.SlotsOf(id))
		}
	}
	for i := range info.Rows {
		if info.Maker != "" {
			p.sched.Replica(info.Maker, plan.SplitID(i))
		}
	}
	j.schedule(p, p.sched.Place(info.Bytes))
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	j.packProgress(p)
	j.packGone(p)
}

// givenUp returns the pack of a node for which the session did not wait to the end; nil is none.
func (j *Job) givenUp(node int) *pack {
	for _, p := range j.packs {
		if p.givenUp && p.info.Node == node {
			return p
		}
	}
	return nil
}

// Remade is a pack that an executor has made again.
type Remade struct {
	Pack  int
	Maker plan.ExecutorID
}

func (j *Job) onRemade(r *Remade, now plan.Time) {
	p := j.packs[r.Pack]
	p.waiting, p.since = true, now
	p.makings++
	j.schedule(p, p.sched.Remade(r.Maker))
	j.emit(Command{WakeAt: now + j.cfg.MaxWait})
	j.packProgress(p)
	j.packGone(p)
}

// packGone has the session make a pack again whose splits no executor can make alone, once it waits for the pack or
// for what reads it, and reports whether it does. A step is given up, and asked for again, as if it had not begun.
func (j *Job) packGone(p *pack) (told bool) {
	if !p.info.Sourceless || j.state == ended || !p.sched.Gone() {
		return false
	}
	for _, c := range slices.Clone(j.open) {
		if c.req.Pack == p.id && !c.givenUp {
			j.end(c)
			j.emit(Command{PackGone: &Gone{Pack: p.id, Making: p.makings, Call: c.id}})
			told = true
		}
	}
	step := j.step != nil && j.step.req.Pack == p.id
	if step && j.step.req.Train {
		j.steps--
	}
	if step {
		j.step = nil
	}
	if step || p.waiting {
		p.waiting, told = false, true
		j.emit(Command{PackGone: &Gone{Pack: p.id, Making: p.makings}})
	}
	return told
}

// schedule carries the scheduler's commands to the executors.
func (j *Job) schedule(p *pack, cmds []scheduler.Command) {
	for _, c := range cmds {
		if c.Kind == scheduler.Abort {
			j.fail(fault.New(fault.KindOf(c.Err), "run", fmt.Sprintf("split %d on %s", c.Split, c.Executor), c.Err))
			return
		}
		j.send(c.Executor, &wire.ToExecutor{Body: &wire.ToExecutor_Hold{Hold: &wire.Hold{
			Job: string(j.cfg.ID), Pack: uint32(p.id), Split: uint32(c.Split), From: string(c.From),
			Node: uint32(p.info.Node), Sha256: p.info.SHA256[c.Split][:], Bytes: uint64(p.info.Bytes[c.Split])}}})
	}
}

// onHolding notes a split's arrival, or applies the policy of its failure.
func (j *Job) onHolding(from plan.ExecutorID, h *wire.Holding, now plan.Time) {
	if int(h.Pack) >= len(j.packs) || int(h.Split) >= len(j.packs[h.Pack].info.Rows) {
		j.counters.StaleReports++
		return
	}
	p, split := j.packs[h.Pack], plan.SplitID(h.Split)
	if err := h.Fault.AsError(); err != nil {
		delete(p.moves, split)
		if s := j.step; s != nil && s.leases != nil && j.packs[s.req.Pack] == p {
			s.leases.Unsent(from, split, now)
		}
		p.sched.Unsent(from, split)
		if j.step != nil && j.step.leases != nil {
			j.lease(now)
		}
		if !p.sched.Awaits(from, split) {
			return // a copy that only a pass could have used
		}
		if fault.KindOf(err) != fault.Corrupt { // it is not known which side damaged the copy
			j.charge(p, from, err, now)
		}
		j.schedule(p, p.sched.Failed(from, split, err))
		if j.state != ended && !j.packGone(p) { // a replica may have taken its place at once
			j.packProgress(p)
			j.resume(now)
		}
		return
	}
	p.sched.Held(from, split)
	plantedHeld(j, from, split)
	if began, moving := p.moves[split]; moving {
		p.moveTime += now - began
		delete(p.moves, split)
	}
	j.packProgress(p)
	if j.step != nil && j.step.leases != nil {
		j.lease(now)
	}
	if j.resume(now); j.step == nil {
		j.settle()
	}
}

// charge counts a failure against an executor.
func (j *Job) charge(p *pack, id plan.ExecutorID, err error, now plan.Time) {
	if p.sched.Charge(id, err, now) {
		j.emit(Command{Excluded: &Exclusion{Executor: id,
			Why: "it failed too often, the last time because " + err.Error()}})
	}
}

// readmit ends exclusions whose time is over.
func (j *Job) readmit(p *pack, now plan.Time) {
	ids, cmds := p.sched.Readmit(now)
	for _, id := range ids {
		j.emit(Command{Excluded: &Exclusion{Executor: id}})
	}
	j.schedule(p, cmds)
}

// packProgress notifies the session once every split is held.
func (j *Job) packProgress(p *pack) {
	if p.waiting && p.sched.Ready() {
		p.waiting = false
		j.emit(Command{PackOpen: &p.id})
	}
}

func (p *pack) heldCount() int {
	n := 0
	for i := range p.info.Rows {
		if p.sched.OwnerIndex(plan.SplitID(i)) >= 0 {
			n++
		}
	}
	return n
}

// onDrain moves an executor's splits to others, by moves that overlap with
// steps.
func (j *Job) onDrain(id plan.ExecutorID) {
	j.draining[id] = true
	plantedAway(j, id)
	if !j.executors.Present(id) {
		return // it is reported drained when it asks to take part
	}
	for _, p := range j.packs {
		j.schedule(p, p.sched.Drain(id))
	}
	j.settle()
}

// settle makes completed moves effective while no step is under way: the next step may be far
// off, or of another pack, and an executor that drains waits for them.
func (j *Job) settle() {
	for _, p := range j.packs {
		if j.step == nil && len(j.draining) > 0 && !p.waiting {
			p.sched.Boundary()
		}
	}
	j.drainMore()
}

// drainMore moves splits that could not be moved before, and reports executors
// that have none left. It runs between steps, when owners change.
func (j *Job) drainMore() {
	for id := range j.executors.All() {
		if !j.draining[id] || !j.executors.Present(id) {
			continue
		}
		done := true
		for _, p := range j.packs {
			if !p.sched.Drained(id) {
				if plantedDrains() {
					j.schedule(p, p.sched.Drain(id))
				}
				done = false
			}
		}
		if done {
			delete(j.draining, id)
			j.retire(id)
			j.emit(Command{Drained: id})
		}
	}
}

// retire removes an executor without splits from placement: it gets no leases.
func (j *Job) retire(id plan.ExecutorID) {
	for _, p := range j.packs {
		p.forgetStates(id)
		_, cmds := p.sched.Lost(id)
		j.schedule(p, cmds)
	}
}

// term returns the first epoch of this process of the job: those of earlier
// processes are lower.
func (j *Job) term() plan.Epoch {
	return plantedTerm(plan.Epoch(j.cfg.Life) << 32)
}

func (j *Job) onRestore(r *Restored) {
	if r.Pack < 0 || r.Pack >= len(j.packs) || plantedUnrestored(r.Pack) {
		return
	}
	p := j.packs[r.Pack]
	p.ledger.Restore(r.Entries)
	plantedJournal(p, r)
	p.restoreStates(r.States)
	if j.auto != nil && r.Ratio > 0 {
		j.auto.Resume(r.Ratio)
	}
	p.sched.Restore(r.Epoch)
	j.steps = r.Steps
}

// coming returns the synchronization ratio of the steps to come, as far as it is known.
func (j *Job) coming() float64 {
	switch {
	case j.cfg.Sync.Policy.Whole():
		return 1
	case j.auto != nil && j.ratio > 0:
		return j.ratio
	}
	return j.cfg.Sync.Ratio
}

// exchangeSplits plans the moves that follow a training step and starts them;
// they overlap with the next step.
func (j *Job) exchangeSplits(p *pack, stepNumber int, now plan.Time) []plan.Move {
	n := len(p.info.Rows)
	speed, observed := p.sched.Speeds()
	v := prioritizer.View{Step: stepNumber, Ratio: j.coming(), Owner: make([]int, n), Rows: p.info.Rows,
		Bytes: p.info.Bytes,
		Times: make([]int64, n), Moving: make([]bool, n), Speed: speed, Observed: observed, Noise: p.sched.Noise(),
		Held: func(split, e int) bool { return p.sched.Holds(plan.SplitID(split), e) }}
	for i := range n {
		s := plan.SplitID(i)
		v.Owner[i], v.Times[i], v.Moving[i] = p.sched.OwnerIndex(s), p.ledger.ProcessTimes(s), p.sched.Moving(s)
	}
	ids := p.sched.Executors()
	var moves []plan.Move
	for _, s := range p.exchange.Plan(v) {
		m := plan.Move{Split: s.Split, From: ids[s.From], To: ids[s.To], Role: s.Role}
		moves = append(moves, m)
		j.schedule(p, p.sched.Move(s.Split, m.To))
		if !s.Role {
			p.moves[s.Split] = now
			j.counters.MovedBytes += p.info.Bytes[s.Split]
		}
	}
	j.counters.Moves += int64(len(moves))
	return moves
}
