package driver

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// The records of a tape. Each is a kind, the nanoseconds since the record before it, and
// what of the event the job's decisions depend on: numbers as varints, measurements as
// eight bytes, and of parts and parameters only the sizes.
const (
	tapeBegan uint64 = iota
	tapeJoined
	tapeLost
	tapePrepared
	tapeHolding
	tapeProgress
	tapeResult
	tapePieces
	tapeTick
	tapePack
	tapeStep
	tapeRestored
	tapeSignal
	tapeDrain
	tapeAbandoned
	tapeReady
	tapeRemade
	tapeReopened
)

// leastKept and keptShare bound what a log keeps of the reports of one step: an hundredth of
// the bytes that the step sent, or as much as this.
const (
	leastKept = 64 << 10
	keptShare = 100
)

// mostRecorded bounds what is recorded until a step ends, as a job of actions alone
// has no steps.
const mostRecorded = 16 << 20

// tape records the job's events since its last step, compactly, so that a replay decides the same
// again (see Retelling). Actions are left out: they decide nothing about steps.
type tape struct {
	buf  []byte
	last plan.Time // of the last record
	who  map[plan.ExecutorID]int
	full bool // a step had more than may be kept: recording has ended
	// Reports since then that decided nothing: they become one record, at the time of the last
	// of them.
	counts map[int]int64
	stale  int
	since  plan.Time // of the first of them
	at     plan.Time // of the last
	told   []told    // the counts of the message in hand
	result []byte    // the result in hand, as a record
	again  *pack     // that the event in hand opens, after it was given up
	before tapeMark
}

// told is one count of a progress report; without a split it counts stale reports.
type told struct {
	split int
	count int64
}

var staleCount = told{-1, 1}

// tapeMark is the state that an event may have changed and that decides something.
type tapeMark struct {
	step  *step
	abss  abss.Mark
	stale int64
}

func newTape(cfg JobConfig, now plan.Time) *tape {
	t := &tape{who: map[plan.ExecutorID]int{}, counts: map[int]int64{}}
	t.head(tapeBegan, now)
	t.number(uint64(cfg.Life))
	t.flag(cfg.Again)
	return t
}

func (t *tape) number(n uint64) { t.buf = binary.AppendUvarint(t.buf, n) }

func (t *tape) signed(n int64) { t.buf = binary.AppendVarint(t.buf, n) }

func (t *tape) float(f float64) {
	t.buf = binary.LittleEndian.AppendUint64(t.buf, math.Float64bits(f))
}

func (t *tape) flag(b bool) {
	if b {
		t.buf = append(t.buf, 1)
	} else {
		t.buf = append(t.buf, 0)
	}
}

func (t *tape) head(kind uint64, now plan.Time) {
	t.number(kind)
	t.signed(int64(now - t.last))
	t.last = now
}

// executor writes an executor's number, and the first time its name.
func (t *tape) executor(id plan.ExecutorID) {
	k, known := t.who[id]
	if !known {
		k = len(t.who)
		t.who[id] = k
	}
	if t.number(uint64(k)); !known {
		t.number(uint64(len(id)))
		t.buf = append(t.buf, id...)
	}
}

func (t *tape) fault(f *wire.Fault) {
	t.flag(f != nil)
	if f != nil {
		t.number(uint64(f.Kind))
	}
}

// observe is called before the job sees an event.
func (t *tape) observe(j *Job, ev Event) {
	t.before = markOf(j)
	t.told = t.told[:0]
	if t.again = nil; ev.Pack != nil {
		t.again = j.givenUp(ev.Pack.Node)
	}
	switch p := progressOf(ev); {
	case t.full:
	case p != nil:
		t.told = j.countsOf(p, t.told)
	case ev.Message != nil && ev.Message.Body.GetResult() != nil:
		t.encodeResult(j, ev.Message.Body.GetResult())
	}
}

// encodeResult encodes a result while its assignments are still known.
func (t *tape) encodeResult(j *Job, r *wire.Result) {
	whole := t.buf
	t.buf = t.result[:0]
	t.resultOf(j, r)
	t.result, t.buf = t.buf, whole
}

func markOf(j *Job) tapeMark {
	m := tapeMark{step: j.step, stale: j.counters.StaleReports}
	if j.step != nil && j.step.ctrl != nil {
		m.abss = j.step.ctrl.Mark()
	}
	return m
}

func progressOf(ev Event) *wire.Progress {
	if ev.Message == nil {
		return nil
	}
	return ev.Message.Body.GetProgress()
}

// countsOf returns the counts of a report as the job is about to take them.
func (j *Job) countsOf(r *wire.Progress, out []told) []told {
	if j.step == nil || j.step.leases != nil || r.Step != j.step.key {
		return append(out, staleCount)
	}
	p := j.packs[j.step.req.Pack]
	for _, c := range r.Counts {
		t := told{int(c.Split), int64(c.Processed)}
		if !p.sched.Current(plan.SplitID(c.Split), int(c.Attempt), plan.Epoch(c.Epoch)) {
			t = staleCount
		}
		out = append(out, t)
	}
	return out
}

// record is called once the job has seen an event.
func (t *tape) record(j *Job, ev Event, now plan.Time) {
	if t.full {
		return
	}
	quiet := t.quiet(j)
	switch {
	case progressOf(ev) != nil && quiet:
		t.gather(now, j.cfg.Sync.StepTimeout/4)
	case progressOf(ev) != nil:
		t.flush()
		t.progress(t.told, now)
	case ev == Event{} && (quiet && (j.step == nil || j.step.leases == nil) || plantedTicks()):
	case !t.event(j, ev, now): // of an action
		t.stale += int(j.counters.StaleReports - t.before.stale)
	}
	if slices.ContainsFunc(j.out, func(c Command) bool { return c.Ready }) {
		t.head(tapeReady, now)
	}
	if len(t.buf) > mostRecorded {
		t.full, t.buf = true, nil
	}
}

// quiet reports whether an event has decided nothing: no command but a wake-up has
// followed, and the step waits for the same as before.
func (t *tape) quiet(j *Job) bool {
	now := markOf(j)
	now.stale = t.before.stale
	return now == t.before && !slices.ContainsFunc(j.out, func(c Command) bool { return c.WakeAt == 0 })
}

// gather keeps counts that have decided nothing: later reports replace them, but not for so
// long that a job that is fed only the last of them would have timed out.
func (t *tape) gather(now, atMost plan.Time) {
	if len(t.counts) > 0 && now-t.since > atMost {
		t.flush()
	}
	for _, c := range t.told {
		if c.split < 0 {
			t.stale += int(c.count)
			continue
		}
		if len(t.counts) == 0 {
			t.since = now
		}
		t.at = now
		t.counts[c.split] = max(t.counts[c.split], c.count)
	}
}

// flush records what was gathered.
func (t *tape) flush() {
	if len(t.counts) == 0 && t.stale == 0 || plantedCounts() {
		return
	}
	var all []told
	for split, n := range t.counts {
		all = append(all, told{split, n})
	}
	slices.SortFunc(all, func(a, b told) int { return a.split - b.split })
	if t.stale > 0 {
		all = append(all, told{-1, int64(t.stale)})
	}
	clear(t.counts)
	t.stale = 0
	t.progress(all, max(t.at, t.last))
}

func (t *tape) progress(all []told, now plan.Time) {
	t.head(tapeProgress, now)
	t.number(uint64(len(all)))
	for _, c := range all {
		t.number(uint64(c.split + 1))
		t.number(uint64(c.count))
	}
}

// event records anything else; one of an action is left out.
func (t *tape) event(j *Job, ev Event, now plan.Time) bool {
	if ev.Call != nil || ev.Extend != nil || ev.Message != nil &&
		(ev.Message.Body.GetTaskResult() != nil || ev.Message.Body.GetTaskProgress() != nil) {
		return false
	}
	t.flush()
	switch {
	case ev.Joined != nil:
		t.head(tapeJoined, now)
		t.executor(ev.Joined.Executor)
		t.number(uint64(ev.Joined.Slots))
	case ev.Lost != nil:
		t.head(tapeLost, now)
		t.executor(ev.Lost.Executor)
	case ev.Message != nil:
		t.message(j, ev.Message, now)
	case t.again != nil:
		t.head(tapeReopened, now)
		t.number(uint64(t.again.id))
	case ev.Pack != nil:
		t.pack(ev.Pack, now)
	case ev.Remade != nil:
		t.head(tapeRemade, now)
		t.number(uint64(ev.Remade.Pack))
		t.executor(ev.Remade.Maker)
	case ev.Step != nil:
		t.step(ev.Step, now)
	case ev.Restore != nil:
		t.restored(j, ev.Restore, now)
	case ev.Signal != nil:
		t.head(tapeSignal, now)
		t.float(ev.Signal.Spread)
		t.float(ev.Signal.Norm)
	case ev.Drain != "":
		t.head(tapeDrain, now)
		t.executor(ev.Drain)
	default:
		t.head(tapeTick, now)
	}
	return true
}

func (t *tape) message(j *Job, m *Message, now plan.Time) {
	switch b := m.Body.Body.(type) {
	case *wire.ToDriver_Prepared:
		t.head(tapePrepared, now)
		t.executor(m.From)
		t.flag(plan.DigestFromBytes(b.Prepared.Fingerprint) == j.cfg.Fingerprint)
		t.fault(b.Prepared.Fault)
	case *wire.ToDriver_Holding:
		t.head(tapeHolding, now)
		t.executor(m.From)
		t.number(uint64(b.Holding.Pack))
		t.number(uint64(b.Holding.Split))
		t.fault(b.Holding.Fault)
	case *wire.ToDriver_Result:
		t.head(tapeResult, now)
		t.executor(m.From)
		t.buf = append(t.buf, t.result...)
	case *wire.ToDriver_PiecesFolded:
		t.head(tapePieces, now)
		t.executor(m.From)
		t.number(uint64(b.PiecesFolded.Step))
		t.epoch(j, b.PiecesFolded.Epoch)
		t.number(uint64(len(b.PiecesFolded.Ids)))
		for _, id := range b.PiecesFolded.Ids {
			t.number(uint64(id))
		}
	}
}

// epoch writes one as it counts from the first of this life.
func (t *tape) epoch(j *Job, e uint64) { t.signed(int64(e - uint64(j.term()))) }

func (t *tape) resultOf(j *Job, r *wire.Result) {
	t.number(uint64(r.Step))
	t.number(r.BusyNs)
	t.flag(r.Epoch > 0)
	if r.Epoch > 0 {
		t.epoch(j, r.Epoch)
	}
	t.fault(r.Fault)
	t.number(uint64(len(r.Coverage)))
	for _, c := range r.Coverage {
		t.coverage(j, c)
	}
	var parts, bytes uint64
	var states []*wire.Part
	for _, p := range r.Parts {
		if p.State {
			states = append(states, p)
		} else {
			parts++
			bytes += uint64(len(p.Data))
		}
	}
	t.number(plantedParts(parts))
	t.number(bytes)
	t.number(uint64(len(states)))
	for _, p := range states {
		t.number(uint64(p.Index))
		t.number(uint64(len(p.Data)))
	}
}

// What a coverage says beside its split and count.
const (
	coversLease   uint64 = 1 << iota
	coversWeight         // of the rows
	coversEntries        // of the rows
	coversOther          // its accumulator has folded another number of rows
	coversOld            // it is not of its split's assignment in the step
)

func (t *tape) coverage(j *Job, c *wire.Coverage) {
	has := t.coverageHas(j, c)
	t.number(has)
	t.number(uint64(c.Split))
	t.number(c.Count)
	if has&coversOld > 0 {
		t.number(uint64(c.Attempt))
		t.epoch(j, c.Epoch)
		t.number(c.Cursor)
	}
	if has&coversLease > 0 {
		t.number(uint64(c.Lease))
	}
	if has&coversWeight > 0 {
		t.float(c.Weight)
	}
	if has&coversEntries > 0 {
		t.number(c.Entries)
	}
	if has&coversOther > 0 {
		t.number(c.Folded)
	}
}

func (t *tape) coverageHas(j *Job, c *wire.Coverage) (has uint64) {
	set := func(bit uint64, on bool) {
		if on {
			has |= bit
		}
	}
	set(coversLease, c.Lease > 0)
	set(coversWeight, c.Weight != 0)
	set(coversEntries, c.Entries > 0)
	set(coversOther, c.Folded != c.Count)
	a, ok := j.assignmentOf(c.Split)
	set(coversOld, !ok || a.Attempt != int(c.Attempt) || a.Epoch != plan.Epoch(c.Epoch) || a.Cursor != int64(c.Cursor))
	return has
}

// assignmentOf returns a split's assignment in the step, if there is one.
func (j *Job) assignmentOf(split uint32) (a plan.Assignment, ok bool) {
	if j.step == nil || int(split) >= len(j.step.assigned) {
		return a, false
	}
	return j.step.assigned[split], true
}

// Who has made a pack: any executor can take any of its splits; one has it, and others can make it; one has it, and no
// other can make it.
const (
	madeByAll uint64 = iota
	madeByOne
	madeOnce
)

// pack writes what the log's other lines do not have of a pack.
func (t *tape) pack(p *PackInfo, now plan.Time) {
	t.head(tapePack, now)
	t.number(uint64(p.Node))
	switch {
	case p.Maker == "":
		t.number(madeByAll)
	case p.Sourceless:
		t.number(madeOnce)
	default:
		t.number(madeByOne)
	}
	if p.Maker != "" {
		t.executor(p.Maker)
	}
	t.number(uint64(len(p.Bytes)))
	for _, n := range p.Bytes {
		t.number(uint64(n))
	}
}

func (t *tape) step(r *plan.StepRequest, now plan.Time) {
	t.head(tapeStep, now)
	t.number(uint64(r.Node))
	t.number(uint64(r.Pack))
	t.number(uint64(len(r.Param)))
	for _, b := range []bool{r.Train, r.State, r.Weighted, r.Entries, r.Sample, r.Work} {
		t.flag(b)
	}
	t.float(r.Ratio)
	t.float(r.Batch)
	t.number(uint64(len(r.Pieces)))
	for _, n := range r.Pieces {
		t.number(uint64(n))
	}
}

// restored writes what the resume line does not have of a checkpoint.
func (t *tape) restored(j *Job, r *Restored, now plan.Time) {
	t.head(tapeRestored, now)
	t.number(uint64(r.Pack))
	t.epoch(j, uint64(r.Epoch))
	t.float(r.Ratio)
	t.flag(j.cfg.FixedCursors)
	for i := 0; j.cfg.FixedCursors && i < len(r.Entries); i++ {
		t.number(uint64(r.Entries[i].Whole))
	}
	t.number(uint64(len(r.States)))
	for _, s := range r.States {
		t.number(uint64(s.Node))
		t.number(uint64(s.Split))
		t.number(uint64(len(s.Data)))
	}
}

func (t *tape) abandoned() {
	if !t.full {
		t.flush()
		t.head(tapeAbandoned, t.last)
	}
}

// take hands over what was recorded up to the end of a step that has sent a given number of bytes.
// Where that is more than a step may keep nothing is recorded from now on, and false is
// returned.
func (t *tape) take(bytes int64) ([]byte, bool) {
	if t.full {
		return nil, false
	}
	if len(t.buf) > leastKept && int64(len(t.buf)) > bytes/keptShare {
		t.full, t.buf = true, nil
		return nil, false
	}
	out := t.buf
	t.buf = nil
	return out, true
}
