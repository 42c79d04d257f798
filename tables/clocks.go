package tables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// Tick is a moment at which all workers have finished a number of clocks. Table.At returns rows as they are after
// exactly these, whatever workers have done since: they do not wait meanwhile, but for reports that are not taken.
type Tick struct {
	// Clock is how many clocks all workers have finished.
	Clock int
	// Busy is how long slots have worked until then, all together, and Waited how long they have waited, as no worker
	// of theirs might go on.
	Busy, Waited time.Duration
	// Took is how long it has taken since Clocks began, on the job's clock.
	Took time.Duration
	// Restarts is how often the workers have begun again from an earlier tick, as an executor was lost.
	Restarts int
	// Shared is how many items workers have shared (Clock.Share) until then, and Helped how many of these others have
	// done.
	Shared, Helped int
	// Ahead is how many clocks a worker has begun, at the most so far, that others were not known to have finished, and
	// Stale how many clocks before its own a read has missed updates of. Both are at most the slack of the tables.
	Ahead, Stale int
	run          *run
	of           *moment
	turn         *rdd.Iteration
}

// Report notes a value, for the event log and the terminal.
func (t *Tick) Report(name string, value float64) {
	if t.turn != nil {
		t.turn.Report(name, value)
	}
}

// Stop makes this tick the last.
func (t *Tick) Stop() {
	if t.turn != nil {
		t.turn.Stop()
	}
}

// Workers returns how many workers there are.
func (t *Tick) Workers() int { return len(t.run.workers) }

// bounds reports how far workers were from each other so far, and how far they may be, for verify to hold the one
// against the other. Exact tables have nothing to say.
func (t *Tick) bounds() {
	exact, slack := true, 0
	for _, of := range t.run.tables {
		exact = exact && of.exact()
		slack = max(slack, of.slack())
	}
	if exact {
		return
	}
	t.Report("clocks_ahead", float64(t.Ahead))
	t.Report("clocks_stale", float64(t.Stale))
	if slack < int(consistency.Unbounded) {
		t.Report("slack", float64(slack))
	}
}

// HelpedShare returns the share of workers' items that others have done.
func (t *Tick) HelpedShare() float64 { return float64(t.Helped) / float64(max(1, t.Shared)) }

// WaitedShare returns the share of their time that slots have waited.
func (t *Tick) WaitedShare() float64 {
	return t.Waited.Seconds() / max(1e-9, (t.Waited+t.Busy).Seconds())
}

// Kept is a state of the program's own that is committed with each tick.
type Kept struct{ keeping keeping }

// keeping encodes and decodes a state.
type keeping struct {
	encode func() ([]byte, error)
	decode func([]byte) error
}

// Keep has Clocks commit what state is after each turn of its loop, and restore it before the first tick where a job
// goes on from a checkpoint. S must be a type that Encode takes.
func Keep[S any](state *S) Kept {
	return Kept{keeping{
		encode: func() ([]byte, error) { return rdd.Encode(*state) },
		decode: func(raw []byte) error { return rdd.Decode(raw, state) },
	}}
}

// Clocks runs the workers under a parameter for a number of clocks, and yields a tick after each `every` of them and
// after the last. A job that is resumed goes on from the last tick that was committed; where that was the last of all,
// it is yielded once more. Tables begin with zeros each time. Workers are stopped where the loop is left.
//
// Where an executor is lost, all go on from the last tick that was yielded, on those that are left: what workers have
// done since is done again, in whole.
func (w Work[P, D, S]) Clocks(ctx context.Context, s *rdd.Session, param P, clocks, every int,
	kept ...Kept) iter.Seq2[*Tick, error] {
	return func(yield func(*Tick, error) bool) {
		if clocks < 1 || every < 1 {
			yield(nil, fault.Newf(fault.Usage, "run", "workers", "%d clocks, reported after each %d", clocks, every))
			return
		}
		c, err := w.open(ctx, s, param, clocks, every)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, k := range kept {
			c.at.kept = k.keeping
		}
		defer c.close()
		begun, took := false, time.Duration(0)
		for turn := range rdd.Iterations(ctx, s, &c.at, (clocks+every-1)/every) {
			begun = true
			m, err := c.take(ctx, min(clocks, turn.Number*every))
			if err != nil {
				yield(nil, err)
				return
			}
			c.at = progress{Clock: m.clock, States: m.states, tables: c.run.tables, of: m, kept: c.at.kept}
			t := &Tick{Clock: m.clock, Restarts: c.restarts, run: c.run, of: m, turn: turn}
			spent := m.spent.and(c.earlier)
			t.Busy, t.Waited, t.Shared, t.Helped = spent.busy, spent.waited, spent.items, spent.helped
			t.Ahead, t.Stale = int(spent.Ahead), int(spent.Stale)
			t.bounds()
			turn.Used(c.run.used(m, spent.use))
			t.Took = c.took()
			s.Worked(t.Took - took)
			took = t.Took
			if !yield(t, nil) {
				return
			}
		}
		switch err := s.Err(); {
		case err != nil:
			yield(nil, err)
		case s.Interrupted():
			yield(nil, context.Cause(ctx))
		case !begun:
			yield(c.ended())
		}
	}
}

// clocks is a loop over clocks.
type clocks[P, D, S any] struct {
	Work[P, D, S]
	s        *rdd.Session
	param    P
	clocks   int
	every    int
	workers  int
	rows     *rdd.Resident[D] // where workers are in this process
	gang     func(ctx context.Context, before error) (rdd.Gang, error)
	at       progress       // of the last tick
	run      *run           // nil where one is to begin
	last     error          // why the run before has ended
	losses   map[string]int // since the last tick, by executor
	restarts int
	earlier  spending      // in runs before
	before   time.Duration // that earlier runs took
}

func (w Work[P, D, S]) open(ctx context.Context, s *rdd.Session, param P, n, every int) (*clocks[P, D, S], error) {
	c := &clocks[P, D, S]{Work: w, s: s, param: param, clocks: n, every: every}
	if w.data.Elsewhere(s) {
		meta, err := w.data.Meta(ctx, s)
		if err != nil {
			return nil, err
		}
		c.workers = len(meta.Splits)
		c.gang = func(ctx context.Context, before error) (rdd.Gang, error) {
			return w.data.Gather(ctx, s, w.node, before)
		}
		return c, nil
	}
	var err error
	if c.rows, err = w.data.Resident(ctx, s); err != nil {
		return nil, err
	}
	c.workers = c.rows.Splits()
	return c, nil
}

func (c *clocks[P, D, S]) close() {
	if c.run != nil {
		c.run.stop()
	}
	if c.rows != nil && (c.run == nil || !c.run.stuck.Load()) {
		c.rows.Close()
	}
}

// mostLosses is how often one executor may be lost without a tick between.
const mostLosses = 4

// lose counts the loss of an executor, and returns how often it was lost since the last tick. One that leaves as it was
// asked to is none.
func (c *clocks[P, D, S]) lose(err error) int {
	if errors.Is(err, rdd.ErrDrained) {
		return 0
	}
	who := ""
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		who = f.Subject
	}
	if c.losses == nil {
		c.losses = map[string]int{}
	}
	c.losses[who]++
	return c.losses[who]
}

// take waits until all workers have finished a number of clocks. Where executors are lost, it begins again from the
// last tick.
func (c *clocks[P, D, S]) take(ctx context.Context, clock int) (*moment, error) {
	for {
		m, err := c.tryTake(ctx, clock)
		if err == nil {
			c.losses = nil
			return m, nil
		}
		if !lost(err) || ctx.Err() != nil {
			return nil, err
		}
		if n := c.lose(err); n >= mostLosses {
			return nil, fault.New(fault.KindOf(err), "go on with", "the workers of tables", err).
				WithHint(fmt.Sprintf("this is the %dth loss of it since the last tick; "+
					"volley logs JOB --task EXECUTOR shows what a process has printed", n))
		}
		if err := c.again(err); err != nil {
			return nil, err
		}
	}
}

func (c *clocks[P, D, S]) tryTake(ctx context.Context, clock int) (*moment, error) {
	if c.run != nil && c.run.grown != nil && c.run.grown() {
		if err := c.again(nil); err != nil {
			return nil, err
		}
	}
	if c.run == nil {
		var err error
		if c.run, err = c.begin(ctx); err != nil {
			return nil, err
		}
	}
	return c.run.take(ctx, clock)
}

// lost reports whether a run has ended for want of an executor, or of its data there.
func lost(err error) bool {
	return fault.Is(err, fault.ExecutorLost) || fault.Is(err, fault.FetchFailed) || fault.InputLost(err)
}

// again makes ready for another run, from the last tick.
func (c *clocks[P, D, S]) again(why error) error {
	if c.last = why; why != nil {
		c.restarts++
	}
	if c.run != nil {
		c.run.stop()
		c.earlier = c.spent()
		c.before = c.took()
		c.run = nil
	}
	if c.at.of == nil {
		return nil
	}
	raw, err := c.at.MarshalBinary()
	if err != nil {
		return err
	}
	return c.at.UnmarshalBinary(raw)
}

// ended returns the last tick of a job that had ended before it was resumed.
func (c *clocks[P, D, S]) ended() (*Tick, error) {
	c.clocks, c.every = c.at.Clock, c.at.Clock
	r, err := c.restored(castOf(c.workers, 1, 1), everyone)
	if err != nil {
		return nil, err
	}
	m := &moment{clock: c.at.Clock, states: c.at.States}
	for _, t := range r.tables {
		m.snapshots = append(m.snapshots, t.restored())
	}
	return &Tick{Clock: c.at.Clock, run: r, of: m}, nil
}

// newRun returns a run on tables that begin with zeros.
func (w Work[P, D, S]) newRun(who cast, self, first, last, every int) (*run, error) {
	r := newRun(who, self, first, last, every)
	for i, t := range w.tables {
		if err := t.check(); err != nil {
			return nil, err
		}
		r.index[t] = i
		r.tables = append(r.tables, t.begin(r, i))
	}
	return r, nil
}

// restored returns a run with the tables of the last tick, if there is one.
func (c *clocks[P, D, S]) restored(who cast, self int) (*run, error) {
	r, err := c.newRun(who, self, c.at.Clock, c.clocks, c.every)
	if err == nil && c.at.Clock > 0 {
		err = r.restore(&c.at)
	}
	return r, err
}

// begin begins a run where the last tick has left it.
func (c *clocks[P, D, S]) begin(ctx context.Context) (*run, error) {
	if c.rows == nil {
		return c.gather(ctx)
	}
	r, err := c.restored(castOf(c.workers, c.rows.Executors, c.rows.Slots), everyone)
	if err == nil {
		err = c.employ(r, c.at.States, c.param, c.rows)
	}
	if err != nil {
		return nil, err
	}
	r.names = c.rows.Names
	if r.pacer, r.timeout = c.rows.Pacer, c.rows.Timeout; c.rows.Computed != nil {
		r.compute(*c.rows.Computed)
	}
	r.mayLead()
	r.start()
	return r, nil
}

// employ gives a run its workers' states, from where they go on, and what they do.
func (w Work[P, D, S]) employ(r *run, from [][]byte, param P, rows source[D]) error {
	states := make([]S, len(r.workers))
	for _, x := range r.workers {
		if r.first == 0 || !x.executor.here {
			continue
		}
		if err := rdd.Decode(from[x.id], &states[x.id]); err != nil {
			return fault.New(fault.Corrupt, "restore", "the state of a worker", err)
		}
	}
	clock := func(x *worker) *Clock[P, D, S] {
		return &Clock[P, D, S]{State: &states[x.id], Param: param, run: r, w: x, rows: rows}
	}
	if w.help != nil {
		r.reassigns(w.help.by, w.help.hands(clock))
	}
	r.work = func(x *worker) ([]byte, error) {
		c := clock(x)
		if err := errors.Join(w.do(c), c.err); err != nil || !r.reports(x.clock+1) {
			return nil, err
		}
		return rdd.Encode(*c.State)
	}
	return nil
}

// took returns how long all runs have taken.
func (c *clocks[P, D, S]) took() time.Duration { return c.before + c.run.now() }

// spent returns how executors have spent their time, in all runs.
func (c *clocks[P, D, S]) spent() spending { return c.run.spent().and(c.earlier) }
