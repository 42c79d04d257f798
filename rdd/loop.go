package rdd

import (
	"context"
	"fmt"
	"maps"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// Loop is a dataset that is replaced, round by round, by what a plan that was
// built once makes of it: ranks of pages, labels of components. What is kept of
// a round is its rows, not how they came to be, so that the thousandth costs
// what the first did.
type Loop[T any] struct {
	first Dataset[T] // what the loop begins with
	now   Dataset[T]
	next  int // the node that writes the next rows
}

// NewLoop declares a loop that begins with a dataset, and whose rounds are what
// body makes of the present rows. Body is called once, to build the plan; the
// number of partitions must stay the same.
func NewLoop[T any](first Dataset[T], body func(now Dataset[T]) Dataset[T]) *Loop[T] {
	l := &Loop[T]{first: first}
	g := first.g
	had := g.hasLoops.Swap(true)
	g.undos = append(g.undos, func() { g.hasLoops.Store(had) })
	l.now = kept(first, "loop", "", Memory, func(d *shuffleDecl) { d.copies = loopCopies })
	l.now.parts = func() int {
		if d := g.decisionOf(l.now.id); len(d) == 1 {
			return d[0]
		}
		return first.parts()
	}
	next := body(l.now)
	if next.g != g {
		g.fail("loop: the body's dataset is of another plan")
	}
	if next.spread != first.spread {
		g.fail("loop: it begins with keys spread over %d partitions and goes on with %d: give both the same "+
			"Partitions, or neither", first.spread, next.spread)
	}
	row, _ := row.CodecOf[T]()
	d := &shuffleDecl{maps: next.parts, narrow: true, copies: loopCopies}
	d.write = func(ctx context.Context, part int, packs runner.TaskContext) (*written, error) {
		return writeWholePart(ctx, next, part, row, packs)
	}
	l.next = keep[T](g, "loop-round", "", next.id, d)
	return l
}

// loopCopies is how many executors hold the rows of a round: what they were made
// of is gone.
const loopCopies = 2

// loopRun is how far a loop has come in a session.
type loopRun struct {
	rounds  int
	began   int // how often parameters had been set when it began
	again   int // rounds that are to be run again
	restart func(ctx context.Context) error
}

// replayLoops makes the present rounds again of loops that have lost theirs.
func (s *Session) replayLoops(ctx context.Context) error {
	for _, id := range s.stages.LostRounds() {
		if err := s.replay(ctx, id, s.loopRuns[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) loopOf(id int) *loopRun {
	if s.loopRuns[id] == nil {
		s.loopRuns[id] = &loopRun{}
	}
	return s.loopRuns[id]
}

// Now returns the dataset of the present round's rows, for actions between rounds.
func (l *Loop[T]) Now() Dataset[T] { return l.now }

// Rounds returns how many rounds have been run.
func (l *Loop[T]) Rounds(s *Session) int {
	_, leave, _ := s.enter(context.Background(), true)
	defer leave()
	return s.loopOf(l.now.id).rounds
}

// Step runs a round: from now on the loop's rows are what its body makes of them.
// Each round's rows are held by two executors, where there are as many; where all
// that hold some are lost, the rounds are run again from the beginning, unless
// parameters have been set since.
func (l *Loop[T]) Step(ctx context.Context, s *Session) error {
	ctx, leave, err := s.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	r := s.loopOf(l.now.id)
	r.restart = func(ctx context.Context) error { return l.restart(ctx, s, r) }
	return l.round(ctx, s, r, true)
}

// errRoundLost says that rows of the present round are lost.
var errRoundLost = fmt.Errorf("rows of the present round are lost")

// replay runs a loop's rounds again from the beginning.
func (s *Session) replay(ctx context.Context, id int, r *loopRun) error {
	if s.paramSet > r.began {
		err := fmt.Errorf("%w, and parameters have been set since the loop began", errRoundLost)
		return fault.New(fault.LostInput, "run", s.g.name(id), err).
			WithHint("begin the job again, or keep what is needed in Iterations")
	}
	r.again = r.rounds
	_, err := s.carryOut(ctx, s.stages.Rerun(id), plan.NoPack, nil)
	return err
}

// restart runs rounds again from the beginning.
func (l *Loop[T]) restart(ctx context.Context, s *Session, r *loopRun) error {
	r.rounds = 0
	s.stages.Restart(l.now.id)
	s.drop(l.now.id)
	s.dropAbove(l.now.id, -1) // what was made of a round that did not end is no part of the first
	s.g.decided.Delete(l.now.id)
	for r.rounds = 0; r.rounds < r.again; {
		if err := l.round(ctx, s, r, false); err != nil {
			return err
		}
	}
	return nil
}

// round makes the next rows and puts them into the place of the present ones.
func (l *Loop[T]) round(ctx context.Context, s *Session, r *loopRun, replays bool) error {
	if r.rounds == 0 {
		r.began = s.paramSet
	}
	if err := s.makeStage(ctx, l.next, replays); err != nil {
		return err
	}
	made, old := s.shuffled[l.next], s.shuffled[l.now.id]
	for _, o := range made {
		o.Of = l.next + 1
	}
	// What the round was computed from is not needed any more.
	s.dropAbove(l.now.id, l.next)
	s.dropped = maps.Clone(s.dropped)
	for m, o := range old {
		if _, there := s.stages.Holders(l.now.id, m); there {
			wrote := l.now.id
			if o.Of > 0 {
				wrote = o.Of - 1
			}
			s.dropped[wrote] = max(s.dropped[wrote], o.Attempt)
		}
	}
	s.stages.Turn(l.now.id, l.next)
	s.shuffled[l.now.id] = made
	delete(s.shuffled, l.next)
	s.g.decided.Store(l.now.id, []int{len(made)})
	r.rounds++
	return nil
}

// dropAbove forgets the outputs of all shuffles that are computed from a node, but
// for one.
func (s *Session) dropAbove(id, but int) {
	for up := range s.g.size() {
		if !s.g.above(up, id) {
			continue
		}
		if up != but && s.g.node(up).shuffle != nil && !s.inLoop(up) {
			s.drop(up)
		}
		s.reopen(up)
	}
}

// inLoop reports whether a node holds the rows of a loop that has begun: they stay,
// whatever becomes of what the loop began with.
func (s *Session) inLoop(id int) bool {
	r := s.loopRuns[id]
	return r != nil && r.rounds > 0
}

// reopen makes open again what was decided about a node whose rows are others
// now.
func (s *Session) reopen(id int) {
	delete(s.settled, id)
	n := s.g.node(id)
	if n.settle != nil && (n.shuffle == nil || n.shuffle.dir == "") || n.choice != nil || len(n.joins) > 0 {
		s.g.decided.Delete(id)
	}
}
