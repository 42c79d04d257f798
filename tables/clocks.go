package tables

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// Tick is a moment at which all workers have finished a number of clocks. Table.At returns rows as they are after
// exactly these, whatever workers have done since: they do not wait meanwhile, but for reports that are not taken.
type Tick struct {
	// Clock is how many clocks all workers have finished.
	Clock int
	// Busy is how long slots have worked so far, all together, and Waited how long they have waited, as no worker of
	// theirs might go on.
	Busy, Waited time.Duration
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

// WaitedShare returns the share of their time that slots have waited.
func (t *Tick) WaitedShare() float64 {
	return t.Waited.Seconds() / max(1e-9, (t.Waited+t.Busy).Seconds())
}

// Clocks runs the workers under a parameter for a number of clocks, and yields a tick after each `every` of them and after the last. A
// job that is resumed goes on from the last tick that was committed; where that was the last of all, it is yielded once
// more. Tables begin with zeros each time. Workers are stopped where the loop is left.
func (w Work[P, D, S]) Clocks(ctx context.Context, s *rdd.Session, param P, clocks, every int) iter.Seq2[*Tick, error] {
	return func(yield func(*Tick, error) bool) {
		if clocks < 1 || every < 1 {
			yield(nil, fault.Newf(fault.Usage, "run", "workers", "%d clocks, reported after each %d", clocks, every))
			return
		}
		data, err := w.data.Resident(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		defer data.Close()
		var at progress
		var r *run
		defer func() {
			if r != nil {
				r.stop()
			}
		}()
		for turn := range rdd.Iterations(ctx, s, &at, (clocks+every-1)/every) {
			if r == nil {
				if r, err = w.begin(data, param, &at, clocks, every); err != nil {
					yield(nil, err)
					return
				}
			}
			m, err := r.take(ctx, min(clocks, turn.Number*every))
			if err != nil {
				yield(nil, err)
				return
			}
			at = progress{Clock: m.clock, States: m.states, tables: r.tables, of: m}
			t := &Tick{Clock: m.clock, run: r, of: m, turn: turn}
			t.Busy, t.Waited = r.spent()
			if !yield(t, nil) {
				return
			}
		}
		switch err := s.Err(); {
		case err != nil:
			yield(nil, err)
		case s.Interrupted():
			yield(nil, context.Cause(ctx))
		case r == nil:
			yield(w.ended(data, &at))
		}
	}
}

// ended returns the last tick of a job that had ended before it was resumed.
func (w Work[P, D, S]) ended(data *rdd.Resident[D], at *progress) (*Tick, error) {
	r, err := w.restored(data, at, at.Clock, at.Clock)
	if err != nil {
		return nil, err
	}
	m := &moment{clock: at.Clock, states: at.States}
	for _, t := range r.tables {
		m.snapshots = append(m.snapshots, t.restored())
	}
	return &Tick{Clock: at.Clock, run: r, of: m}, nil
}

// restored returns a run with the tables of a checkpoint, if there is one.
func (w Work[P, D, S]) restored(data *rdd.Resident[D], at *progress, clocks, every int) (*run, error) {
	r := newRun(data.Splits(), data.Executors, at.Clock, clocks, every)
	for i, t := range w.tables {
		if err := t.check(); err != nil {
			return nil, err
		}
		r.index[t] = i
		r.tables = append(r.tables, t.begin(r, i))
	}
	if at.Clock > 0 {
		return r, r.restore(at)
	}
	return r, nil
}

// begin begins a run where a checkpoint has left it.
func (w Work[P, D, S]) begin(data *rdd.Resident[D], param P, at *progress, clocks, every int) (*run, error) {
	r, err := w.restored(data, at, clocks, every)
	if err != nil {
		return nil, err
	}
	states := make([]S, data.Splits())
	if at.Clock > 0 {
		for i := range states {
			if err := rdd.Decode(at.States[i], &states[i]); err != nil {
				return nil, fault.New(fault.Corrupt, "restore", "the state of a worker", err)
			}
		}
	}
	r.work = func(x *worker) ([]byte, error) {
		c := &Clock[P, D, S]{State: &states[x.id], Param: param, run: r, w: x, rows: data.Rows}
		if err := errors.Join(w.do(c), c.err); err != nil || !r.reports(x.clock+1) {
			return nil, err
		}
		return rdd.Encode(*c.State)
	}
	r.mayLead()
	for _, t := range r.tables {
		t.start()
	}
	r.start(data.Slots)
	return r, nil
}

// spent returns how long slots have worked and waited.
func (r *run) spent() (busy, waited time.Duration) {
	for _, x := range r.executors {
		x.mu.Lock()
		busy, waited = busy+x.busy, waited+x.waited
		x.mu.Unlock()
	}
	return busy, waited
}
