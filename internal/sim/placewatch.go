package sim

import (
	"maps"
	"slices"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
)

// copyOf names a copy of a split on an executor.
type copyOf struct {
	on          plan.ExecutorID
	pack, split int
}

// splitOf names a split.
type splitOf struct{ pack, split int }

// failedAt is the executor that failed with a split, and the step.
type failedAt struct {
	on  plan.ExecutorID
	key uint32
}

// placeWatch holds placement, moves, retries, exclusion and draining against
// sections 1, 5 and 6: an executor that is assigned a split must hold it.
type placeWatch struct {
	s        *Sim
	prepared map[plan.ExecutorID]bool
	was      map[plan.ExecutorID]bool    // before the event in hand
	alive    map[plan.ExecutorID]bool    // was prepared and is not lost since; one that joins again is not for a while
	holds    map[copyOf]bool             // as the job was told
	ever     map[copyOf]bool             // the same, whatever failed since
	damaged  map[copyOf]bool             // has just arrived damaged
	last     map[splitOf]plan.ExecutorID // the same, of passes too
	coming   map[splitOf]plan.ExecutorID // the executor asked last to take it
	failed1  map[splitOf]failedAt        // the executor that failed with it last
	surely   plan.ExecutorID             // has surely failed just now
	rejoined plan.ExecutorID             // has come while it is being drained
	newcomer plan.ExecutorID             // has just come
	spare    bool                        // after the last step some executor had three splits or more
	moving   bool                        // a split was requested since the step began
	asked    map[plan.ExecutorID]int     // step at which it was to be drained
	failures map[splitOf][2]int          // in a row: surely, and at the most
	lately   map[splitOf]int             // of them, those of the step in hand
	charged  map[plan.ExecutorID][2]int
	excluded map[plan.ExecutorID]plan.Time // until when
	terms    map[plan.ExecutorID]int
	draining map[plan.ExecutorID]bool
	drained  map[plan.ExecutorID]bool
	strayed  map[plan.ExecutorID]bool // is to be drained when it asks to take part
	moves    *moveWatch
}

func newPlaceWatch(s *Sim) *placeWatch {
	return &placeWatch{s: s, prepared: map[plan.ExecutorID]bool{}, was: map[plan.ExecutorID]bool{},
		alive: map[plan.ExecutorID]bool{}, holds: map[copyOf]bool{}, ever: map[copyOf]bool{},
		damaged: map[copyOf]bool{}, failures: map[splitOf][2]int{}, lately: map[splitOf]int{},
		last: map[splitOf]plan.ExecutorID{}, coming: map[splitOf]plan.ExecutorID{}, failed1: map[splitOf]failedAt{},
		asked: map[plan.ExecutorID]int{}, charged: map[plan.ExecutorID][2]int{},
		excluded: map[plan.ExecutorID]plan.Time{},
		terms:    map[plan.ExecutorID]int{}, draining: map[plan.ExecutorID]bool{}, drained: map[plan.ExecutorID]bool{},
		strayed: map[plan.ExecutorID]bool{}, moves: newMoveWatch(s)}
}

func (w *placeWatch) before(ev driver.Event, now plan.Time) {
	clear(w.damaged)
	w.newcomer, w.surely, w.rejoined = "", "", ""
	for id, ok := range w.prepared {
		w.was[id] = ok
	}
	switch {
	case ev.Joined != nil:
		w.prepared[ev.Joined.Executor] = false
	case ev.Lost != nil:
		w.lost(ev.Lost.Executor)
	case ev.Drain != "":
		if w.draining[ev.Drain] = w.prepared[ev.Drain]; !w.prepared[ev.Drain] {
			w.strayed[ev.Drain] = true
		}
		w.asked[ev.Drain] = w.s.result.Steps
	case ev.Message != nil:
		w.message(ev.Message, now)
	}
}

func (w *placeWatch) lost(id plan.ExecutorID) {
	delete(w.strayed, id)
	if !w.was[id] {
		return // the job takes no notice
	}
	w.prepared[id], w.alive[id], w.spare = false, false, false
	delete(w.draining, id)
	delete(w.drained, id)
	forget := func(c copyOf, _ bool) bool { return c.on == id }
	maps.DeleteFunc(w.holds, forget)
	maps.DeleteFunc(w.ever, forget)
	w.notAsked(id)
}

// notAsked forgets what an executor was asked to get: it goes to others, and what becomes of it
// does not count against the executor.
func (w *placeWatch) notAsked(id plan.ExecutorID) {
	maps.DeleteFunc(w.coming, func(_ splitOf, to plan.ExecutorID) bool { return to == id })
}

func (w *placeWatch) message(m *driver.Message, now plan.Time) {
	switch b := m.Body.Body.(type) {
	case *wire.ToDriver_Prepared:
		if b.Prepared.Fault == nil && plan.DigestFromBytes(b.Prepared.Fingerprint) == w.s.cfg.Fingerprint {
			w.onPrepared(m.From)
		}
	case *wire.ToDriver_Holding:
		w.holding(m.From, b.Holding)
	case *wire.ToDriver_Result:
		w.result(m.From, b.Result)
	}
}

// onPrepared takes in that an executor can take part; what it says twice changes nothing.
func (w *placeWatch) onPrepared(id plan.ExecutorID) {
	if w.draining[id] {
		w.rejoined = id
	}
	if w.prepared[id] {
		return
	}
	if !w.alive[id] {
		w.newcomer = id
	}
	w.prepared[id], w.alive[id] = true, true
	delete(w.drained, id)
	delete(w.excluded, id)
	delete(w.charged, id)
}

func (w *placeWatch) holding(from plan.ExecutorID, h *wire.Holding) {
	c := copyOf{from, int(h.Pack), int(h.Split)}
	if h.Fault == nil {
		w.holds[c] = w.alive[from]
		w.ever[c] = w.alive[from]
		if at := (splitOf{c.pack, c.split}); w.coming[at] == from {
			delete(w.coming, at)
		}
		if p := w.s.packs[h.Pack]; plan.DigestFromBytes(h.Sha256) != p.sha(int(h.Split)) {
			w.s.violate("5.hash", "%s says that it holds split %d, with another hash", from, h.Split)
		}
		return
	}
	delete(w.holds, c)
	k, at := faultOf(h.Fault), splitOf{c.pack, c.split}
	sure := w.coming[at] == from
	delete(w.coming, at)
	delete(w.failed1, at)
	w.failed(at, k, false)
	if k != fault.Corrupt {
		w.charge(from, k, sure)
	} else if sure {
		w.damaged[c] = true
	}
}

func (w *placeWatch) result(from plan.ExecutorID, r *wire.Result) {
	if w.s.watch.req == nil {
		return
	}
	if r.Fault == nil && !miscounted(r) {
		w.succeeded(r)
		return
	}
	k := fault.Corrupt
	if r.Fault != nil {
		k = faultOf(r.Fault)
	}
	pack := w.s.watch.req.Pack
	sure := r.Epoch == 0 && r.Step == w.s.watch.key && w.s.watch.ref != nil && w.s.watch.acceptable(r)
	for _, c := range r.Coverage {
		delete(w.holds, copyOf{from, pack, int(c.Split)})
		w.failed(splitOf{pack, int(c.Split)}, k, sure)
		if sure {
			w.failed1[splitOf{pack, int(c.Split)}] = failedAt{from, w.s.watch.key}
		}
	}
	w.charge(from, k, sure)
}

func miscounted(r *wire.Result) bool {
	for _, c := range r.Coverage {
		if c.Count != c.Folded {
			return true
		}
	}
	return false
}

func (w *placeWatch) failed(k splitOf, kind fault.Kind, sure bool) {
	if fault.Policy(kind).ChargeTask {
		n := w.failures[k]
		if n[1]++; sure {
			n[0]++
		}
		w.failures[k] = n
		w.lately[k]++
	}
}

func (w *placeWatch) charge(id plan.ExecutorID, kind fault.Kind, sure bool) {
	if fault.Policy(kind).ChargeExecutor {
		n := w.charged[id]
		if n[1]++; sure {
			n[0]++
			w.surely = id
		}
		w.charged[id] = n
	}
}

// after holds what the job said against what it knew.
func (w *placeWatch) after(ev driver.Event, cmds []driver.Command, now plan.Time) {
	for _, c := range cmds {
		switch {
		case c.Excluded != nil:
			w.exclude(c.Excluded, now)
		case c.Drained != "":
			w.emptied(c.Drained)
		case c.PackOpen != nil:
			w.opened(*c.PackOpen)
		case c.Ready:
			w.ready(now)
		case c.Send != nil && c.Send.Body.GetHold() != nil:
			w.hold(c.Send.To, c.Send.Body.GetHold())
		case c.Failed != nil:
			w.failedJob(c.Failed)
		case c.StepDone != nil:
			w.moves.done(w, c.StepDone)
			w.merged(c.StepDone)
			clear(w.lately)
			w.shares(c.StepDone)
		}
	}
	if asked := func(c driver.Command) bool {
		return c.Send != nil && c.Send.To == w.newcomer && c.Send.Body.GetHold() != nil
	}; w.newcomer != "" && w.spare && len(w.coming) == 0 && !slices.ContainsFunc(cmds, asked) {
		w.s.violate("place.share", "%s has come and is given nothing", w.newcomer)
	}
	w.mustFail(cmds)
	if ev.Step != nil && len(w.s.packs) == 1 {
		w.overdue(now)
	}
	w.mustExclude()
}

// succeeded forgets the failures of splits whose results are taken.
func (w *placeWatch) succeeded(r *wire.Result) {
	if ref := w.s.watch.ref; ref != nil && r.Epoch == 0 && r.Step == w.s.watch.key && w.s.watch.acceptable(r) {
		for _, c := range r.Coverage {
			delete(w.failures, splitOf{w.s.watch.req.Pack, int(c.Split)})
		}
	}
}

// merged does the same where pieces were leased.
func (w *placeWatch) merged(r *driver.StepReport) {
	if w.s.watch.lease == nil {
		return
	}
	for i, c := range r.Coverage {
		if at := (splitOf{r.Pack, i}); c != nil { // what failed in this step may have done so after the merge
			w.failures[at] = [2]int{0, w.lately[at]}
		}
	}
}

// settled is within how many steps splits have found their way.
const settled = 25

// shares finds executors that were given no share, and those that cannot be
// drained.
func (w *placeWatch) shares(r *driver.StepReport) {
	ref := w.s.watch.ref
	if ref == nil || w.s.law.link > 0 || len(w.s.packs) > 1 {
		return
	}
	load, most := map[plan.ExecutorID]int{}, 0
	for i := range ref.tasks {
		load[ref.tasks[i].owner]++
		most = max(most, load[ref.tasks[i].owner])
	}
	w.spare = most >= 3 && len(ref.tasks) > len(w.s.order) && w.s.cfg.Exchange.Mode == prioritizer.Off &&
		len(w.coming) == 0 && !w.moving
	for id, ok := range w.prepared {
		switch {
		case !ok:
		case w.draining[id] && w.s.result.Steps > w.asked[id]+settled && w.someoneElse(w.out) && !w.s.unheard():
			w.s.violate("drain.ends", "%s was to be drained at step %d", id, w.asked[id])
		}
	}
}

// awaits reports whether an executor was asked for a split that it does not hold yet.
func (w *placeWatch) awaits(id plan.ExecutorID) bool {
	for k, to := range w.last {
		if to == id && !w.ever[copyOf{id, k.pack, k.split}] {
			return true
		}
	}
	return false
}

// given holds a task against what its executor was known to hold.
func (w *placeWatch) given(to plan.ExecutorID, p *simPack, a *wire.Assignment) {
	c := copyOf{to, p.id, int(a.Split)}
	if !w.ever[c] {
		w.s.violate("place.holds", "split %d of pack %d is given to %s, which has not said that it holds it", a.Split,
			p.id, to)
	}
	if w.drained[to] && w.s.watch.lease != nil {
		w.s.violate("drain.lease", "a piece of split %d is given to %s, which was said to be drained", a.Split, to)
	} else if w.drained[to] {
		w.s.violate("drain.empty", "split %d is given to %s, which was said to be drained", a.Split, to)
	}
	if f := w.failed1[splitOf{p.id, int(a.Split)}]; f.on == to && f.key == w.s.watch.key && w.s.watch.lease == nil &&
		w.someoneElse(func(o plan.ExecutorID) bool { return o == to || w.out(o) }) {
		w.s.violate("retry.elsewhere", "split %d goes back to %s, which failed with it", a.Split, to)
	}
	if want := w.s.oracle.start(p, int(a.Split), w.s.watch.req.Train); int64(a.Cursor) != want {
		w.s.violate("5.cursor", "split %d of pack %d is to start at %d, the row after the last one merged is %d",
			a.Split, p.id, a.Cursor, want)
	}
}

// hold holds a command to get a split against exclusion and draining.
func (w *placeWatch) hold(to plan.ExecutorID, h *wire.Hold) {
	if w.out(to) && w.someoneElse(w.out) && (len(w.s.packs) == 1 || w.draining[to] || w.drained[to]) {
		oracle := "exclusion.used"
		if w.draining[to] || w.drained[to] {
			oracle = "drain.used"
		}
		if w.rejoined == to {
			w.s.violate("drain.rejoined", "%s, which is being drained, has joined again and is to get split %d", to,
				h.Split)
			return
		}
		w.s.violate(oracle, "%s is to get split %d although it is to have nothing more", to, h.Split)
	}
	if w.damaged[copyOf{to, int(h.Pack), int(h.Split)}] && h.From != "" {
		w.s.violate("5.remade", "split %d, which has arrived damaged, is fetched from %s", h.Split, h.From)
	}
	w.last[splitOf{int(h.Pack), int(h.Split)}] = to
	w.spare, w.moving = false, true // what goes to one newcomer does not go to the next
	w.s.getting = w.s.getting || w.s.nodes[to].stalled > w.s.w.now
	if at := (splitOf{int(h.Pack), int(h.Split)}); w.s.watch.lease == nil {
		w.coming[at] = to
	} else {
		delete(w.coming, at)
	}
	if w.s.nodes[to].foreign {
		w.s.violate("place.plan", "%s, which has another plan, is to hold split %d", to, h.Split)
	}
	if h.From != "" && w.holds[copyOf{to, int(h.Pack), int(h.Split)}] && len(w.failures) == 0 {
		w.s.violate("5.replica", "%s is to fetch split %d, which it holds", to, h.Split)
	}
	if h.From != "" && !w.alive[plan.ExecutorID(h.From)] {
		w.s.violate("place.source", "split %d is to come from %s, which is gone", h.Split, h.From)
	}
}

// out reports whether an executor is to have nothing more.
func (w *placeWatch) out(id plan.ExecutorID) bool {
	_, excluded := w.excluded[id]
	return excluded || w.draining[id] || w.drained[id]
}

func (w *placeWatch) someoneElse(out func(plan.ExecutorID) bool) bool {
	for id, ok := range w.prepared {
		if ok && !out(id) {
			return true
		}
	}
	return false
}

func (w *placeWatch) exclude(x *driver.Exclusion, now plan.Time) {
	if x.Why == "" {
		delete(w.excluded, x.Executor)
		w.charged[x.Executor] = [2]int{}
		return
	}
	if n := w.charged[x.Executor]; n[1] < w.s.cfg.Schedule.MaxExecutorFailures && len(w.s.packs) == 1 {
		w.s.violate("exclusion.count", "%s is excluded after %d failures", x.Executor, n[1])
	}
	w.excluded[x.Executor] = now + w.s.cfg.Schedule.Exclusion<<min(w.terms[x.Executor], 6)
	w.terms[x.Executor]++
	w.notAsked(x.Executor)
}

// overdue finds executors that a new step should have let back in.
func (w *placeWatch) overdue(now plan.Time) {
	for id, until := range w.excluded {
		if now >= until && w.prepared[id] {
			w.s.violate("exclusion.readmit", "%s is still excluded %v after its time", id, now-until)
		}
	}
}

// mustExclude finds executors that have failed too often.
func (w *placeWatch) mustExclude() {
	for id, n := range w.charged {
		if n[0] < w.s.cfg.Schedule.MaxExecutorFailures+2 || id != w.surely || !w.prepared[id] || len(w.s.packs) > 1 ||
			w.out(id) {
			continue
		}
		if w.someoneElse(func(o plan.ExecutorID) bool { return o == id || w.out(o) }) {
			w.s.violate("exclusion.never", "%s has failed %d times and is not excluded", id, n[0])
		}
	}
}

// emptied holds that a drained executor has no task and no split on its way.
func (w *placeWatch) emptied(id plan.ExecutorID) {
	if w.strayed[id] {
		w.refused(id)
		return
	}
	if !w.draining[id] {
		w.s.violate("drain.empty", "%s is said to be drained, which was not asked for", id)
	}
	if r := w.s.watch.ref; r != nil {
		for i := range r.tasks {
			if t := &r.tasks[i]; t.everHeld && t.owner == id && t.state == refRunning {
				w.s.violate("drain.empty", "%s is said to be drained and folds split %d", id, i)
			}
		}
	}
	delete(w.draining, id)
	w.drained[id] = true
}

// refused holds that an executor that was to be drained while it was not there is refused
// when it asks to take part, before it has anything.
func (w *placeWatch) refused(id plan.ExecutorID) {
	delete(w.strayed, id)
	if w.newcomer != id || w.was[id] {
		w.s.violate("drain.unprepared", "%s is said to be drained, and it has not just asked to take part", id)
	}
	for at, ok := range w.ever {
		if ok && at.on == id {
			w.s.violate("drain.unprepared", "%s, which holds split %d, is said to be drained before it takes part", id,
				at.split)
			break
		}
	}
	w.prepared[id], w.alive[id], w.newcomer = false, false, ""
}

// opened checks that every split of a pack has a holder.
func (w *placeWatch) opened(pack int) {
	for i := range w.s.packs[pack].rows {
		held := false
		for id, ok := range w.alive {
			held = held || ok && w.ever[copyOf{id, pack, i}]
		}
		if !held {
			w.s.violate("place.open", "pack %d is open, split %d has no holder", pack, i)
			return
		}
	}
}

func (w *placeWatch) ready(now plan.Time) {
	n := 0
	for _, ok := range w.prepared {
		if ok {
			n++
		}
	}
	if n < w.s.cfg.Executors && now < w.s.watch.bornAt+w.s.cfg.Gather {
		w.s.violate("place.gather", "the job begins with %d of %d executors", n, w.s.cfg.Executors)
	}
}

// failedJob holds a job's end against the limits of retrying.
func (w *placeWatch) failedJob(err error) {
	w.s.over = true
	if fault.KindOf(err) == fault.Timeout && !w.s.watch.call.exhausted() {
		w.s.violate("10.9", "the job waited in vain: %v", err)
		return
	}
	if fault.KindOf(err) == fault.PlanMismatch && w.s.cfg.Life > 0 {
		w.s.result.Ended = err.Error()
		w.s.violate("place.foreign", "a job that was started anew ends because a late executor has another plan: %v",
			err)
		return
	}
	for _, n := range w.failures {
		if n[1] >= w.s.cfg.Schedule.MaxTaskFailures {
			w.s.result.Ended = err.Error()
			return
		}
	}
	if w.s.watch.call.exhausted() {
		if w.s.result.Ended = err.Error(); fault.KindOf(err) == fault.Timeout {
			w.s.watch.call.named(err)
		}
		return
	}
	w.s.violate("retry.early", "the job failed, though nothing failed %d times in a row: %v",
		w.s.cfg.Schedule.MaxTaskFailures, err)
}

// mustFail finds splits that have failed too often without an end.
func (w *placeWatch) mustFail(cmds []driver.Command) {
	for k, n := range w.failures {
		if n[0] >= w.s.cfg.Schedule.MaxTaskFailures && !w.s.over {
			w.s.violate("retry.limit", "split %d of pack %d has failed %d times in a row", k.split, k.pack, n[0])
		}
	}
}
