package driver

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
)

// Retelling replays the tape of a job to another one: given the same options it decides the
// same, or the tape or the options are not those of that job.
type Retelling struct {
	cfg     JobConfig
	job     *Job
	packs   []PackInfo        // that the log describes, in the order in which they were opened
	resumed map[int]*Restored // the states that packs continued from, by the log
	names   []plan.ExecutorID // by the number that the tape has for them
	opened  int               // packs of the job's present life
	now     plan.Time
	in      []byte // of the tape
	zeros   []byte // stand-ins for parameters and parts, of which a tape has only the sizes
	ready   bool   // the job has begun, by a record still to come
	done    []*StepReport
	exactly bool        // exact, of the next life
	exact   bool        // time advances to the requested wake-ups: it is never late
	wakes   []plan.Time // requested wake-ups, the soonest first
	lives   int         // begun
	hashed  uint64      // bytes, for the tape in hand
}

// NewRetelling prepares a replay to a job of these options; see Under. Its term comes from the tape.
func NewRetelling(cfg JobConfig, exact bool) *Retelling {
	t := &Retelling{resumed: map[int]*Restored{}}
	t.Under(cfg, exact)
	return t
}

// Under runs the next process of the job under other options. Exact means that its clock
// was never late, as only a virtual one is: what the passing of time decided has to be on
// the tape.
func (t *Retelling) Under(cfg JobConfig, exact bool) {
	cfg.Record = false
	t.cfg, t.exactly = cfg, exact
}

// Lives returns how many processes of the job have begun.
func (t *Retelling) Lives() int { return t.lives }

// Awaits returns how many of the log's resumptions the tape has not reached.
func (t *Retelling) Awaits() int { return len(t.resumed) }

// Describe sets the rows, weights and entries of the next pack's splits.
func (t *Retelling) Describe(rows []int64, weights []float64, entries []int64) {
	t.packs = append(t.packs, PackInfo{Rows: rows, Weights: weights, Entries: entries})
}

// Resumed sets the state that a pack continued from.
func (t *Retelling) Resumed(r *Restored) { t.resumed[r.Pack] = r }

// ResumedAt does the same from a line of the log, which has a cursor for each split.
func (t *Retelling) ResumedAt(l *LogResume) {
	r := &Restored{Pack: l.Pack, Steps: l.Step}
	for i, n := range l.Merged {
		r.Entries = append(r.Entries, prioritizer.Entry{Cursor: l.Cursor[i], Merged: n})
	}
	t.Resumed(r)
}

// Slots returns the slots of each executor that has joined the job's present process.
func (t *Retelling) Slots() map[plan.ExecutorID]int {
	if t.job == nil {
		return nil
	}
	slots := map[plan.ExecutorID]int{}
	for id := range t.job.executors.All() {
		slots[id] = t.job.executors.SlotsOf(id)
	}
	return slots
}

// Executors returns the names of a pack's executors, by the numbers that lines and reports have for them, and which of
// them are lost.
func (t *Retelling) Executors(pack int) (names, lost []string) {
	s := t.job.packs[pack].sched
	alive := s.Alive()
	for _, id := range s.Executors() {
		if names = append(names, string(id)); !slices.Contains(alive, id) {
			lost = append(lost, string(id))
		}
	}
	return names, lost
}

// Now returns the time of the job at the last event fed.
func (t *Retelling) Now() plan.Time { return t.now }

// Tell feeds the job what was recorded up to the end of a step, and returns the steps
// that have ended, that one last. A record that no executor can have sent is an error.
func (t *Retelling) Tell(tape []byte) (steps []*StepReport, err error) {
	defer func() {
		if r := recover(); r != nil { // the job trusts its executors; a forged tape can violate what they keep to
			steps, err = nil, untold("they make no sense: %v", r)
		}
	}()
	t.in, t.done, t.hashed = tape, nil, 0
	for len(t.in) > 0 && err == nil {
		err = t.next()
	}
	if err == nil && len(t.done) == 0 {
		err = untold("under sync %s they do not end a step", t.cfg.Sync.Policy)
	}
	return t.done, err
}

func untold(format string, args ...any) error {
	return fault.Newf(fault.Corrupt, "replay", "the recorded events", format, args...)
}

// A cut tape panics, which Tell recovers from, as from any other that makes no sense.

func (t *Retelling) number() uint64 {
	n, k := binary.Uvarint(t.in)
	if k <= 0 {
		panic("they are cut short")
	}
	t.in = t.in[k:]
	return n
}

func (t *Retelling) signed() int64 {
	n, k := binary.Varint(t.in)
	if k <= 0 {
		panic("they are cut short")
	}
	t.in = t.in[k:]
	return n
}

func (t *Retelling) float() float64 {
	f := math.Float64frombits(binary.LittleEndian.Uint64(t.in))
	t.in = t.in[8:]
	return f
}

func (t *Retelling) flag() bool {
	b := t.in[0]
	t.in = t.in[1:]
	return b == 1
}

// count reads a number of items, each of which takes a byte or more.
func (t *Retelling) count() int {
	n := t.number()
	if n > uint64(len(t.in)) {
		panic("they are cut short")
	}
	return int(n)
}

func (t *Retelling) executor() plan.ExecutorID {
	k := t.number()
	if k == uint64(len(t.names)) {
		n := t.count()
		t.names = append(t.names, plan.ExecutorID(t.in[:n]))
		t.in = t.in[n:]
	}
	return t.names[k]
}

func (t *Retelling) fault() *wire.Fault {
	if !t.flag() {
		return nil
	}
	return &wire.Fault{Kind: uint32(t.number()), Op: "run", Subject: "work", Message: "as the event log says"}
}

func (t *Retelling) epoch() uint64 { return uint64(t.job.term()) + uint64(t.signed()) }

// Bounds of a tape's values: of one parameter or part; of the row state of one split,
// which is hashed; of slots and pieces; and of wake-ups between two events.
const (
	mostZeros  = 2 << 30
	mostState  = 1 << 30
	mostHashed = 8 << 30 // in one line's reports
	mostPieces = 1 << 12 // of a split
	mostWakes  = 1 << 20
)

// state stands for the row state of a split.
func (t *Retelling) state() []byte {
	out := t.data(mostState)
	if t.hashed += uint64(len(out)); t.hashed > mostHashed {
		panic("more row state than any machine holds")
	}
	return out
}

// small reads a number that stands for a small size.
func (t *Retelling) small(most uint64) int {
	n := t.number()
	if n > most {
		panic("a number is larger than any")
	}
	return int(n)
}

// data reads a size, and returns as many bytes: their content decides nothing.
func (t *Retelling) data(most uint64) []byte {
	n := uint64(t.small(most))
	if n > uint64(len(t.zeros)) {
		t.zeros = make([]byte, n)
	}
	return t.zeros[:n]
}

// next feeds one record to the job.
func (t *Retelling) next() error {
	kind := t.number()
	if t.now += plan.Time(t.signed()); kind == tapeBegan {
		t.begin()
		return nil
	}
	switch {
	case t.job == nil:
		return untold("they begin in the middle of a job")
	case kind == tapeReady && !t.ready:
		return untold("by these options the job would have waited for more executors")
	case kind == tapeReady:
		t.ready = false
		return nil
	case t.ready:
		return untold("by these options the job would have begun with fewer executors")
	case kind == tapeAbandoned:
		t.job.Abandon()
		return nil
	}
	ev, err := t.event(kind)
	if err != nil {
		return err
	}
	return t.tell(ev)
}

// begin begins a process of the job.
func (t *Retelling) begin() {
	t.cfg.Life, t.cfg.Again = uint32(t.number()), t.flag()
	t.job, t.names, t.opened, t.ready, t.wakes = NewJob(t.cfg, t.now), nil, 0, false, nil
	t.exact = t.exactly
	t.lives++
}

// slept feeds the job the wake-ups that it requested before the next event. Those that decide
// something would have been recorded.
func (t *Retelling) slept() error {
	for n := 0; len(t.wakes) > 0 && t.wakes[0] < t.now; n++ {
		if n == mostWakes {
			return untold("by these options the job would have been woken more than %d times between two of them", n)
		}
		at := t.wakes[0]
		t.wakes = t.wakes[1:]
		before := markOf(t.job)
		for _, c := range t.job.Step(Event{}, at) {
			if c.WakeAt == 0 {
				return untold("by these options the job would have decided to stop or to go on %v after it began", at)
			}
			if c.WakeAt > at {
				t.wake(c.WakeAt)
			}
		}
		if markOf(t.job) != before {
			return untold("by these options the job would have stopped waiting %v after it began", at)
		}
	}
	return nil
}

func (t *Retelling) wake(at plan.Time) {
	if i, there := slices.BinarySearch(t.wakes, at); t.exact && !there {
		t.wakes = slices.Insert(t.wakes, i, at)
	}
}

func (t *Retelling) tell(ev Event) error {
	if err := t.slept(); err != nil {
		return err
	}
	if ev == (Event{}) && len(t.wakes) > 0 && t.wakes[0] == t.now {
		t.wakes = t.wakes[1:] // this one
	}
	for _, c := range t.job.Step(ev, t.now) {
		switch {
		case c.StepDone != nil:
			t.done = append(t.done, c.StepDone)
		case c.Failed != nil:
			return untold("by these options the job would have failed: %v", c.Failed)
		case c.Ready:
			t.ready = true
		case c.WakeAt > 0:
			t.wake(c.WakeAt)
		}
	}
	return nil
}

// event reads an event.
func (t *Retelling) event(kind uint64) (Event, error) {
	switch kind {
	case tapeTick:
		return Event{}, nil
	case tapeJoined:
		return Event{Joined: t.joined()}, nil
	case tapeLost:
		return Event{Lost: &Lost{Executor: t.executor(), Why: "as the event log says"}}, nil
	case tapeDrain:
		return Event{Drain: t.executor()}, nil
	case tapeSignal:
		return Event{Signal: &Signal{Spread: t.float(), Norm: t.float()}}, nil
	case tapeProgress:
		return Event{Message: &Message{Body: t.progress()}}, nil
	case tapePrepared, tapeHolding, tapeResult, tapePieces:
		return Event{Message: &Message{From: t.executor(), Body: t.message(kind)}}, nil
	case tapePack:
		return t.pack()
	case tapeReopened:
		at := int(t.number())
		if at < 0 || at >= t.opened || at >= len(t.job.packs) {
			return Event{}, untold("pack %d is opened again, which is not open", at)
		}
		return Event{Pack: t.job.packs[at].info}, nil
	case tapeRemade:
		r := &Remade{Pack: int(t.number()), Maker: t.executor()}
		if r.Pack < 0 || r.Pack >= t.opened {
			return Event{}, untold("pack %d is made again, which is not open", r.Pack)
		}
		return Event{Remade: r}, nil
	case tapeStep:
		return t.step()
	case tapeRestored:
		return t.restored()
	}
	return Event{}, untold("record %d is of no kind", kind)
}

func (t *Retelling) joined() *Joined {
	j := &Joined{Executor: t.executor(), Slots: t.small(plan.MostSlots)}
	all := j.Slots
	for id := range t.job.executors.All() {
		all += t.job.executors.SlotsOf(id)
	}
	if all > plan.MostSlots {
		panic("there are more slots than any cluster has")
	}
	return j
}

// progress returns a report of the counts on the tape, each under its split's latest
// assignment, or, where it was stale, under none.
func (t *Retelling) progress() *wire.ToDriver {
	p := &wire.Progress{}
	s := t.job.step
	if s != nil {
		p.Step = s.key
	}
	for range t.count() {
		split, n := t.number(), t.number()
		switch {
		case split > 0 && (s == nil || split > uint64(len(s.assigned))):
			panic("a count is of no split")
		case split > 0:
			attempt, epoch := t.job.packs[s.req.Pack].sched.Latest(plan.SplitID(split - 1))
			p.Counts = append(p.Counts, &wire.Count{Split: uint32(split - 1), Attempt: uint32(attempt),
				Epoch: uint64(epoch), Processed: n})
		case n == 1 && s != nil && s.leases == nil: // unless the step ends before it is read
			p.Counts = append(p.Counts, &wire.Count{Attempt: math.MaxUint32})
		default:
			t.job.counters.StaleReports += int64(n)
		}
	}
	if s == nil || s.leases != nil { // they have been counted
		t.job.counters.StaleReports--
	}
	return &wire.ToDriver{Body: &wire.ToDriver_Progress{Progress: p}}
}

func (t *Retelling) message(kind uint64) *wire.ToDriver {
	switch kind {
	case tapePrepared:
		p := &wire.Prepared{Fingerprint: make([]byte, len(plan.Digest{}))}
		if t.flag() {
			p.Fingerprint = t.cfg.Fingerprint[:]
		}
		p.Fault = t.fault()
		return &wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: p}}
	case tapeHolding:
		return &wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Pack: uint32(t.number()),
			Split: uint32(t.number()), Fault: t.fault()}}}
	case tapePieces:
		p := &wire.PiecesFolded{Step: uint32(t.number()), Epoch: t.epoch()}
		for range t.count() {
			p.Ids = append(p.Ids, uint32(t.number()))
		}
		return &wire.ToDriver{Body: &wire.ToDriver_PiecesFolded{PiecesFolded: p}}
	}
	return &wire.ToDriver{Body: &wire.ToDriver_Result{Result: t.result()}}
}

// mostParts is how many parts of the merge tree a result has at the most.
const mostParts = 1 << 20

func (t *Retelling) result() *wire.Result {
	r := &wire.Result{Step: uint32(t.number()), BusyNs: t.number()}
	if t.flag() {
		r.Epoch = t.epoch()
	}
	r.Fault = t.fault()
	for range t.count() {
		r.Coverage = append(r.Coverage, t.coverage())
	}
	for range t.small(mostParts) {
		r.Parts = append(r.Parts, &wire.Part{})
	}
	if all := t.data(mostZeros); len(r.Parts) > 0 { // together they have as many bytes
		r.Parts[0].Data = all
	}
	for range t.count() {
		r.Parts = append(r.Parts, &wire.Part{State: true, Index: uint32(t.number()), Data: t.state()})
	}
	return r
}

func (t *Retelling) coverage() *wire.Coverage {
	has := t.number()
	c := &wire.Coverage{Split: uint32(t.number()), Count: t.number()}
	c.Folded = c.Count
	if has&coversOld > 0 {
		c.Attempt, c.Epoch, c.Cursor = uint32(t.number()), t.epoch(), t.number()
	} else if a, ok := t.job.assignmentOf(c.Split); ok {
		c.Attempt, c.Epoch, c.Cursor = uint32(a.Attempt), uint64(a.Epoch), uint64(a.Cursor)
	}
	if has&coversLease > 0 {
		c.Lease = uint32(t.number())
	}
	if has&coversWeight > 0 {
		c.Weight = t.float()
	}
	if has&coversEntries > 0 {
		c.Entries = t.number()
	}
	if has&coversOther > 0 {
		c.Folded = t.number()
	}
	return c
}

// pack returns the next that the log describes.
func (t *Retelling) pack() (Event, error) {
	if t.opened == len(t.packs) {
		return Event{}, untold("pack %d is not described", t.opened)
	}
	p := t.packs[t.opened]
	t.opened++
	p.Node = int(t.number())
	if by := t.number(); by > madeOnce {
		return Event{}, untold("pack %d is made in no known way", t.opened-1)
	} else if by > madeByAll {
		p.Maker, p.Sourceless = t.executor(), by == madeOnce
	}
	for range t.count() {
		p.Bytes = append(p.Bytes, int64(t.number()))
	}
	p.SHA256 = make([]plan.Digest, len(p.Rows))
	if len(p.Bytes) != len(p.Rows) {
		return Event{}, untold("pack %d is of %d splits, the log says %d", t.opened-1, len(p.Bytes), len(p.Rows))
	}
	return Event{Pack: &p}, nil
}

func (t *Retelling) step() (Event, error) {
	r := &plan.StepRequest{Node: int(t.number()), Pack: int(t.number()), Param: t.data(mostZeros),
		Digest: plan.Digest{1}}
	for _, said := range []*bool{&r.Train, &r.State, &r.Weighted, &r.Entries, &r.Sample, &r.Work} {
		*said = t.flag()
	}
	r.Ratio, r.Batch = t.float(), t.float()
	for range t.count() {
		r.Pieces = append(r.Pieces, t.small(mostPieces))
	}
	if r.Pack >= t.opened {
		return Event{}, untold("a step is of pack %d, which is not open", r.Pack)
	}
	return Event{Step: r}, nil
}

// restored returns the state that a pack continued from, by the log.
func (t *Retelling) restored() (Event, error) {
	pack := int(t.number())
	said := t.resumed[pack]
	if said == nil {
		return Event{}, untold("pack %d went on from a checkpoint, the log has no such line", pack)
	}
	delete(t.resumed, pack)
	r := Restored{Pack: pack, Steps: said.Steps, Entries: slices.Clone(said.Entries), Epoch: plan.Epoch(t.epoch()),
		Ratio: t.float()}
	if t.flag() {
		for i := range r.Entries {
			r.Entries[i].Whole = int64(t.number())
		}
	}
	for range t.count() {
		r.States = append(r.States, RestoredState{Node: int(t.number()), Split: int(t.number()), Data: t.state()})
	}
	return Event{Restore: &r}, nil
}
