package executor

import (
	"context"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// Config says what an executor is.
type Config struct {
	ID    plan.ExecutorID
	Slots int
	Pacer func(slot int) runner.Pacer // nil: slots run at their own speed
	Gate  *runner.Gate                // at which slots pause; nil: never
	// Blocks is where it hands out blocks; empty within one process.
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

	// What follows belongs to the loop.
	agent *Agent
	runs  map[int]*liveRun
}

// liveRun is a run whose slots are folding.
type liveRun struct {
	page    *runner.Page
	tasks   int
	leasing *leasing // of a leased run
	mu      struct {
		sync.Mutex
		skip map[plan.SplitID]bool
	}
}

// New makes an executor on a connection to its driver.
func New(ctx context.Context, cfg Config, engine *Engine, conn wire.ExecutorConn) *Executor {
	e := &Executor{cfg: cfg, engine: engine, conn: conn, began: time.Now(), events: make(chan Event, 256), runs: map[int]*liveRun{},
		tasks: make(chan struct{}, max(1, cfg.Slots))}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.agent = NewAgent(cfg.ID, cfg.Slots)
	return e
}

// watched is how often it is said how far tasks of actions have come.
const watched = 250 * time.Millisecond

// Serve registers and works until the connection ends or the context does.
// It returns once every goroutine of the executor has ended.
func (e *Executor) Serve() error {
	defer e.wg.Wait()
	defer e.shut()
	hello := e.agent.Register()
	hello.GetRegister().Blocks = e.cfg.Blocks
	if err := e.conn.Send(hello); err != nil {
		return fault.New(fault.FetchFailed, "register with", "the driver", err)
	}
	e.spawn(e.receive)
	watch := time.NewTicker(watched)
	defer watch.Stop()
	for {
		select {
		case ev := <-e.events:
			e.step(ev)
		case <-watch.C:
			for _, p := range e.engine.Acting(watched) {
				e.step(Event{Acting: p})
			}
		case <-e.ctx.Done():
			return nil
		}
	}
}

// shut stops whatever still folds.
func (e *Executor) shut() {
	e.cancel()
	e.conn.Close()
	for _, r := range e.runs {
		e.end(r, nil)
	}
}

// spawn starts a goroutine that Serve waits for.
func (e *Executor) spawn(do func()) {
	e.wg.Add(1)
	go func() {
		defer e.wg.Done()
		do()
	}()
}

// post hands an event to the loop.
func (e *Executor) post(ev Event) {
	select {
	case e.events <- ev:
	case <-e.ctx.Done():
	}
}

func (e *Executor) receive() {
	for {
		m, err := e.conn.Recv()
		if err != nil {
			e.cancel()
			return
		}
		e.post(Event{Message: m})
	}
}

// step runs on the loop.
func (e *Executor) step(ev Event) {
	if s := ev.Sampled; s != nil && s.Counts == nil {
		r := e.runs[s.Run]
		if r == nil {
			return
		}
		s.Counts = r.counts()
	}
	if f := ev.Folded; f != nil {
		delete(e.runs, f.Run)
	}
	for _, c := range e.agent.Step(ev, time.Since(e.began)) {
		e.carryOut(c)
	}
}

// carryOut runs on the loop.
func (e *Executor) carryOut(c Command) {
	switch {
	case c.Send != nil:
		if err := e.conn.Send(c.Send); err != nil {
			e.cancel()
		}
	case c.Plan != nil:
		e.step(Event{Planned: e.engine.Plan(c.Plan)})
	case c.Fetch != nil:
		e.spawn(func() { e.post(Event{Fetched: e.engine.Fetch(e.ctx, c.Fetch)}) })
	case c.Start != nil:
		e.start(c.Start)
	case c.Stop != nil:
		e.stop(c.Stop)
	case c.SampleAt != nil:
		e.sampleAt(c.SampleAt)
	case c.Lease != nil:
		if r := e.runs[c.Lease.Run]; r != nil {
			r.leasing.add(c.Lease)
		}
	case c.Include != nil:
		if r := e.runs[c.Include.Run]; r != nil {
			e.end(r, c.Include.IDs)
		}
	case c.Act != nil:
		e.spawn(func() { e.act(c.Act) })
	}
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

// start runs on the loop: it sets the slots of a run to work.
func (e *Executor) start(run *Run) {
	n := len(run.Step.Tasks)
	if run.Step.Leased {
		n = e.cfg.Slots
	}
	r := &liveRun{page: runner.NewPage(make([]byte, runner.PageBytes(n)), n), tasks: n}
	e.runs[run.ID] = r
	if run.Step.Leased {
		r.leasing = newLeasing()
		e.spawn(func() { e.post(Event{Folded: e.foldLeased(run, r)}) })
		return
	}
	e.spawn(func() { e.post(Event{Folded: e.fold(run, r)}) })
}

// fold runs a run's slots to their end and merges what they have come to.
func (e *Executor) fold(run *Run, r *liveRun) *Folded {
	f, err := e.engine.Begin(run, e.cfg.Slots)
	if err != nil {
		return &Folded{Run: run.ID, Err: err}
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
	return f.Result(run.ID, r.skipped())
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
	began := time.Now()
	left := len(tasks)
	err := runner.Visit(tasks, r.page, e.cfg.Gate, pacer, func(int) {
		if left--; left > 0 || len(f.BySlot) > 1 { // the very last one is in the result, which follows at once
			e.post(Event{Sampled: &Sample{Run: run}})
		}
	})
	if err != nil {
		e.cfg.Gate.Stop(r.page)
		return err
	}
	return f.FinishSlot(k, r.skipped(), time.Since(began))
}

func (r *liveRun) skipped() map[plan.SplitID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.skip
}

// stop runs on the loop.
func (e *Executor) stop(c *StopRun) {
	r := e.runs[c.Run]
	if r == nil {
		return
	}
	skip := map[plan.SplitID]bool{}
	for _, s := range c.Skip {
		skip[s] = true
	}
	r.mu.Lock()
	r.mu.skip = skip
	r.mu.Unlock()
	e.end(r, nil)
}

// end stops a run's slots; a leased one with what is to be included.
func (e *Executor) end(r *liveRun, include []uint32) {
	if r.leasing != nil {
		r.leasing.end(include, nil)
	}
	e.cfg.Gate.Stop(r.page)
}

func (e *Executor) sampleAt(c *SampleAt) {
	time.AfterFunc(max(0, c.At-time.Since(e.began)), func() {
		e.post(Event{Sampled: &Sample{Run: c.Run, Due: true}})
	})
}
