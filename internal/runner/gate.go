package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate makes slots stand still between two chunks while it is closed. A nil
// Gate is open.
type Gate struct {
	closed atomic.Bool
	mu     sync.Mutex
	moved  *sync.Cond
}

// NewGate makes an open gate.
func NewGate() *Gate {
	g := &Gate{}
	g.moved = sync.NewCond(&g.mu)
	return g
}

// Set closes or opens the gate.
func (g *Gate) Set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed.Store(closed)
	g.moved.Broadcast()
}

// wake makes the slots that wait at the gate check it again.
func (g *Gate) wake() {
	if g != nil {
		g.mu.Lock()
		g.moved.Broadcast()
		g.mu.Unlock()
	}
}

// pass waits until the page's gate is open or the page says stop, and returns for how long.
func (p *Page) pass() time.Duration {
	g := p.gate
	if g == nil || !g.closed.Load() {
		return 0
	}
	began := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed.Load() && !p.Stopped() {
		g.moved.Wait()
	}
	return time.Since(began)
}

// Pass waits until the gate is open or the context has ended, and returns for how long.
func (g *Gate) Pass(ctx context.Context) time.Duration {
	if g == nil || !g.closed.Load() {
		return 0
	}
	began := time.Now()
	defer context.AfterFunc(ctx, g.wake)()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.closed.Load() && ctx.Err() == nil {
		g.moved.Wait()
	}
	return time.Since(began)
}
