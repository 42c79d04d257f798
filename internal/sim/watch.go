package sim

import (
	"slices"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// watch sees every event that the job is given and every command that it gives,
// and holds the commands against what SEMANTICS says must follow.
type watch struct {
	s         *Sim
	req       *plan.StepRequest // in progress
	ref       *reference        // of a step that is not leased
	lease     *leaseWatch       // of one that is
	key       uint32
	began     plan.Time
	entries   bool
	refused   bool        // the event brought a result whose own count is not the one reported
	learned   []plan.Time // of deadline, by pack
	auto      *abss.Auto  // that hears what the job's does; nil under other policies
	choice    abss.Choice // of the pass in progress
	dropped   dropWatch
	place     *placeWatch
	call      *callWatch
	fresh     bool // the event was for the step
	restarted bool // it led to tasks being handed out
	bornAt    plan.Time
}

func newWatch(s *Sim) *watch {
	w := &watch{s: s, learned: make([]plan.Time, len(s.packs)), call: &callWatch{s: s},
		bornAt: s.clock.at(s.w.now)}
	if s.cfg.Sync.Policy == abss.Automatic {
		w.auto = abss.NewAuto(s.cfg.Sync)
	}
	w.place, w.dropped = newPlaceWatch(s), newDropWatch()
	return w
}

// before sees an event on its way to the job.
func (w *watch) before(ev driver.Event, now plan.Time) {
	if w.s.opt.Faultless {
		return
	}
	w.fresh, w.refused = false, false
	w.place.before(ev, now)
	w.call.before(ev, now)
	switch {
	case ev.Step != nil:
		w.begin(ev.Step, now)
	case ev.Signal != nil && w.auto != nil:
		w.auto.Observe(ev.Signal.Spread, ev.Signal.Norm)
	case ev.Restore != nil && ev.Restore.Ratio > 0 && w.auto != nil:
		w.auto.Resume(ev.Restore.Ratio)
	case ev.Lost != nil && w.place.was[ev.Lost.Executor]:
		w.lost(ev.Lost.Executor, now)
	case ev.Message != nil:
		w.message(ev.Message, now)
	}
}

// after sees what the job said.
func (w *watch) after(ev driver.Event, cmds []driver.Command, now plan.Time) {
	if w.s.opt.Faultless {
		return
	}
	stops, done := 0, false
	w.follow(ev, now)
	for _, c := range cmds {
		switch {
		case c.Send != nil && c.Send.Body.GetStartStep() != nil:
			w.started(c.Send.To, c.Send.Body.GetStartStep(), ev.Step != nil, ev.Lost != nil)
		case c.Send != nil && c.Send.Body.GetStopStep() != nil:
			stops = 1
		case c.StepDone != nil:
			done = true
			w.conclude(ev, stops, done, now)
			w.dropped.hold(w, c.StepDone)
			w.learn(c.StepDone)
			if w.auto != nil {
				w.auto.Took(c.StepDone.Took, c.StepDone.Stats.Cut, c.StepDone.Leased)
				if len(c.StepDone.Moves) > 0 {
					w.auto.Moved()
				}
			}
		}
	}
	w.place.after(ev, cmds, now)
	w.call.after(ev, cmds, now)
	if !done {
		w.conclude(ev, stops, false, now)
	}
	if w.lease != nil {
		w.lease.after(cmds, now)
	}
	if done {
		w.ref, w.req, w.lease = nil, nil, nil
	}
}

func (w *watch) begin(req *plan.StepRequest, now plan.Time) {
	p := w.s.packs[req.Pack]
	w.req, w.began, w.ref, w.lease = req, now, nil, nil
	w.restarted = true // also where no executor is left
	w.key++
	if w.auto != nil {
		w.choice = w.auto.Choose(w.s.job.Coming(req))
	}
	cfg := w.s.cfg.Sync
	if w.s.leases(req) {
		w.lease = newLeaseWatch(w.s, p, now)
		w.entries = false
		return
	}
	w.entries = req.Entries && p.upTo != nil && w.s.batch(true, req.Batch) == 1
	switch {
	case !req.Train || cfg.Policy.Whole() || w.auto != nil && w.choice.Ratio >= 1:
		cfg.Policy = abss.BSP
	case cfg.Policy == abss.Automatic:
		cfg.Policy, cfg.Ratio = abss.ABSP, w.choice.Ratio
	}
	w.ref = &reference{cfg: cfg, most: cfg.MaxMissing, began: now, since: now, advanced: now,
		target: w.learned[req.Pack], tasks: make([]refTask, len(p.rows))}
	for i, n := range p.rows {
		if n = w.s.limit(req.Train, req.Batch, n); w.entries {
			n = p.entries()[i]
		}
		w.ref.tasks[i] = refTask{units: n, floor: w.s.floor(n), state: refLost}
	}
}

// started notes that tasks were handed out: at a step's beginning, or again.
func (w *watch) started(to plan.ExecutorID, m *wire.StartStep, first, loss bool) {
	if w.ref == nil || m.Leased {
		return
	}
	w.restarted = true
	for _, a := range m.Tasks {
		t := &w.ref.tasks[a.Split]
		if t.everHeld && t.state != refLost && t.owner != to {
			w.s.violate("5.boundary", "split %d goes from %s to %s within the step", a.Split, t.owner, to)
		}
		if again := t.everHeld && t.state == refRunning && t.owner == to; again && loss {
			w.s.violate("1.again", "split %d, which was handed out again, is handed out again to %s: its first "+
				"result will be dropped, and all that comes with it", a.Split, to)
		} else if again {
			w.s.violate("1.collecting", "split %d is handed out again while %s folds it", a.Split, to)
		}
		if w.ref.phase == refRecovering && !w.ref.whole() && t.state == refMissing {
			t.state = refLost
		}
		w.dropped.inVain(int(a.Split), w, t)
		*t = refTask{units: t.units, floor: t.floor, state: refRunning, owner: to, attempt: a.Attempt, epoch: a.Epoch,
			cursor: a.Cursor, everHeld: true}
		w.place.given(to, w.s.packs[w.req.Pack], a)
	}
	if first {
		w.place.moving = false
		w.ref.most = max(w.ref.cfg.MaxMissing, w.largest())
	}
}

// largest returns the largest share of the units that one executor was handed.
func (w *watch) largest() float64 {
	by, total := map[plan.ExecutorID]int64{}, int64(0)
	var most int64
	for i := range w.ref.tasks {
		t := &w.ref.tasks[i]
		total += t.units
		if t.everHeld {
			by[t.owner] += t.units
			most = max(most, by[t.owner])
		}
	}
	return float64(most) / float64(max(1, total))
}

// lost takes what an executor was folding out of the account.
func (w *watch) lost(id plan.ExecutorID, now plan.Time) {
	if w.lease != nil {
		w.lease.lost(id)
	}
	if w.ref == nil {
		return
	}
	for i := range w.ref.tasks {
		if t := &w.ref.tasks[i]; t.owner == id && !t.doomed {
			t.doomed = true
			w.orphan(i)
		}
	}
	w.ref.decide(now)
}

// orphan takes a task out of the account whose executor is lost or has failed.
func (w *watch) orphan(i int) {
	t := &w.ref.tasks[i]
	if t.state == refArrived {
		return // its result stays
	}
	w.fresh = true
	w.dropped.inVain(i, w, t)
	if t.state == refRunning {
		t.state, w.ref.lost = refLost, true
	}
}

func (w *watch) message(m *driver.Message, now plan.Time) {
	switch b := m.Body.Body.(type) {
	case *wire.ToDriver_Progress:
		w.progress(b.Progress, now)
	case *wire.ToDriver_Result:
		w.result(m.From, b.Result, now)
	case *wire.ToDriver_PiecesFolded:
		if w.lease != nil && b.PiecesFolded.Step == w.key {
			w.lease.foldedBy(m.From, b.PiecesFolded)
		}
	}
}

func (w *watch) progress(p *wire.Progress, now plan.Time) {
	if w.ref == nil || p.Step != w.key {
		return
	}
	for _, c := range p.Counts {
		t := w.task(c.Split)
		if !t.everHeld || t.attempt != c.Attempt || t.epoch != c.Epoch {
			continue
		}
		w.fresh = true
		t.seen = max(t.seen, int64(c.Processed))
		if t.state == refRunning {
			w.ref.grow(t, int64(c.Processed), now)
		}
		w.ref.decide(now)
	}
}

func (w *watch) result(from plan.ExecutorID, r *wire.Result, now plan.Time) {
	if w.lease != nil && r.Epoch > 0 && r.Step == w.key {
		w.lease.result(from, r, now)
		return
	}
	if w.ref != nil && r.Step == w.key && r.Epoch == 0 && r.Fault == nil && !w.ref.stopped {
		w.unasked(r)
	}
	if w.ref == nil || r.Step != w.key || r.Epoch > 0 || !w.acceptable(r) {
		w.dropped.result(r)
		return
	}
	w.fresh = true
	wrong := slices.ContainsFunc(r.Coverage, func(c *wire.Coverage) bool { return c.Count != c.Folded })
	if r.Fault != nil || wrong {
		w.refused = wrong && r.Fault == nil
		w.dropped.result(r)
		for _, c := range r.Coverage {
			w.ref.tasks[c.Split].doomed = true
		}
		for _, c := range r.Coverage {
			if w.ref.tasks[c.Split].state != refArrived {
				w.orphan(int(c.Split))
			}
		}
		w.ref.decide(now)
		return
	}
	for _, c := range r.Coverage {
		w.dropped.taken(dropKey{int(c.Split), c.Attempt, c.Epoch, w.key})
		w.ref.arrive(&w.ref.tasks[c.Split], w.unitsOf(c), now)
	}
	w.ref.decide(now)
}

// unasked finds results that were cut without a stop command.
func (w *watch) unasked(r *wire.Result) {
	for _, c := range r.Coverage {
		t := w.task(c.Split)
		if !t.everHeld || t.attempt != c.Attempt || t.epoch != c.Epoch || t.doomed {
			continue
		}
		if rows := w.s.packs[w.req.Pack].rows[c.Split]; int64(c.Count) < w.s.limit(w.req.Train, w.req.Batch, rows) {
			w.s.violate("1.unasked", "split %d was cut at %d of %d rows without a request", c.Split, c.Count, rows)
		}
	}
}

func (w *watch) unitsOf(c *wire.Coverage) int64 {
	if w.entries {
		return int64(c.Entries)
	}
	return int64(c.Count)
}

// task returns a split's; one that the pack does not have was never handed out.
func (w *watch) task(split uint32) *refTask {
	if int(split) >= len(w.ref.tasks) {
		return &refTask{}
	}
	return &w.ref.tasks[split]
}

// acceptable reports whether all that a result covers was assigned as it says and
// is wanted.
func (w *watch) acceptable(r *wire.Result) bool {
	for _, c := range r.Coverage {
		t := w.task(c.Split)
		if !t.everHeld || t.attempt != c.Attempt || t.epoch != c.Epoch || r.Fault == nil &&
			!w.ref.wants(t, w.unitsOf(c)) {
			return false
		}
	}
	return true
}

// follow lets time pass for the reference, where it does for the job.
func (w *watch) follow(ev driver.Event, now plan.Time) {
	if r := w.ref; r != nil && (w.fresh || ticks(ev)) && r.phase != refDone {
		r.decide(now)
	}
}

// conclude compares what the job said with what it had to say.
func (w *watch) conclude(ev driver.Event, stops int, done bool, now plan.Time) {
	r := w.ref
	if r == nil || w.s.over {
		return
	}
	before := r.phase
	if w.restarted && r.phase != refDone {
		r.decide(now)
	}
	w.restarted = false
	w.holdStop(before, stops > 0, now)
	w.holdDone(before, done, now)
	if r.failed {
		w.s.violate("10.9", "a bound ended in vain in phase %d", before)
	}
}

func (w *watch) holdStop(before refPhase, got bool, now plan.Time) {
	r := w.ref
	want := r.stop
	if r.stop = false; got == want {
		r.stopped = r.stopped || got
		return
	}
	_, _, _, _, below, _ := r.sums()
	deadline := r.cfg.Policy == abss.Deadline
	share := r.share()
	switch {
	case got && r.stopped:
		w.s.violate("1.once", "the step is stopped twice")
	case got && r.whole():
		w.s.violate("1.whole", "a step that needs every row is stopped")
	case got && deadline && !r.reached(now):
		w.s.violate("1.deadline", "cut after %v at %.3f, learned are %v", now-r.began, share, r.target)
	case got && !deadline && !r.requested:
		w.s.violate("1.request", "cut at %.3f before any task has finished", share)
	case got && !deadline && share < r.cfg.Ratio && r.lost:
		w.s.violate("1.lost", "cut at %.3f of what lives, the ratio is %.3f", share, r.cfg.Ratio)
	case got && !deadline && share < r.cfg.Ratio:
		w.s.violate("1.ratio", "cut at %.3f, the ratio is %.3f", share, r.cfg.Ratio)
	case got && below > 0:
		w.s.violate("1.floor", "cut while %d splits are below the floor", below)
	case got:
		w.s.violate("1.stop", "cut in phase %d", before)
	case r.why == "1.floor-bound":
		w.s.violate("1.floor-bound", "%d splits below the floor are waited for longer than the step took", below)
	case deadline && r.target > 0:
		w.s.violate("1.deadline", "not cut after %v, learned are %v", now-r.began, r.target)
	default:
		w.s.violate("1.stop", "not cut at %.3f, the ratio is %.3f", share, r.cfg.Ratio)
	}
}

func (w *watch) holdDone(before refPhase, got bool, now plan.Time) {
	r := w.ref
	want := r.done
	if r.done = false; got == want {
		return
	}
	live, _, unarrived, _, _, total := r.sums()
	missing := float64(total-live) / float64(max(1, total))
	switch {
	case want:
		w.s.violate(r.why, "the step goes on after %v", now-r.began)
	case w.refused:
		w.s.violate("10.1", "an accumulator whose own count is not the one reported is merged")
	case r.whole() && total > live:
		w.s.violate("1.whole", "%.3f of the rows are missing", missing)
	case unarrived > 0 && r.phase == refCollecting:
		w.s.violate("1.collecting", "%d results are not waited for", unarrived)
	case missing > r.most:
		w.s.violate("1.max-missing", "%.3f are missing, at most %.3f may be", missing, r.most)
	default:
		w.s.violate("1.done", "the step ends in phase %d with %d tasks running", r.phase, unarrived)
	}
	r.phase = refDone
}

// learn follows the time at which deadline cuts.
func (w *watch) learn(r *driver.StepReport) {
	if !r.Train || r.Stats.StopAt <= 0 || r.Share <= 0 {
		return
	}
	ratio := w.s.cfg.Sync.Ratio
	if w.auto != nil {
		ratio = w.choice.Ratio
	}
	t, was := plan.Time(float64(r.Stats.StopAt)*ratio/r.Share), &w.learned[r.Pack]
	if *was == 0 {
		*was = t
	}
	*was += (t - *was) / 5
}

// faultOf returns a message's failure.
func faultOf(f *wire.Fault) fault.Kind { return fault.KindOf(f.AsError()) }
