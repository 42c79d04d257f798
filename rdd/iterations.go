package rdd

import (
	"context"
	"iter"
	"reflect"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Iteration is one turn of a loop.
type Iteration struct {
	// Number counts from 1; after a resume it goes on from the checkpoint.
	Number int
	values map[string]float64
	used   *plan.TablesUse
	stop   bool
}

// Report notes a value of this iteration, for the event log and the
// terminal.
func (it *Iteration) Report(name string, value float64) { it.values[name] = value }

// Used notes what workers on parameter tables have done. It is for package tables, and promises nothing to others.
func (it *Iteration) Used(u *plan.TablesUse) { it.used = u }

// Stop makes this iteration the last: it is committed like the others.
func (it *Iteration) Stop() { it.stop = true }

// Iterations returns a loop of at most n turns whose state survives: everything
// that one turn hands to the next is in *state, which is restored from the
// checkpoint where the job resumes from one and committed at the end of each
// turn. The loop ends early at Stop, at the context's end, or at an error,
// which Session.Err has. A body that is left, by return or break, has not done its
// turn, unless it called Stop: nothing of it is committed. A program may have several
// loops, one after the other: each goes on from its own state, and one that has
// ended is not run again.
func Iterations[T any](ctx context.Context, s *Session, state *T, n int) iter.Seq[*Iteration] {
	site := callSite()
	return func(yield func(*Iteration) bool) {
		if err := row.Encodable(reflect.TypeFor[T]()); err != nil {
			s.err = fault.Newf(fault.UserCode, "begin a loop", site, "its state cannot be encoded: %v", err)
			return
		}
		s.loops++
		loop := s.loops
		mark := s.cluster.Resume(loop)
		s.loop.began, s.loop.before = s.Now()-s.eval, mark.Took
		first, ended := mark.Iteration, mark.Ended
		if first > 0 {
			if err := row.OpenState(mark.State, state); err != nil {
				s.err = fault.New(fault.Corrupt, "restore", "the checkpoint's state", err)
				return
			}
		}
		if s.reopens != nil && first > 0 && s.reopens() {
			ended = false
		}
		s.reopens = nil
		for k := first + 1; k <= n && !ended; k++ {
			if s.interrupted = ctx.Err() != nil; s.interrupted {
				return
			}
			it := &Iteration{Number: k, values: map[string]float64{}}
			if more := yield(it); s.failed || !more && !it.stop {
				return // a turn that failed, or was left, has nothing to commit
			}
			ended = it.stop || k == n
			if err := commit(ctx, s, Commit{Loop: loop, Iteration: k, Values: it.values, Took: s.LoopTime(),
				Last: ended, Stopped: it.stop, Most: n, Used: it.used}, *state); err != nil {
				s.err = err
				return
			}
		}
	}
}

// ReopenIf has f called once the state of the next loop is restored, where a job is resumed: if f reports true the loop
// goes on, even if the process before has ended it by Stop.
func (s *Session) ReopenIf(f func() bool) { s.reopens = f }

// Err returns why a loop ended, where that was an error.
func (s *Session) Err() error { return s.err }

// Interrupted reports whether the context has ended a loop before it ended itself.
func (s *Session) Interrupted() bool { return s.interrupted }

// Parametric is a loop's state that remembers more than its parameters: the digest
// that a turn commits, and a replay compares, is of these alone.
type Parametric interface {
	// Parameters are the parameters. They are not kept.
	Parameters() [][]float64
}

// commit settles the turn's parameters with the cluster.
func commit[T any](ctx context.Context, s *Session, c Commit, state T) error {
	var raw []byte
	var err error
	encode := func() []byte {
		if raw == nil && err == nil {
			raw, err = Encode(state)
		}
		return raw
	}
	var digest plan.Digest
	if p, ok := any(&state).(Parametric); ok {
		digest = row.DigestFloats(p.Parameters())
	} else {
		digest = plan.DigestOf(encode())
	}
	if err != nil {
		return fault.New(fault.UserCode, "encode", "the loop's state", err)
	}
	sealed := func() []byte {
		if encode(); raw == nil && err != nil {
			return nil
		}
		return row.SealState[T](raw)
	}
	c.State, c.Digest = sealed, digest
	_, leave, _ := s.enter(context.WithoutCancel(ctx), false)
	failed := s.cluster.Commit(ctx, c)
	leave()
	if err != nil {
		return fault.New(fault.UserCode, "encode", "the loop's state", err)
	}
	if failed == nil && s.cfg.Progress != nil {
		s.cfg.Progress(Progress{Iteration: c.Iteration, Most: c.Most, Values: c.Values, Info: s.info})
	}
	return failed
}
