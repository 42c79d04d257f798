package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// Config configures an executor.
type Config struct {
	ID    plan.ExecutorID
	Slots int
	Pacer func(slot int) runner.Pacer // nil: slots run at their own speed
	Gate  *runner.Gate                // at which slots pause; nil: never
	// Beside is work that Serve waits for, too; none is added once the connection has ended. Nil is none.
	Beside *sync.WaitGroup
	// Blocks is the address at which it serves blocks; empty within one process.
	Blocks string
}

// Executor is the shell around an agent: it feeds it with messages and with
// what its slots do, and carries its commands out. The agent runs on one
// goroutine; slots, fetches and actions run on their own and only enqueue.
type Executor struct {
	cfg    Config
	engine *Engine
	conn   wire.ExecutorConn
	began  time.Time
	events chan Event
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	tasks  chan struct{} // holds one for each task that runs
	loads  Loads

	agent *Agent   // belongs to the loop
	live  struct { // the loop writes; the receiver of a stop reads it, too
		sync.Mutex
		runs map[int]*liveRun
	}
}

// liveRun is a run whose slots are folding.
type liveRun struct {
	step    *wire.StartStep
	page    *runner.Page
	tasks   int
	leasing *leasing // of a leased run
	did     *Timeline
	mu      struct {
		sync.Mutex
		skip map[plan.SplitID]bool
	}
}

// New makes an executor on a connection to its driver.
func New(ctx context.Context, cfg Config, engine *Engine, conn wire.ExecutorConn) *Executor {
	e := &Executor{cfg: cfg, engine: engine, conn: conn, began: time.Now(), events: make(chan Event, 256),
		tasks: make(chan struct{}, max(1, cfg.Slots))}
	e.live.runs = map[int]*liveRun{}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.agent = NewAgent(cfg.ID, cfg.Slots)
	return e
}

// watched is how often the progress of actions' tasks is reported.
const watched = 250 * time.Millisecond

// ErrNotBack says that an executor has ended while a function of the program's, or a fetch, has not returned.
var ErrNotBack = errors.New("a user function, or a fetch, has not returned")

// leaving is how long goroutines may take to end.
const leaving = 10 * time.Second

// Serve registers and works until the connection ends or the context does. It returns once every goroutine of the
// executor has ended, or with ErrNotBack where one takes too long: then Wait waits for it.
func (e *Executor) Serve() error {
	err := e.serve()
	e.shut()
	ended := make(chan struct{})
	go func() {
		e.Wait()
		close(ended)
	}()
	timer := time.NewTimer(leaving)
	defer timer.Stop()
	select {
	case <-ended:
		return err
	case <-timer.C:
		return errors.Join(fault.New(fault.Timeout, "end", "executor "+string(e.cfg.ID), ErrNotBack), err)
	}
}

// Wait waits until all that the executor has begun has ended.
func (e *Executor) Wait() {
	e.wg.Wait()
	if e.cfg.Beside != nil {
		e.cfg.Beside.Wait()
	}
}

// serve works until the connection ends.
func (e *Executor) serve() error {
	hello := e.agent.Register()
	hello.GetRegister().Blocks = e.cfg.Blocks
	if err := e.conn.Send(hello); err != nil {
		return fault.New(fault.FetchFailed, "register with", "the driver", err)
	}
	e.wg.Go(e.receive)
	watch := time.NewTicker(watched)
	defer watch.Stop()
	for {
		select {
		case ev := <-e.events:
			if e.prepare(ev) {
				e.carryOut(e.agent.Step(ev, e.now()))
			}
		case <-watch.C:
			for _, p := range e.engine.Acting(watched) {
				e.carryOut(e.agent.Step(Event{Acting: p}, e.now()))
			}
		case <-e.ctx.Done():
			return nil
		}
	}
}

// shut stops the runs that still fold.
func (e *Executor) shut() {
	e.cancel()
	e.conn.Close()
	for _, r := range e.live.runs {
		r.end(nil)
	}
}

// post hands an event to the loop.
func (e *Executor) post(ev Event) {
	select {
	case e.events <- ev:
	case <-e.ctx.Done():
	}
}

// receive hands messages to the loop. A stop reaches the slots without waiting for the loop; the agent does the rest.
func (e *Executor) receive() {
	for {
		m, err := e.conn.Recv()
		if err != nil {
			e.cancel()
			return
		}
		if s := m.GetStopStep(); s != nil {
			e.halt(s)
		}
		e.post(Event{Message: m})
	}
}

// halt stops the slots of the runs that a stop is for, those that begin after it excepted: the agent stops these.
func (e *Executor) halt(s *wire.StopStep) {
	e.live.Lock()
	defer e.live.Unlock()
	for _, r := range e.live.runs {
		if r.leasing == nil && ends(s, r.step) {
			r.skip(skippedBy(s))
			r.page.Stop()
		}
	}
}

// run returns a run whose slots fold; nil is none.
func (e *Executor) run(id int) *liveRun {
	e.live.Lock()
	defer e.live.Unlock()
	return e.live.runs[id]
}

// keep remembers a run while its slots fold; nil forgets it.
func (e *Executor) keep(id int, r *liveRun) {
	e.live.Lock()
	defer e.live.Unlock()
	if e.live.runs[id] = r; r == nil {
		delete(e.live.runs, id)
	}
}

// now returns the time since the executor began.
func (e *Executor) now() time.Duration { return time.Since(e.began) }

// prepare runs on the loop: it completes an event for the agent. It reports false where the
// event is of a run that has ended.
func (e *Executor) prepare(ev Event) bool {
	if s := ev.Sampled; s != nil && s.Counts == nil {
		r := e.run(s.Run)
		if r == nil {
			return false
		}
		s.Counts = r.counts()
	}
	if f := ev.Folded; f != nil {
		e.keep(f.Run, nil)
	}
	return true
}

// carryOut runs on the loop.
func (e *Executor) carryOut(cmds []Command) {
	for _, c := range cmds {
		switch {
		case c.Send != nil:
			if err := e.conn.Send(c.Send); err != nil {
				e.cancel()
			}
		case c.Plan != nil:
			e.carryOut(e.agent.Step(Event{Planned: e.engine.Plan(c.Plan)}, e.now()))
		case c.Fetch != nil:
			e.wg.Go(func() { e.post(Event{Fetched: e.fetch(c.Fetch)}) })
		case c.Start != nil:
			r := e.begin(c.Start)
			e.wg.Go(func() { e.post(Event{Folded: r.did.Tell(e.fold(c.Start, r), &e.loads, e.now())}) })
		case c.Stop != nil:
			if r := e.run(c.Stop.Run); r != nil {
				r.skip(c.Stop.Skip)
				r.end(nil)
			}
		case c.SampleAt != nil:
			e.sampleAt(c.SampleAt)
		case c.Lease != nil:
			if r := e.run(c.Lease.Run); r != nil {
				r.leasing.add(c.Lease)
			}
		case c.Include != nil:
			if r := e.run(c.Include.Run); r != nil {
				r.end(c.Include.IDs)
			}
		case c.Act != nil:
			e.wg.Go(func() { e.act(c.Act) })
		}
	}
}

// fetch gets a split, beside what is folded.
func (e *Executor) fetch(h *wire.Hold) *Fetched {
	began := e.now()
	defer func() { e.loads.Did(int(h.Node), int(h.Split), began, e.now()) }()
	return e.engine.Fetch(e.ctx, h)
}

// act runs a task once a slot is free.
func (e *Executor) act(t *wire.RunTask) {
	select {
	case e.tasks <- struct{}{}:
	case <-e.ctx.Done():
		return
	}
	defer func() { <-e.tasks }()
	e.post(Event{Acted: e.engine.Act(e.ctx, t)})
}

func (r *liveRun) counts() []int64 {
	out := make([]int64, r.tasks)
	for i := range out {
		out[i] = r.page.Processed(i)
	}
	return out
}

// begin runs on the loop: it makes the page of a run, and remembers it.
func (e *Executor) begin(run *Run) *liveRun {
	n := len(run.Step.Tasks)
	if run.Step.Leased {
		n = e.cfg.Slots
	}
	r := &liveRun{step: run.Step, page: runner.NewPage(n, e.cfg.Gate), tasks: n,
		did: NewTimeline(int(run.Step.PackNode), e.cfg.Slots, e.now())}
	if run.Step.Leased {
		r.leasing = newLeasing()
	}
	e.keep(run.ID, r)
	return r
}

// fold runs a run's slots to their end and merges their results.
func (e *Executor) fold(run *Run, r *liveRun) *Folded {
	if r.leasing != nil {
		return e.foldLeased(run, r)
	}
	f, err := e.engine.Begin(run, e.cfg.Slots)
	if err != nil {
		return &Folded{Run: run.ID, Err: err}
	}
	for k := range f.BySlot {
		e.did(r, k, plan.Loading, -1, r.did.began)
	}
	errs := make([]error, len(f.BySlot))
	var wg sync.WaitGroup
	for k := 1; k < len(f.BySlot); k++ {
		wg.Go(func() { errs[k] = e.slot(run.ID, k, f, r) })
	}
	errs[0] = e.slot(run.ID, 0, f, r)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return &Folded{Run: run.ID, Err: err}
		}
	}
	began := e.now()
	out := f.Result(run.ID, r.skipped())
	e.did(r, 0, plan.Merging, -1, began)
	return out
}

// did notes what a slot of a run has done until now.
func (e *Executor) did(r *liveRun, slot int, kind plan.SpanKind, split int, from plan.Time) {
	r.did.Did(slot, kind, split, from, e.now())
}

// slot folds the tasks of one slot and merges their pieces.
func (e *Executor) slot(run, k int, f *Fold, r *liveRun) error {
	var pacer runner.Pacer
	if e.cfg.Pacer != nil {
		pacer = e.cfg.Pacer(k)
	}
	tasks := make([]runner.Task, len(f.BySlot[k]))
	for i, word := range f.BySlot[k] {
		tasks[i] = runner.Task{Fold: f.Tasks[word], Word: word}
	}
	began := e.now()
	left := len(tasks)
	err := runner.Visit(tasks, r.page, pacer, func(int) {
		if left--; left > 0 || len(f.BySlot) > 1 { // the last count is in the result, which follows at once
			e.post(Event{Sampled: &Sample{Run: run}})
		}
	})
	if err != nil {
		r.page.Stop()
		return err
	}
	folded := e.now()
	r.did.Did(k, plan.Folding, f.splitOf(k), began, folded)
	err = f.FinishSlot(k, r.skipped(), folded-began)
	e.did(r, k, plan.Merging, -1, folded)
	return err
}

func (r *liveRun) skipped() map[plan.SplitID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.skip
}

// skip leaves out the results of some splits. The first stop decides which: slots may have left them out already.
func (r *liveRun) skip(splits []plan.SplitID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.skip != nil {
		return
	}
	r.mu.skip = map[plan.SplitID]bool{}
	for _, s := range splits {
		r.mu.skip[s] = true
	}
}

// end stops a run's slots; a leased one with what is to be included.
func (r *liveRun) end(include []uint32) {
	if r.leasing != nil {
		r.leasing.end(include, nil)
	}
	r.page.Stop()
}

func (e *Executor) sampleAt(c *SampleAt) {
	time.AfterFunc(max(0, c.At-time.Since(e.began)), func() {
		e.post(Event{Sampled: &Sample{Run: c.Run, Due: true}})
	})
}
