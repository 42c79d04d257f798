package host

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	runners "github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// runnerLink is a runner's connection to its executor's daemon, which the process has for as long as it lives: jobs'
// processes that follow each other have a session each.
type runnerLink struct {
	daemon  wire.ExecutorConn
	gate    *runners.Gate
	runner  *localRunner
	adopted chan *wire.Adopt // the job's next process
	ended   chan struct{}    // closed when the daemon is gone

	mu  sync.Mutex
	now *runnerConn
}

func newRunnerLink(by wire.ExecutorConn, gate *runners.Gate, r *localRunner) *runnerLink {
	return &runnerLink{daemon: by, gate: gate, runner: r, adopted: make(chan *wire.Adopt, 1),
		ended: make(chan struct{})}
}

// serve carries out the daemon's messages and hands those for the agent on, until the daemon's connection ends.
func (l *runnerLink) serve() {
	defer close(l.ended)
	for {
		m, err := l.daemon.Recv()
		if err != nil {
			l.session().end()
			return
		}
		c := l.session()
		switch {
		case m.GetAdopt() != nil:
			select {
			case <-l.adopted: // one process after another
			default:
			}
			l.adopted <- m.GetAdopt()
			c.end()
		case !c.own(m):
			if err := c.in.Put(m); fault.KindOf(err) == fault.Timeout { // too much waits: none may be left out
				c.end()
			}
		}
	}
}

func (l *runnerLink) session() *runnerConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// next waits for the next process of the job, after the end of a session; nil is none. The daemon decides how long.
func (l *runnerLink) next() *wire.Adopt {
	select {
	case a := <-l.adopted:
		return a
	default:
	}
	note := &wire.Note{Orphaned: true}
	if err := l.daemon.Send(&wire.ToDriver{Body: &wire.ToDriver_Note{Note: note}}); err != nil {
		return nil
	}
	select {
	case a := <-l.adopted:
		return a
	case <-l.ended:
		return nil
	}
}

// runnerConn is a runner's connection to a process of its job: direct, or relayed by executor and driver where
// the process cannot be reached. The executor's daemon gets notes of what it needs to know. Messages for the
// process rather than for the job's agent are handled here.
type runnerConn struct {
	*runnerLink
	in     *wire.Queue[*wire.ToExecutor] // relayed
	direct *direct                       // nil where there is none
	notes  *wire.Outbox[*wire.Note]      // for the daemon: nothing waits for them
	over   bool                          // under the lock of memberships
}

// begin begins the session of a process of the job, which serves Direct at an address.
func (l *runnerLink) begin(direct, incarnation string) *runnerConn {
	c := &runnerConn{runnerLink: l, in: wire.NewQueue[*wire.ToExecutor]()}
	if direct != "" && !l.runner.process.Unreachable {
		var err error
		if c.direct, err = dialDirect(direct, incarnation, l.runner.self); err != nil {
			fmt.Fprintf(os.Stderr,
				"volley: no direct connection to the job's process, messages are relayed by the driver: %v\n", err)
		}
	}
	send := func(n *wire.Note) error { return l.daemon.Send(&wire.ToDriver{Body: &wire.ToDriver_Note{Note: n}}) }
	c.notes = wire.NewOutbox(send, func(error) { c.end() })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = c
	return c
}

// end ends the session.
func (c *runnerConn) end() {
	c.in.Stop()
	c.runner.gangs.endAll(c)
	if c.direct != nil {
		c.direct.close()
	}
}

// Send sends a message. The first is the registration, which must pass through the daemons.
func (c *runnerConn) Send(m *wire.ToDriver) error {
	reg := m.GetRegister()
	if reg != nil && c.direct != nil {
		reg.Direct = c.direct.name
	}
	if n := sentNote(m); n != nil {
		_ = c.notes.Put(n) // its failure ends the connection
	}
	if c.direct == nil || reg != nil {
		return c.daemon.Send(m)
	}
	return c.direct.send(m)
}

// Close ends the connection.
func (c *runnerConn) Close() error {
	c.notes.Stop()
	c.end()
	return nil
}

// sentNote returns the note to the daemon about a message to the job's process; nil is none.
func sentNote(m *wire.ToDriver) *wire.Note {
	switch b := m.Body.(type) {
	case *wire.ToDriver_Result:
		n := &wire.Note{Ended: true, BusyNs: b.Result.BusyNs}
		for _, c := range b.Result.Coverage {
			n.Rows += c.Count
		}
		return n
	case *wire.ToDriver_Holding:
		if b.Holding.Fault == nil {
			return &wire.Note{Held: true, Pack: b.Holding.Pack, Split: b.Holding.Split}
		}
	}
	return nil
}

// begunNote returns the note to the daemon about a step that begins: leases arrive later, for all slots.
func (c *runnerConn) begunNote(s *wire.StartStep) *wire.Note {
	if s.Leased {
		return &wire.Note{Began: uint32(c.runner.process.Slots)}
	}
	return &wire.Note{Began: uint32(max(1, len(s.Tasks)))}
}

// Recv waits for the agent's next message.
func (c *runnerConn) Recv() (*wire.ToExecutor, error) {
	recv := c.in.Take
	if c.direct != nil {
		recv = c.direct.recv
	}
	for {
		m, err := recv()
		if err != nil || c.direct == nil || !c.own(m) {
			return m, err
		}
	}
}

// own reports whether a message was for this process, and if so carries it out.
func (c *runnerConn) own(m *wire.ToExecutor) bool {
	switch b := m.Body.(type) {
	case *wire.ToExecutor_Pause:
		c.gate.Set(b.Pause.On)
	case *wire.ToExecutor_Gang:
		c.onGang(b.Gang)
	case *wire.ToExecutor_Hand:
		go c.hand(b.Hand)
	case *wire.ToExecutor_Ask:
		go c.runner.self.answer(b.Ask, c.runner.process.Executor)
	case *wire.ToExecutor_StartStep:
		_ = c.notes.Put(c.begunNote(b.StartStep)) // its failure ends the connection
		return false
	default:
		return false
	}
	return true
}

func (c *runnerConn) hand(h *wire.Hand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.runner.hand(ctx, h); err != nil {
		fmt.Fprintf(os.Stderr, "volley: a block was not handed to the driver: %v\n", err)
	}
}
