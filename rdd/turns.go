package rdd

import (
	"context"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// turns let goroutines use a session. Actions run side by side: what the session knows is used by one of them at a
// time, which lets others have it while tasks run. Steps, loops, and what changes the plan or its parameters have the
// session alone, as has everything in a plan with a Loop, whose rows are made again by rounds.
type turns struct {
	alone sync.RWMutex // held to read by actions side by side
	state sync.Mutex
	// claims are what one of the actions does for all: by the state.
	claims map[claim]*claimed
}

// turn is one use of a session, which what it calls finds in its context.
type turn struct {
	of     *Session
	beside bool // others may run side by side
}

type turnKey struct{}

// claim is something that one goroutine does at a time.
type claim struct {
	what claimKind
	node int
}

type claimKind uint8

const (
	running  claimKind = iota // an action
	settling                  // what is decided about a node
	making                    // outputs of a shuffle's map tasks
	packing                   // a pack
)

// claimed is a claim that is held.
type claimed struct {
	by   *turn
	free chan struct{} // closed when it ends
}

// turnOf returns the turn under way, if there is one.
func (s *Session) turnOf(ctx context.Context) *turn {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok && t.of == s {
		return t
	}
	return nil
}

// enter begins a turn, unless one is under way, and returns what ends it.
func (s *Session) enter(ctx context.Context, beside bool) (context.Context, func()) {
	if s.turnOf(ctx) != nil {
		return ctx, func() {}
	}
	t := &turn{of: s, beside: beside && s.sideBySide()}
	begin, end := s.turns.alone.Lock, s.turns.alone.Unlock
	if t.beside {
		begin, end = s.turns.alone.RLock, s.turns.alone.RUnlock
	}
	begin()
	s.turns.state.Lock()
	return context.WithValue(ctx, turnKey{}, t), func() {
		s.turns.state.Unlock()
		end()
	}
}

// sideBySide reports whether actions may run side by side: not in virtual time, where tasks run one after the other.
func (s *Session) sideBySide() bool {
	return !s.g.hasLoops.Load() && s.cfg.Slots != nil && s.cfg.Slots() > 0
}

// claim takes what one goroutine does at a time, once it is free; waited says that another had it.
func (s *Session) claim(ctx context.Context, what claimKind, node int) (release func(), waited bool, err error) {
	t, c := s.turnOf(ctx), claim{what, node}
	if t == nil || !t.beside {
		return func() {}, false, nil
	}
	for held := s.turns.claims[c]; held != nil; held = s.turns.claims[c] {
		if held.by == t {
			return func() {}, waited, nil
		}
		waited = true
		if err := s.await(ctx, held.free); err != nil {
			return nil, true, err
		}
	}
	if s.turns.claims == nil {
		s.turns.claims = map[claim]*claimed{}
	}
	mine := &claimed{t, make(chan struct{})}
	s.turns.claims[c] = mine
	return func() {
		delete(s.turns.claims, c)
		close(mine.free)
	}, waited, nil
}

// await lets others have the session until something is free.
func (s *Session) await(ctx context.Context, free <-chan struct{}) error {
	s.turns.state.Unlock()
	defer s.turns.state.Lock()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return fault.New(fault.KindOf(ctx.Err()), "wait for", "another action", ctx.Err())
	}
}

// runTasks runs the tasks of a call; meanwhile others may have the session.
func (s *Session) runTasks(ctx context.Context, req plan.CallRequest) ([][]byte, []error, error) {
	if t := s.turnOf(ctx); t != nil && t.beside {
		s.turns.state.Unlock()
		defer s.turns.state.Lock()
	}
	return s.cluster.RunCall(ctx, req)
}
