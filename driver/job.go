package driver

import (
	"fmt"
	"slices"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
	"github.com/volley-engine/volley/scheduler"
)

// JobConfig configures a job. The zero value of a field takes its default.
type JobConfig struct {
	ID             plan.JobID
	Life           uint32 // number of the job's process, from which its epochs are made
	Again          bool   // an earlier process has run the job
	Fingerprint    plan.Digest
	Sources        []byte        // the resolved inputs, for the executors
	Executors      int           // executors that must have joined before the job begins; default 1
	Gather         time.Duration // after this long it begins with those that have; default MaxWait
	Sync           abss.Config
	Exchange       prioritizer.ExchangeConfig
	Schedule       scheduler.Config
	FixedCursors   bool          // each step starts at a split's first row
	ByRows         bool          // weighting by rows: partial results are not scaled
	BatchFraction  float64       // share of each split that a training step folds; 0 and 1 are all
	ReportInterval time.Duration // 0: a twentieth of the last step, 2 ms to 1 s
	MaxWait        time.Duration // bound of waits for executors and splits; default 10 min
	TaskTimeout    time.Duration // that a task of an action may go without progress; default 10 min
	Record         bool          // reports of steps have the events that they were decided from
}

// EnsureDefaults fills in the fields left zero.
func (c JobConfig) EnsureDefaults() JobConfig {
	if c.Executors == 0 {
		c.Executors = 1
	}
	if c.MaxWait == 0 {
		c.MaxWait = 10 * time.Minute
	}
	if c.TaskTimeout == 0 {
		c.TaskTimeout = 10 * time.Minute
	}
	if c.Gather == 0 {
		c.Gather = c.MaxWait
	}
	c.Sync = c.Sync.EnsureDefaults()
	c.Exchange = c.Exchange.EnsureDefaults()
	c.Schedule = c.Schedule.EnsureDefaults()
	return c
}

// PackInfo describes a pack: rows, size in bytes and content hash of each
// split.
type PackInfo struct {
	Node  int             // of the plan
	Maker plan.ExecutorID // holds all of it; empty where every executor can take any split
	// Sourceless says that no executor can make a split from files alone: it is of shuffled rows.
	Sourceless bool
	Rows       []int64
	// Weights are the sums of the weights of each split's rows; nil where rows have none.
	Weights []float64
	// Entries are how many entries the rows of each split have, where they are sparse.
	Entries []int64
	Bytes   []int64
	SHA256  []plan.Digest
}

// rows returns how many rows all splits have.
func (p *PackInfo) rows() (n int64) {
	for _, rows := range p.Rows {
		n += rows
	}
	return n
}

// weigh returns the weight of each split in a step: its number of rows, or the
// sum of their weights where these are used.
func (p *PackInfo) weigh(weighted bool) []float64 {
	if plantedWeighted(weighted && p.Weights != nil) {
		return p.Weights
	}
	out := make([]float64, len(p.Rows))
	for i, n := range p.Rows {
		out[i] = float64(n)
	}
	return out
}

// Event is something that happened to the job. Exactly one field is set;
// Tick is the zero event.
type Event struct {
	Joined  *Joined
	Lost    *Lost
	Message *Message
	Pack    *PackInfo         // the session opens a pack; packs are numbered in order
	Extend  *plan.Extension   // the session's plan has grown
	Remade  *Remade           // of the session's packs
	Step    *plan.StepRequest // the session asks for a step
	Call    *plan.CallRequest // the session asks for an action
	Restore *Restored
	Signal  *Signal
	Drain   plan.ExecutorID // moves the executor's splits elsewhere
}

// Signal is a step's measurements of the gradient: the standard deviation of its splits'
// mean gradients, and the norm of their mean.
type Signal struct{ Spread, Norm float64 }

// Joined is the registration of an executor.
type Joined struct {
	Executor plan.ExecutorID
	Slots    int
}

// Lost is the loss of an executor, and how it was detected.
type Lost struct {
	Executor plan.ExecutorID
	Why      string
}

// Message is what an executor has sent.
type Message struct {
	From plan.ExecutorID
	Body *wire.ToDriver
}

// Restored is a pack's progress from a checkpoint.
type Restored struct {
	Pack    int
	Steps   int
	Epoch   plan.Epoch
	Entries []prioritizer.Entry
	Ratio   float64         `json:",omitempty"` // that auto has found for the next step
	States  []RestoredState `json:",omitempty"`
}

// RestoredState is the row state of a split for a step's node.
type RestoredState struct {
	Node, Split int
	Data        []byte
}

// Command is something for the shell to do. Exactly one field is set.
type Command struct {
	Send     *Outgoing
	WakeAt   plan.Time
	Ready    bool              // enough executors have joined and built the plan
	PackOpen *int              // every split of this pack is held
	PackGone *Gone             // a pack has to be made again before what the session asks for
	Extended bool              // all executors have the plan as it is now
	StepDone *StepReport       // the step has ended
	CallDone *plan.CallOutcome // of an action
	Failed   error             // the job has failed
	Drained  plan.ExecutorID   // it has no split of this job left
	Excluded *Exclusion
}

// Gone is a pack of which no executor has all rows any more.
type Gone struct {
	Pack   int
	Making int    // how often it has been made again
	Call   uint64 // that read it, and is ended by this; 0 is none
}

// Error returns which pack it is.
func (g *Gone) Error() string { return fmt.Sprintf("pack %d is gone", g.Pack) }

// Exclusion means that an executor gets no work for a while, or, without a
// reason, that the exclusion has ended.
type Exclusion struct {
	Executor plan.ExecutorID
	Why      string
}

// Outgoing is a message to an executor.
type Outgoing struct {
	To   plan.ExecutorID
	Body *wire.ToExecutor
}

// Counters count what did not become part of a result.
type Counters struct {
	StaleReports  int64 // progress or results of an older epoch or attempt
	LateResults   int64 // results that arrived after their step had ended
	Mismatched    int64 // accumulators whose own count differed from their report
	DroppedRows   int64 // rows folded whose result was not merged
	Moves         int64 // splits that changed owner by exchange
	MovedBytes    int64
	ExecutorsLost int64
	Speculated    int64 // second attempts of slow tasks
}

// Job is the state machine of one job.
type Job struct {
	cfg       JobConfig
	state     jobState
	began     plan.Time
	executors *scheduler.Executors
	growth    growth
	packs     []*pack
	step      *step
	steps     int
	keys      uint32    // steps and passes begun
	lastStep  plan.Time // how long the last training step took
	ratio     float64   // that it was cut at
	open      []*call   // actions in progress, in the order in which they began
	calls     uint64
	counters  Counters
	draining  map[plan.ExecutorID]bool
	dropped   map[attemptKey]int64 // rows that have been counted
	auto      *abss.Auto           // nil under other policies
	out       []Command
	tape      *tape // of the job's events; nil where they are not recorded
}

type jobState uint8

const (
	gathering jobState = iota // waiting for executors
	ready
	ended
)

// NewJob returns the machine of a new job.
func NewJob(cfg JobConfig, now plan.Time) *Job {
	cfg = cfg.EnsureDefaults()
	j := &Job{cfg: cfg, began: now, executors: scheduler.NewExecutors(), draining: map[plan.ExecutorID]bool{},
		dropped: map[attemptKey]int64{}}
	if cfg.Sync.Policy == abss.Automatic {
		j.auto = abss.NewAuto(cfg.Sync)
	}
	if cfg.Record {
		j.tape = newTape(cfg, now)
	}
	return j
}

// Counters returns what was dropped and moved so far.
func (j *Job) Counters() Counters { return j.counters }

// Step takes an event and returns commands.
func (j *Job) Step(ev Event, now plan.Time) []Command {
	j.out = nil
	if j.state == ended {
		return nil
	}
	if j.tape != nil {
		j.tape.observe(j, ev)
		defer j.record(ev, now)
	}
	var from plan.ExecutorID
	var body any
	if m := ev.Message; m != nil {
		from, body = m.From, m.Body.Body
	}
	switch b := body.(type) {
	case *wire.ToDriver_Prepared:
		j.onPrepared(from, b.Prepared, now)
	case *wire.ToDriver_Holding:
		j.onHolding(from, b.Holding, now)
	case *wire.ToDriver_Progress:
		j.onProgress(b.Progress, now)
	case *wire.ToDriver_Result:
		j.onResult(from, b.Result, now)
	case *wire.ToDriver_PiecesFolded:
		j.onPiecesFolded(from, b.PiecesFolded, now)
	case *wire.ToDriver_TaskResult:
		j.onTaskResult(from, b.TaskResult, now)
	case *wire.ToDriver_TaskProgress:
		j.onTaskProgress(from, b.TaskProgress, now)
	}
	switch {
	case ev.Joined != nil:
		j.onJoined(ev.Joined)
	case ev.Lost != nil:
		j.onLost(ev.Lost, now)
	case ev.Pack != nil:
		j.onPack(ev.Pack, now)
	case ev.Extend != nil:
		j.onExtend(ev.Extend, now)
	case ev.Remade != nil:
		j.onRemade(ev.Remade, now)
	case ev.Step != nil:
		j.onStep(ev.Step, now)
	case ev.Call != nil:
		j.onCall(ev.Call, now)
	case ev.Restore != nil:
		j.onRestore(ev.Restore)
	case ev.Signal != nil:
		if plantedAdapts(j.auto != nil) {
			j.auto.Observe(ev.Signal.Spread, ev.Signal.Norm)
		}
	case ev.Drain != "":
		j.onDrain(ev.Drain)
	case ev.Message == nil:
		j.onTick(now)
	}
	return j.out
}

// record puts an event that the job has seen on tape, and hands out the reports of a step that has ended.
func (j *Job) record(ev Event, now plan.Time) {
	j.tape.record(j, ev, now)
	for _, c := range j.out {
		if c.StepDone != nil {
			c.StepDone.Reports, c.StepDone.Kept = j.tape.take(c.StepDone.Bytes)
		}
	}
}

func (j *Job) emit(c Command) { j.out = append(j.out, c) }

func (j *Job) send(to plan.ExecutorID, body *wire.ToExecutor) {
	j.out = append(j.out, Command{Send: &Outgoing{To: to, Body: body}})
}

// fail ends the job.
func (j *Job) fail(err error) {
	j.state = ended
	j.emit(Command{Failed: err})
}

// Cancel makes executors drop the job; no decision follows it.
func (j *Job) Cancel() []Command {
	j.out, j.state = nil, ended
	for id := range j.executors.All() {
		j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_EndJob{EndJob: &wire.EndJob{Job: string(j.cfg.ID)}}})
	}
	return j.out
}

// Abandon drops the request that the session no longer waits for: a pack, a step, a plan that has grown. Actions go on.
func (j *Job) Abandon() {
	if j.tape != nil {
		j.tape.abandoned()
	}
	j.step, j.growth.awaits = nil, nil
	for _, p := range j.packs {
		p.givenUp = p.givenUp || p.waiting
		p.waiting = false
	}
}

// onJoined asks a new or returning executor to build the plan.
func (j *Job) onJoined(e *Joined) {
	j.executors.Joined(e.Executor, e.Slots)
	j.prepare(e.Executor)
}

// prepare tells an executor what the plan is.
func (j *Job) prepare(id plan.ExecutorID) {
	j.send(id, &wire.ToExecutor{Body: &wire.ToExecutor_Prepare{Prepare: &wire.Prepare{
		Job: string(j.cfg.ID), Fingerprint: j.cfg.Fingerprint[:], Sources: j.cfg.Sources}}})
}

// onPrepared admits an executor whose plan is the job's.
func (j *Job) onPrepared(from plan.ExecutorID, p *wire.Prepared, now plan.Time) {
	got := plan.DigestFromBytes(p.Fingerprint)
	if j.growth.before[got] && p.Fault == nil && j.state == ready {
		return // it will answer again, with what was added since
	}
	if j.growth.awaits[from] {
		j.onGrown(from, got, p.Fault.AsError())
		return
	}
	foreign := plantedForeign(got != j.cfg.Fingerprint)
	if (j.state == ready || j.cfg.Again) && (p.Fault != nil || foreign) {
		j.send(from, &wire.ToExecutor{Body: &wire.ToExecutor_EndJob{EndJob: &wire.EndJob{Job: string(j.cfg.ID)}}})
		return // a late joiner that cannot take part does not end a running job
	}
	if err := p.Fault.AsError(); err != nil {
		j.fail(fault.New(fault.KindOf(err), "build the plan on", string(from), err))
		return
	}
	if foreign {
		j.fail(fault.Newf(fault.PlanMismatch, "build the plan on", string(from), "it is %s there and %s here",
			got.Short(), j.cfg.Fingerprint.Short()).WithHint("Build must depend on its arguments only"))
		return
	}
	if j.draining[from] { // an executor that drains gets nothing, however often it joins
		delete(j.draining, from)
		j.emit(Command{Drained: from})
		return
	}
	if j.executors.Present(from) {
		return // a repeated message; meanwhile it may have been drained
	}
	j.executors.Prepared(from)
	for _, p := range j.packs {
		if p.sched.Excluded(from) { // another process may succeed
			j.emit(Command{Excluded: &Exclusion{Executor: from}})
		}
		j.schedule(p, p.sched.Joined(from, j.executors.SlotsOf(from)))
	}
	if j.state == gathering && (plantedGathered(j.executors.Count() >= j.cfg.Executors) ||
		now >= j.began+j.cfg.Gather) {
		j.state = ready
		j.emit(Command{Ready: true})
	}
	if j.step != nil && j.step.leases != nil {
		j.lease(now)
	}
	j.offerTasks(now)
}

// onLost removes an executor from everything it was part of.
func (j *Job) onLost(l *Lost, now plan.Time) {
	delete(j.draining, l.Executor)
	if !j.executors.Present(l.Executor) {
		return
	}
	j.executors.Lost(l.Executor)
	j.grown(l.Executor)
	if j.step != nil {
		delete(j.step.sentTo, l.Executor)
		j.step.forgetStates(l.Executor)
	}
	for _, c := range j.open {
		c.tasks.Lost(l.Executor)
	}
	j.counters.ExecutorsLost++
	for i, p := range j.packs {
		p.forgetStates(l.Executor)
		orphans, cmds := p.sched.Lost(l.Executor)
		if j.schedule(p, cmds); j.state == ended {
			return
		}
		if j.packGone(p) {
			continue
		}
		j.packProgress(p) // a replica may have taken its place at once
		if j.step == nil || j.step.req.Pack != i {
			continue
		}
		if j.step.leases != nil {
			j.step.leases.Lost(l.Executor)
			j.lease(now)
		} else {
			j.orphaned(orphans, now)
		}
	}
	j.offerTasks(now)
}

// onTick checks the bounds of all waits.
func (j *Job) onTick(now plan.Time) {
	switch {
	case j.state == gathering && now >= j.began+j.cfg.Gather && j.executors.Count() > 0:
		j.state = ready
		j.emit(Command{Ready: true})
	case j.state == gathering && now >= j.began+j.cfg.MaxWait:
		j.fail(fault.Newf(fault.Timeout, "wait for", "executors", "%d of %d joined within %v",
			j.executors.Count(), j.cfg.Executors, j.cfg.MaxWait))
		return
	case j.state == gathering && now < j.began+j.cfg.Gather:
		j.emit(Command{WakeAt: j.began + j.cfg.Gather})
	case j.state == gathering:
		j.emit(Command{WakeAt: j.began + j.cfg.MaxWait})
	case j.step != nil:
		if j.step.leases != nil {
			j.lease(now)
		}
		j.decide(abss.Event{Kind: abss.Tick}, now)
	}
	for i, p := range j.packs {
		if p.waiting && now >= p.since+j.cfg.MaxWait {
			j.fail(fault.Newf(fault.Timeout, "wait for", fmt.Sprintf("the splits of pack %d", i),
				"%d of %d are held within %v", p.heldCount(), len(p.info.Rows), j.cfg.MaxWait))
			return
		}
		if p.waiting {
			j.emit(Command{WakeAt: p.since + j.cfg.MaxWait})
		}
	}
	for _, c := range slices.Clone(j.open) {
		if j.state != ended && !j.forgets(c, now) {
			j.carryOut(c, c.tasks.Tick(now), now)
		}
	}
	j.growthDue(now)
}
