package host

import (
	"context"
	"fmt"
	"os"

	runners "github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// runnerConn is a runner's connection to its job's process: direct, or relayed by executor and driver where
// the process cannot be reached. The executor's daemon gets notes of what it needs to know. Messages for the
// process rather than for the job's agent are handled here.
type runnerConn struct {
	daemon wire.ExecutorConn
	gate   *runners.Gate
	runner *localRunner
	direct *direct                  // nil where there is none
	notes  *wire.Outbox[*wire.Note] // for the daemon: nothing waits for them
}

func newRunnerConn(by wire.ExecutorConn, gate *runners.Gate, r *localRunner) *runnerConn {
	c := &runnerConn{daemon: by, gate: gate, runner: r}
	if r.process.Direct != "" && !r.process.Unreachable {
		var err error
		if c.direct, err = dialDirect(r.process.Direct, r.self); err != nil {
			fmt.Fprintf(os.Stderr,
				"volley: no direct connection to the job's process, messages are relayed by the driver: %v\n", err)
		}
	}
	send := func(n *wire.Note) error { return by.Send(&wire.ToDriver{Body: &wire.ToDriver_Note{Note: n}}) }
	c.notes = wire.NewOutbox(send, func(error) { c.end() })
	if c.direct != nil {
		go c.serveDaemon()
	}
	return c
}

// serveDaemon carries out the daemon's messages, until its connection ends and with it the other.
func (c *runnerConn) serveDaemon() {
	defer c.end()
	for {
		m, err := c.daemon.Recv()
		if err != nil {
			return
		}
		c.own(m)
	}
}

// end ends both connections.
func (c *runnerConn) end() {
	c.daemon.Close()
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
	recv := c.daemon.Recv
	if c.direct != nil {
		recv = c.direct.recv
	}
	for {
		m, err := recv()
		if err != nil || !c.own(m) {
			return m, err
		}
	}
}

// own reports whether a message was for this process, and if so carries it out.
func (c *runnerConn) own(m *wire.ToExecutor) bool {
	switch b := m.Body.(type) {
	case *wire.ToExecutor_Pause:
		c.gate.Set(b.Pause.On)
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
