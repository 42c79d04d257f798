package tables

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// run is workers on tables, until their last clock or until they are stopped.
type run struct {
	first, last, every int // clocks
	began              time.Time
	self               int                  // the executor of this process: everyone, or rdd.Leader
	out                *outside             // nil where all are in this process
	grown              func() bool          // more executors could take part
	close              func()               // ends those of other processes
	pause              func() time.Duration // waits while other jobs have the slots
	pacer              func(executor, slot int) rdd.Pacer
	computed           *computed // nil on the real clock
	going              bool      // the job's process has said so, to a member
	tables             []tableOf
	index              map[any]int // of tables
	executors          []*executor
	names              []string // of them; nil where they have only numbers
	workers            []*worker
	work               func(w *worker) (state []byte, err error) // does a clock; the state is of one that is reported
	hands              *hands                                    // nil where none does parts of another's clocks

	mu      sync.Mutex
	err     error
	moments map[int]*moment // by clock, until they are taken
	ready   chan struct{}   // has something when a moment may be whole, or the run has ended
	horizon atomic.Int64    // no worker begins this clock yet: what is reported is taken in time
	ahead   int             // of the last report that was taken
	stuck   atomic.Bool     // it has ended as a worker does not come back
	timeout time.Duration   // without a sign of a worker in its clock; 0 is none
	stopped chan struct{}
	once    sync.Once
	all     sync.WaitGroup
}

// moment is what tables and workers are after exactly the clocks before one.
type moment struct {
	clock     int
	snapshots [][]any // of tables, by shard
	states    [][]byte
	missing   int
	working   int      // workers that have not finished it
	spent     spending // until the last of them has
}

// executor runs its workers on slots, each worker on one at a time.
type executor struct {
	id      int
	here    bool // in this process
	slots   int
	mu      sync.Mutex
	changed signal
	workers []*worker
	noting  sync.Mutex
	notes   any // the program's, of all workers
	spending
}

// worker is one of a fixed set: it has the rows of a split.
type worker struct {
	id       consistency.Worker
	executor *executor
	clock    int // that it is in, or begins next
	running  bool
	woken    chan struct{}
	access   []any          // by table
	sharing  *sharing       // nil where it does all of its clocks itself
	notes    any            // the program's
	looks    rdd.Looks      // at its rows
	pacing   *pacing        // of the slot that it is on
	moved    atomic.Int64   // signs that it goes on
	waits    atomic.Bool    // for others, within its clock
	paused   time.Duration  // within the clock that it is in: the goroutine's that runs it
	began    time.Duration  // the clock, or what it does for another
	done     plan.WorkerUse // before it
	said     plan.WorkerUse // of what it has done, at the end of its last clock that was reported
}

// errHalted says that the run has ended within a clock.
var errHalted = errors.New("the run has ended")

// halt is what a worker's goroutine panics with where the run has ended within its clock.
type halt struct{}

// everyone says that all executors are in this process.
const everyone = -2

// cast is the executors of a run, by their slots, and where each worker runs.
type cast struct{ Slots, Homes []int }

// castOf returns a number of executors, with as many workers each as can be.
func castOf(workers, executors, slots int) (c cast) {
	c.Slots = slices.Repeat([]int{slots}, min(executors, workers))
	for k := range workers {
		c.Homes = append(c.Homes, k%len(c.Slots))
	}
	return c
}

func newRun(c cast, self, first, last, every int) *run {
	r := &run{self: self, first: first, last: last, every: every, began: time.Now(), index: map[any]int{},
		moments: map[int]*moment{}, ready: make(chan struct{}, 1), stopped: make(chan struct{})}
	for e, slots := range c.Slots {
		x := &executor{id: e, here: self == everyone || self == e, slots: slots}
		x.changed = sync.NewCond(&x.mu)
		r.executors = append(r.executors, x)
	}
	for k, home := range c.Homes {
		x := r.executors[home]
		w := &worker{id: consistency.Worker(k), executor: x, clock: first, woken: make(chan struct{}, 1)}
		x.workers, r.workers = append(x.workers, w), append(r.workers, w)
	}
	return r
}

// mayLead sets how many reports may wait to be taken before workers wait for that: two, and those of as many clocks as
// a worker may be ahead of another by its tables, but not of more than mostAhead.
func (r *run) mayLead() {
	slack := 0
	for _, t := range r.tables {
		slack = max(slack, t.slack())
	}
	r.ahead = max(2*r.every, min(slack, mostAhead)+2)
	r.horizon.Store(int64(r.first + r.ahead))
}

const mostAhead = 64

func (r *run) now() time.Duration {
	if r.computed != nil {
		return r.computed.now
	}
	return time.Since(r.began)
}

// startTables begins the machines of this process.
func (r *run) startTables() {
	for _, t := range r.tables {
		t.start()
	}
}

// start begins the machines and the workers of this process.
func (r *run) start() {
	if !r.going {
		r.startTables()
	}
	for _, x := range r.executors {
		if !x.here {
			continue
		}
		for _, w := range x.workers {
			for _, t := range r.tables {
				w.access = append(w.access, t.access(w))
			}
		}
		for slot := range min(x.slots, len(x.workers)) {
			if r.computed != nil {
				r.computed.spawn(func() { r.slot(x, slot) })
			} else {
				r.all.Go(func() { r.slot(x, slot) })
			}
		}
	}
	if r.computed != nil {
		r.ticksComputed()
	} else if r.self != rdd.Leader {
		r.all.Go(r.ticks)
	}
}

// ticks lets time pass for the machines.
func (r *run) ticks() {
	tick := time.NewTicker(ticks)
	defer tick.Stop()
	look := r.newWatch()
	for {
		select {
		case <-tick.C:
			for _, t := range r.tables {
				t.tick()
			}
			look.look()
		case <-r.stopped:
			return
		}
	}
}

// slot runs clocks of an executor's workers until there are no more.
func (r *run) slot(x *executor, number int) {
	p := pacing{}
	if r.pacer != nil {
		p.Pacer = r.pacer(x.id, number)
	}
	for {
		began := r.now()
		w, helps := r.next(x)
		if w == nil {
			return
		}
		p.waited(r.now() - began)
		began = r.now()
		w.pacing, w.began = &p, began
		w.moved.Add(1)
		var err error
		if helps {
			err = r.attend(w)
		} else {
			err = r.clock(w)
		}
		if err != nil && err != errHalted {
			r.fail(err)
		}
		x.mu.Lock()
		w.running = false
		worked := r.now() - began - w.paused
		x.waited, x.busy = x.waited+w.paused, x.busy+worked
		w.done.Worked, w.done.Waited, w.paused = w.done.Worked+worked, w.done.Waited+w.paused, 0
		if err == nil && !helps {
			w.clock++
		}
		x.changed.Broadcast()
		x.mu.Unlock()
	}
}

// next returns a worker that has something to do for another, or may begin its clock: of several the one that is
// furthest behind. It waits for one, and returns nil where there will be none.
func (r *run) next(x *executor) (w *worker, helps bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		var best *worker
		left := r.hands != nil // others may have something to do for these as long as the run goes on
		if w := x.asked(); w != nil && !r.over() {
			w.running = true
			return w, true
		}
		for _, w := range x.workers {
			if w.clock >= r.last {
				continue
			}
			left = true
			if !w.running && (best == nil || w.clock < best.clock) && r.mayBegin(w) {
				best = w
			}
		}
		switch {
		case !left || r.over():
			return nil, false
		case best != nil:
			best.running = true
			return best, false
		}
		began := r.now()
		x.changed.Wait()
		x.waited += r.now() - began
	}
}

func (r *run) mayBegin(w *worker) bool {
	if int64(w.clock) >= r.horizon.Load() {
		return false
	}
	may := true
	for _, t := range r.tables {
		may = t.mayBegin(w) && may // each has to know that the worker waits for it
	}
	return may
}

// guard calls what a program has said, whatever comes of it.
func (r *run) guard(what string, do func() error) (err error) {
	returned := false
	defer func() {
		switch p := recover().(type) {
		case nil:
			if !returned { // and so does the slot's goroutine
				r.fail(fault.Newf(fault.UserCode, "run", what, "its goroutine has ended (runtime.Goexit)"))
			}
		case halt:
			err = errHalted
		default:
			err = fault.Newf(fault.UserCode, "run", what, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	err = do()
	returned = true
	return err
}

// clock does a worker's clock.
func (r *run) clock(w *worker) error {
	what := fmt.Sprintf("clock %d of worker %d", w.clock, w.id)
	return r.guard(what, func() error {
		state, err := r.work(w)
		if err != nil {
			return fault.New(fault.UserCode, "run", what, err)
		}
		w.pacing.worked() // what ends a clock is told when all of it has taken its time
		r.finish(w, state)
		return nil
	})
}

// finish ends a worker's clock.
func (r *run) finish(w *worker, state []byte) {
	for _, t := range r.tables {
		t.finish(w)
	}
	if r.out != nil {
		w.waits.Store(true)
		r.out.await()
		w.waits.Store(false)
	}
	if r.reports(w.clock + 1) {
		r.noteUse(w)
	}
	switch after := w.clock + 1; {
	case !r.reports(after):
	case r.self == everyone:
		r.savedState(after, int(w.id), state)
	default:
		r.sendState(w, after, state)
	}
}

// reports reports whether what tables and workers are after a number of clocks is handed out.
func (r *run) reports(clock int) bool { return clock%r.every == 0 || clock == r.last }

// savedState adds a worker's state after a number of clocks; with the last one comes what all have done until then.
func (r *run) savedState(clock, worker int, state []byte) {
	r.mu.Lock()
	m := r.momentAt(clock)
	m.working--
	last := m.working == 0
	r.mu.Unlock()
	spent := spending{}
	if last {
		spent = r.spent()
	}
	r.saved(clock, func(m *moment) {
		if m.states[worker] = state; last {
			m.spent = spent
		}
	})
}

// momentAt returns what is known of a clock; r.mu is held.
func (r *run) momentAt(clock int) *moment {
	m := r.moments[clock]
	if m == nil {
		n := len(r.workers)
		m = &moment{clock: clock, states: make([][]byte, n), missing: n, working: n}
		for range r.tables {
			m.snapshots = append(m.snapshots, make([]any, len(r.executors)))
			m.missing += len(r.executors)
		}
		r.moments[clock] = m
	}
	return m
}

// saved adds to what is known of a clock.
func (r *run) saved(clock int, add func(*moment)) {
	r.mu.Lock()
	m := r.momentAt(clock)
	add(m)
	m.missing--
	whole := m.missing == 0
	r.mu.Unlock()
	if whole {
		r.tell()
	}
}

func (r *run) tell() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take waits until a clock is finished by all workers, and returns what there is after it.
func (r *run) take(ctx context.Context, clock int) (*moment, error) {
	for {
		r.mu.Lock()
		m, err := r.moments[clock], r.err
		whole := m != nil && m.missing == 0
		if whole {
			delete(r.moments, clock)
		}
		r.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case whole:
			r.takenUpTo(clock)
			return m, nil
		}
		if err := r.await(ctx); err != nil {
			return nil, err
		}
	}
}

// await waits until there may be something to take.
func (r *run) await(ctx context.Context) error {
	if r.computed != nil {
		return r.awaitComputed(ctx)
	}
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takenUpTo lets workers begin as many clocks as may wait to be taken.
func (r *run) takenUpTo(clock int) {
	r.horizon.Store(int64(clock + r.ahead))
	r.stir()
	for e, x := range r.executors {
		if !x.here && r.self == rdd.Leader {
			r.out.post(e, func(w *writer) { w.begin(aHorizon, 0, 0); w.int(clock); w.end() })
		}
	}
}

// stir has slots look again for workers that may begin.
func (r *run) stir() {
	for _, x := range r.executors {
		x.mu.Lock()
		x.changed.Broadcast()
		x.mu.Unlock()
	}
}

// failed returns the error that has ended the run.
func (r *run) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *run) over() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

// fail ends the run with an error; the first counts.
func (r *run) fail(err error) {
	r.mu.Lock()
	if r.err == nil {
		r.err = err
	}
	r.mu.Unlock()
	r.end()
	r.tell()
}

// end has workers stop where they are.
func (r *run) end() {
	r.once.Do(func() { close(r.stopped) })
	if r.computed != nil && r.stuck.Load() {
		return // slots take turns on a virtual clock: the worker that has not returned has the queue
	}
	for _, t := range r.tables {
		t.halt()
	}
	if r.out != nil {
		r.out.end()
	}
	r.stir()
}

// stop ends the run and waits for its goroutines, but for a worker's that does not come back.
func (r *run) stop() {
	r.end()
	if r.close != nil {
		r.close()
	}
	if r.stuck.Load() {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r.computed != nil {
			r.computed.drain()
		} else {
			r.all.Wait()
		}
	}()
	if r.computed != nil {
		select {
		case <-ended:
		case <-r.patienceOver():
			r.stuck.Store(true)
		}
		return
	}
	r.watchUntil(ended)
}

// wake has a worker ask again that waits within its clock, or for one.
func (w *worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
	w.executor.mu.Lock()
	w.executor.changed.Broadcast()
	w.executor.mu.Unlock()
}

// wait waits until the worker is woken.
func (w *worker) wait(r *run) {
	began := r.now()
	w.waits.Store(true)
	defer w.waits.Store(false)
	if r.computed != nil {
		w.parked(r)
	}
	select {
	case <-w.woken:
		w.paused += r.now() - began
		w.pacing.waited(r.now() - began)
	case <-r.stopped:
		panic(halt{})
	}
}

// parked waits on a virtual clock until the worker is woken, or the run has ended.
func (w *worker) parked(r *run) {
	w.executor.mu.Lock()
	defer w.executor.mu.Unlock()
	for len(w.woken) == 0 && !r.over() {
		w.executor.changed.Wait()
	}
}

// waited returns the error of a wait that was too long.
func waited(table string, f *consistency.Failure) error {
	return fault.Newf(fault.Timeout, "wait", fmt.Sprintf("worker %d of table %q", f.Worker, table),
		"for %v: %s", f.Waited.Round(time.Second), f.For)
}
