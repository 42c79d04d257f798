package driver

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// inlineParam is the largest parameter that travels inside StartStep.
const inlineParam = 64 << 10

// step is a step in progress.
type step struct {
	req       *plan.StepRequest
	number    int
	key       uint32 // number of the step or pass on the wire
	ratio     float64
	choice    abss.Choice // of auto
	ctrl      *abss.Controller
	bsp       bool
	entries   bool    // in which progress is counted
	units     []int64 // of progress, of each split
	began     plan.Time
	param     plan.Digest
	sentTo    map[plan.ExecutorID]bool // executors that have the parameter
	assigned  []plan.Assignment        // latest by split
	coverage  []*plan.Coverage         // merged by split
	seen      []int64                  // last reported progress by split
	parts     []plan.EncodedPart
	states    map[plan.SplitID]splitState // that came with results
	recover   []plan.SplitID              // to be assigned again as soon as an executor holds them
	bytes     int64
	partBytes int64 // of parts
	retried   int
	leases    *scheduler.Leases // of a pass whose splits are leased piece by piece
	busy      map[plan.ExecutorID]plan.Time
	arrived   map[plan.ExecutorID]plan.Time // since it began
	rows      map[plan.ExecutorID]int64     // of what was merged
	helped    map[plan.ExecutorID]int64     // of these, of others' splits
	sent      map[plan.ExecutorID][]plan.Time
	spans     map[plan.ExecutorID][]plan.SlotSpan
}

// onStep begins a step.
func (j *Job) onStep(req *plan.StepRequest, now plan.Time) {
	p := j.packs[req.Pack]
	if p.sched.Gone() {
		j.emit(Command{PackGone: &Gone{Pack: p.id, Making: p.makings}})
		return
	}
	if len(j.dropped) > mostDropped {
		clear(j.dropped)
	}
	var choice abss.Choice
	if j.auto != nil {
		choice = j.auto.Choose(j.Coming(req))
	}
	changed := p.sched.Boundary()
	j.readmit(p, now)
	j.settle()
	n := len(p.info.Rows)
	if req.Train {
		j.steps++
	}
	j.keys++
	s := &step{req: req, number: j.steps, key: j.keys, began: now, choice: choice,
		bsp:    !req.Train || j.cfg.Sync.Policy.Whole() || choice.Ratio >= 1,
		sentTo: map[plan.ExecutorID]bool{}, busy: map[plan.ExecutorID]plan.Time{}, assigned: make([]plan.Assignment, n),
		arrived: map[plan.ExecutorID]plan.Time{}, helped: map[plan.ExecutorID]int64{},
		rows: map[plan.ExecutorID]int64{}, sent: map[plan.ExecutorID][]plan.Time{},
		spans:    map[plan.ExecutorID][]plan.SlotSpan{},
		coverage: make([]*plan.Coverage, n), seen: make([]int64, n)}
	j.step = s
	leases := j.leased(p, s)
	if len(req.Param) > inlineParam {
		if s.param = req.Digest; s.param.IsZero() {
			s.param = plan.DigestOf(req.Param)
		}
	}
	s.entries = req.Entries && p.info.Entries != nil && !leases && !partial(j.cfg.BatchFraction) && !partial(req.Batch)
	if s.units = p.info.Rows; s.entries {
		s.units = p.info.Entries
	}
	p.sched.NextEpoch()
	if leases {
		j.beginLeases(p, now)
		return
	}
	tasks, rows := make([]abss.Task, n), make([]int64, n)
	out := map[plan.ExecutorID][]plan.Assignment{}
	for i := range tasks {
		id := plan.SplitID(i)
		owner, a, ok := j.assign(p, id)
		tasks[i] = abss.Task{Split: id, Rows: j.limit(p, i), Held: ok}
		if s.entries {
			tasks[i].Rows = s.units[i]
		}
		rows[i] = tasks[i].Rows
		plantedCursor(&a, changed)
		s.assigned[i] = a
		if ok {
			out[owner] = append(out[owner], a)
		} else if s.bsp {
			s.recover = append(s.recover, id)
		}
	}
	s.ctrl = abss.NewController(j.syncOf(s), tasks, p.sched.LargestShare(rows), p.learned, now)
	for owner := range j.executors.All() {
		if as := out[owner]; as != nil {
			j.start(owner, p, as, 0, now)
		}
	}
	plantedTwice(j, p, changed)
	j.decide(abss.Event{Kind: abss.Began}, now)
}

// syncOf returns the policy of a step: an evaluation pass is plain BSP.
func (j *Job) syncOf(s *step) abss.Config {
	cfg := j.cfg.Sync
	s.ratio = cfg.Ratio
	switch {
	case cfg.Policy == abss.Automatic:
		cfg.Policy, s.ratio = abss.ABSP, s.choice.Ratio
	case s.req.Ratio > 0:
		s.ratio = s.req.Ratio
	}
	cfg.Ratio = s.ratio
	if s.bsp {
		cfg.Policy = abss.BSP
	}
	return cfg
}

// assign hands out a split's share of the step. Only training steps start at
// the cursor.
func (j *Job) assign(p *pack, i plan.SplitID) (plan.ExecutorID, plan.Assignment, bool) {
	var cursor int64
	if j.step.req.Train {
		cursor = p.ledger.Cursor(i)
	}
	owner, a, ok := p.sched.Assign(i, cursor)
	if j.step.req.State {
		a.State = p.states[stateKey{j.step.req.Node, i}].version
	}
	if n := j.limit(p, int(i)); plantedLimit(n < p.info.Rows[i]) {
		a.Limit = n
	}
	return owner, a, ok
}

// batch returns the share of each split that a step folds: of its request, or else
// of the job; 1 is all.
func (j *Job) batch(req *plan.StepRequest) float64 {
	f := j.cfg.BatchFraction
	if req.Batch > 0 {
		f = req.Batch
	}
	if !req.Train || !partial(f) {
		return 1
	}
	return f
}

// partial reports whether a share is one of some rows.
func partial(f float64) bool { return f > 0 && f < 1 }

// limit returns how many rows of a split the step folds when it is not cut.
func (j *Job) limit(p *pack, i int) int64 {
	n := p.info.Rows[i]
	if f := j.batch(j.step.req); f < 1 {
		return min(n, int64(math.Ceil(f*float64(n))))
	}
	return n
}

// start sends an executor its tasks, the parameter first where it is large. A run with an
// epoch is given leases later.
func (j *Job) start(to plan.ExecutorID, p *pack, as []plan.Assignment, epoch plan.Epoch, now plan.Time) {
	s := j.step
	s.sent[to] = append(s.sent[to], now)
	m := &wire.StartStep{Job: string(j.cfg.ID), Step: s.key, Node: uint32(s.req.Node), PackNode: uint32(p.info.Node),
		ReportIntervalNs: uint64(j.interval()), Scale: s.req.Train && !j.cfg.ByRows, Leased: epoch > 0,
		Epoch: uint64(epoch), Entries: s.entries}
	if s.param.IsZero() {
		m.Param = s.req.Param
	} else {
		m.ParamDigest = s.param[:]
		if !s.sentTo[to] {
			s.sentTo[to] = true
			j.send(to, &wire.ToExecutor{Body: &wire.ToExecutor_Parameter{Parameter: &wire.Parameter{Digest: s.param[:],
				Data: s.req.Param}}})
		}
	}
	s.bytes += int64(len(s.req.Param))
	for _, a := range as {
		m.Tasks = append(m.Tasks, &wire.Assignment{Split: uint32(a.Split), Attempt: uint32(a.Attempt),
			Epoch:  uint64(a.Epoch),
			Cursor: uint64(a.Cursor), Limit: uint64(a.Limit), State: a.State})
		m.States = append(m.States, j.stateFor(p, a.Split, to)...)
	}
	body := &wire.ToExecutor{Body: &wire.ToExecutor_StartStep{StartStep: m}}
	j.out = append(j.out, Command{Send: &Outgoing{To: to, Body: body}})
}

// interval returns how often executors report. A step that waits for every row
// in any case needs few reports.
func (j *Job) interval() time.Duration {
	switch {
	case j.cfg.ReportInterval > 0:
		return j.cfg.ReportInterval
	case j.step.bsp:
		return min(max(j.lastStep/2, 20*time.Millisecond), time.Second)
	}
	return min(max(j.lastStep/20, 2*time.Millisecond), time.Second)
}

func (j *Job) onProgress(r *wire.Progress, now plan.Time) {
	if j.step == nil || j.step.leases != nil || r.Step != j.step.key {
		j.counters.StaleReports++
		if !plantedStale(j) {
			return
		}
	}
	p := j.packs[j.step.req.Pack]
	for _, c := range r.Counts {
		if !p.sched.Current(plan.SplitID(c.Split), int(c.Attempt), plan.Epoch(c.Epoch)) {
			j.counters.StaleReports++
			continue
		}
		plantedStop(j)
		j.step.seen[c.Split] = max(j.step.seen[c.Split], int64(c.Processed))
		if j.decide(abss.Event{Kind: abss.Progress, Split: plan.SplitID(c.Split), Count: int64(c.Processed)},
			now); j.step == nil {
			return
		}
	}
}

// onResult accepts an executor's result whole, or drops it whole.
func (j *Job) onResult(from plan.ExecutorID, r *wire.Result, now plan.Time) {
	accept, cover, arrived := j.accept, j.cover, j.arrived
	if r.Epoch > 0 {
		accept, cover, arrived = j.acceptLeased, j.coverLeased, j.arrivedLeased
	}
	if j.step != nil && r.Step == j.step.key {
		j.did(from, r, now)
	}
	if !accept(from, r, now) {
		return
	}
	s, p := j.step, j.packs[j.step.req.Pack]
	for _, part := range r.Parts {
		s.bytes += int64(len(part.Data))
		if part.State {
			s.keepState(from, part)
			continue
		}
		s.partBytes += int64(len(part.Data))
		s.parts = append(s.parts, plan.EncodedPart{Level: int(part.Level), Index: int(part.Index), Data: part.Data,
			Weight: part.Weight})
	}
	var rows int64
	for _, c := range r.Coverage {
		n := cover(c)
		if rows += n; p.sched.Owner(plan.SplitID(c.Split)) != from {
			s.helped[from] += n
		}
	}
	s.arrived[from] = now - s.began
	s.rows[from] += rows
	if r.BusyNs > 0 {
		s.busy[from] += plan.Time(r.BusyNs) / plan.Time(j.executors.SlotsOf(from))
		p.sched.Observe(from, float64(rows)*float64(j.executors.SlotsOf(from))/time.Duration(r.BusyNs).Seconds())
	}
	arrived(r, now)
	j.decide(abss.Event{Kind: abss.Tick}, now)
}

// accept reports whether a result can be merged. One that cannot is dropped, and a failure has its policy applied.
func (j *Job) accept(from plan.ExecutorID, r *wire.Result, now plan.Time) bool {
	if !j.acceptable(r) {
		j.dropResult(r)
		return false
	}
	if err := j.resultError(r); err != nil {
		j.failedTasks(from, r, err, now)
		return false
	}
	j.keepOnce(r)
	return true
}

// cover notes what an accepted result covers of a split, and returns its rows.
func (j *Job) cover(c *wire.Coverage) int64 {
	cov := &plan.Coverage{Split: plan.SplitID(c.Split), Attempt: int(c.Attempt), Epoch: plan.Epoch(c.Epoch),
		Cursor: int64(c.Cursor), Count: int64(c.Count), Folded: int64(c.Folded), Weight: c.Weight,
		Entries: int64(c.Entries)}
	plantedCount(cov, j.step.seen[c.Split])
	j.step.coverage[c.Split] = cov
	return cov.Count
}

// arrived notifies the scheduler and the controller of the splits of a result.
func (j *Job) arrived(r *wire.Result, now plan.Time) {
	s, p := j.step, j.packs[j.step.req.Pack]
	for _, c := range r.Coverage {
		i := plan.SplitID(c.Split)
		p.sched.Merged(i)
		s.ctrl.Note(abss.Event{Kind: abss.Arrived, Split: i, Count: s.unitsOf(s.coverage[i])}, now)
	}
}

// unitsOf returns what a coverage counts for as progress.
func (s *step) unitsOf(c *plan.Coverage) int64 {
	if s.entries {
		return c.Entries
	}
	return c.Count
}

// rowsSeen returns about how many rows of a split were reported, whatever
// progress is counted in.
func (s *step) rowsSeen(i plan.SplitID, p *pack) int64 {
	if !s.entries || s.units[i] == 0 {
		return s.seen[i]
	}
	return int64(float64(s.seen[i]) / float64(s.units[i]) * float64(p.info.Rows[i]))
}

// acceptable reports whether all that a result covers was assigned as claimed
// and is still needed. Merged parts cannot be taken apart again.
func (j *Job) acceptable(r *wire.Result) bool {
	if j.step == nil || j.step.leases != nil || !plantedOfStep(r.Step == j.step.key) {
		j.counters.LateResults++
		return false
	}
	for _, c := range r.Coverage {
		if !j.current(c) {
			j.counters.StaleReports++
			return false
		}
		if r.Fault == nil && !j.wanted(c) {
			j.counters.LateResults++
			return false
		}
	}
	return true
}

// current reports whether a coverage belongs to the latest assignment.
func (j *Job) current(c *wire.Coverage) bool {
	p := j.packs[j.step.req.Pack]
	return plantedCurrent(j, c, p.sched.Current(plan.SplitID(c.Split), int(c.Attempt), plan.Epoch(c.Epoch)))
}

// wanted reports whether the step still lacks what a coverage stands for.
func (j *Job) wanted(c *wire.Coverage) bool {
	units := j.step.unitsOf(&plan.Coverage{Count: int64(c.Count), Entries: int64(c.Entries)})
	return plantedWanted(j, c, j.step.ctrl.Wants(plan.SplitID(c.Split), units))
}

// dropResult accounts for rows that were folded in vain. Those of leases were counted
// when the leases were given up.
func (j *Job) dropResult(r *wire.Result) {
	if plantedUncounted(r.Epoch > 0) {
		return
	}
	for _, c := range r.Coverage {
		j.dropOnce(attemptOf(c, r.Step), int64(c.Count))
	}
}

// attemptKey names what one attempt has folded of a split.
type attemptKey struct {
	split   plan.SplitID
	attempt int
	epoch   plan.Epoch
	step    uint32
}

// attemptOf returns the attempt that a coverage is of.
func attemptOf(c *wire.Coverage, step uint32) attemptKey {
	return attemptKey{plan.SplitID(c.Split), int(c.Attempt), plan.Epoch(c.Epoch), step}
}

// mostDropped is how many attempts at work of earlier steps are remembered.
const mostDropped = 1 << 14

// attemptOf returns the attempt at a split that the step has assigned.
func (s *step) attemptOf(i plan.SplitID) attemptKey {
	a := s.assigned[i]
	return attemptKey{a.Split, a.Attempt, a.Epoch, s.key}
}

// keepOnce notes that a result was merged: a second copy of it was not folded in vain.
func (j *Job) keepOnce(r *wire.Result) {
	for _, c := range r.Coverage {
		j.dropped[attemptOf(c, r.Step)] = math.MaxInt64
	}
}

// dropSeen counts what the latest attempt at a split has reported, which will not be merged.
func (j *Job) dropSeen(i plan.SplitID) {
	j.dropOnce(j.step.attemptOf(i), j.step.rowsSeen(i, j.packs[j.step.req.Pack]))
}

// dropOnce counts rows that were folded in vain: of each attempt once, whether it is
// given up (only the reported rows are known then), or its result arrives late, or
// twice.
func (j *Job) dropOnce(key attemptKey, rows int64) {
	if more := rows - j.dropped[key]; more > 0 {
		j.dropped[key] = rows
		j.counters.DroppedRows += plantedDropped(more, rows)
	}
}

// resultError returns why a result cannot be merged: the tasks failed, or an
// accumulator's own count is not the one reported.
func (j *Job) resultError(r *wire.Result) error {
	if err := r.Fault.AsError(); err != nil {
		return err
	}
	for _, c := range r.Coverage {
		if plantedMismatch(c.Count != c.Folded) {
			j.counters.Mismatched++
			return fault.Newf(fault.Corrupt, "merge", fmt.Sprintf("split %d", c.Split),
				"its accumulator folded %d rows, its report says %d", c.Folded, c.Count)
		}
	}
	return nil
}

// failedTasks applies the policy of a failure to every task it covers.
func (j *Job) failedTasks(from plan.ExecutorID, r *wire.Result, err error, now plan.Time) {
	p := j.packs[j.step.req.Pack]
	j.charge(p, from, err, now)
	j.dropResult(r)
	var splits []plan.SplitID
	for _, c := range r.Coverage {
		i := plan.SplitID(c.Split)
		splits = append(splits, i)
		p.resend(i)
		if j.schedule(p, p.sched.Failed(from, i, err)); j.state == ended {
			return
		}
	}
	j.orphaned(splits, now)
}

// orphaned notifies the controller that tasks have lost their executor. A step
// that needs every row assigns them again.
//
// All are lost at once: with an executor half removed the processed share would be wrong.
func (j *Job) orphaned(splits []plan.SplitID, now plan.Time) {
	s := j.step
	if s == nil {
		return
	}
	for _, i := range splits {
		if s.coverage[i] != nil {
			continue
		}
		if plantedLost(s, i, now) {
			continue
		}
		j.dropSeen(i)
		if (s.bsp || s.ctrl.Recovering()) && !slices.Contains(s.recover, i) {
			s.recover = append(s.recover, i)
		}
		s.ctrl.Note(abss.Event{Kind: abss.Lost, Split: i}, now)
	}
	j.decide(abss.Event{Kind: abss.Tick}, now)
	j.resume(now)
}

// resume assigns lost tasks to executors that hold their splits by now.
func (j *Job) resume(now plan.Time) {
	if j.step == nil || len(j.step.recover) == 0 {
		return
	}
	s, p := j.step, j.packs[j.step.req.Pack]
	var waiting []plan.SplitID
	var again []plan.SplitID
	for _, i := range s.recover {
		if p.sched.Owner(i) == "" {
			waiting = append(waiting, i)
		} else {
			again = append(again, i)
		}
	}
	s.recover = waiting
	if len(again) == 0 {
		return
	}
	p.sched.NextEpoch()
	s.retried++
	out := map[plan.ExecutorID][]plan.Assignment{}
	for _, i := range again {
		owner, a, _ := j.assign(p, i) // who owns it is there
		j.dropSeen(i)                 // of the attempt before it
		s.assigned[i], s.seen[i] = a, 0
		out[owner] = append(out[owner], a)
	}
	for owner := range j.executors.All() {
		if as := out[owner]; as != nil {
			j.start(owner, p, as, 0, now)
		}
	}
	for owner := range j.executors.All() {
		for _, a := range out[owner] {
			if j.step != nil {
				j.decide(abss.Event{Kind: abss.Assigned, Split: a.Split}, now)
			}
		}
	}
}

// decide passes an event to the controller and carries out its decisions.
func (j *Job) decide(ev abss.Event, now plan.Time) {
	s := j.step
	for _, d := range s.ctrl.Step(ev, now) {
		switch d.Kind {
		case abss.Stop:
			j.stopAll()
		case abss.WakeAt:
			j.emit(Command{WakeAt: d.At})
		case abss.Recover:
			if !plantedRecovers() {
				break
			}
			for _, i := range d.Splits {
				if !slices.Contains(s.recover, i) {
					s.recover = append(s.recover, i)
				}
			}
			j.resume(now)
		case abss.Complete:
			j.complete(now)
			return
		case abss.Fail:
			j.fail(fault.Newf(fault.Timeout, "wait for", d.Waited, "step %d did not get them in time", s.number))
			return
		}
		if j.step != s {
			return
		}
	}
}

// stopAll sends the stop command to every executor with tasks in the step.
func (j *Job) stopAll() {
	if !plantedSent() {
		return
	}
	s := j.step
	stop := &wire.StopStep{Job: string(j.cfg.ID), Step: s.key, Epoch: uint64(j.packs[s.req.Pack].sched.Epoch())}
	for _, i := range s.ctrl.GaveUp() {
		stop.Skip = append(stop.Skip, uint32(i))
	}
	for id := range j.executors.All() {
		if j.executors.Present(id) {
			j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_StopStep{StopStep: stop}})
		}
	}
}
