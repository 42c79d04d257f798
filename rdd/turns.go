package rdd

import (
	"context"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// turns let goroutines use a session. Actions run side by side: what the session knows is used by one of them at a
// time, which lets others have it while tasks run. Steps, loops, and what changes the plan or its parameters have the
// session alone, as has everything in a plan with a Loop, whose rows are made again by rounds.
type turns struct {
	mu     sync.Mutex
	beside int  // turns of actions side by side
	alone  bool // there is one that is not
	used   bool // the state is in use
	// building says that the function of a later part runs, which takes no time: who waits for it may be that function.
	building bool
	freed    chan struct{} // closed when anything of this changes; nil where none waits
	// claims are what one of the actions does for all: by the state.
	claims map[claim]*claimed
}

// buildTime is how long a session is waited for while a later part of its plan is being built.
const buildTime = 5 * time.Second

// until waits until take takes what it wants. Its error is that of the context, where that ends before.
func (t *turns) until(ctx context.Context, take func() bool) error {
	for {
		t.mu.Lock()
		if take() {
			t.mu.Unlock()
			return nil
		}
		if t.freed == nil {
			t.freed = make(chan struct{})
		}
		freed := t.freed
		var stuck <-chan time.Time
		if t.building {
			stuck = time.After(buildTime)
		}
		t.mu.Unlock()
		select {
		case <-freed:
		case <-stuck:
			return fault.Newf(fault.UserCode, "use", "a session", "a later part of its plan is being built").
				WithHint("the function of Later may use its arguments only")
		case <-ctx.Done():
			return fault.New(fault.KindOf(ctx.Err()), "wait for", "another action", ctx.Err())
		}
	}
}

// free gives something back.
func (t *turns) free(give func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if give(); t.freed != nil {
		close(t.freed)
		t.freed = nil
	}
}

// lock takes the state, however long it takes: who has it gives it back while tasks run.
func (t *turns) lock() {
	t.until(context.Background(), func() bool {
		free := !t.used
		t.used = true
		return free
	})
}

func (t *turns) unlock() { t.free(func() { t.used = false }) }

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
	dir  string
}

type claimKind uint8

const (
	running  claimKind = iota // an action
	settling                  // what is decided about a node
	making                    // outputs of a shuffle's map tasks
	packing                   // a pack
	saving                    // into a directory
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

// enter begins a turn, unless one is under way, and returns what ends it. Its error is that the context has ended
// before the turn came.
func (s *Session) enter(ctx context.Context, beside bool) (context.Context, func(), error) {
	if s.turnOf(ctx) != nil {
		return ctx, func() {}, nil
	}
	t, many := &turn{of: s}, beside && s.cfg.Slots != nil && s.cfg.Slots() > 0 // in virtual time tasks run in turn
	err := s.turns.until(ctx, func() bool {
		t.beside = many && !s.g.hasLoops.Load()
		u := &s.turns
		if u.alone || u.used || !t.beside && u.beside > 0 {
			return false
		}
		u.used, u.alone = true, !t.beside
		if t.beside {
			u.beside++
		}
		return true
	})
	if err != nil {
		return ctx, func() {}, err
	}
	return context.WithValue(ctx, turnKey{}, t), func() {
		s.turns.free(func() {
			if s.turns.used = false; t.beside {
				s.turns.beside--
			} else {
				s.turns.alone = false
			}
		})
	}, nil
}

// claim takes what one goroutine does at a time, once it is free; waited says that another had it.
func (s *Session) claim(ctx context.Context, what claimKind, node int) (release func(), waited bool, err error) {
	return s.claimOf(ctx, claim{what: what, node: node})
}

func (s *Session) claimOf(ctx context.Context, c claim) (release func(), waited bool, err error) {
	t := s.turnOf(ctx)
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
	s.turns.unlock()
	defer s.turns.lock()
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
		s.turns.unlock()
		defer s.turns.lock()
	}
	return s.cluster.RunCall(ctx, req)
}
