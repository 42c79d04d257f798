package host

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	runners "github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// runnerConn is a runner's connection to its job's driver: by way of executor
// and driver, and straight to the job's process for what is bulky. What is for
// the process and not for the job's agent it does itself.
type runnerConn struct {
	wire.ExecutorConn
	gate   *runners.Gate
	runner *localRunner
	direct *direct // nil where there is none
	in     *wire.Queue[*wire.ToExecutor]
}

func newRunnerConn(by wire.ExecutorConn, gate *runners.Gate, r *localRunner) *runnerConn {
	c := &runnerConn{ExecutorConn: by, gate: gate, runner: r, in: wire.NewQueue[*wire.ToExecutor]()}
	if r.process.Direct != "" && !r.process.Unreachable {
		var err error
		if c.direct, err = dialDirect(r.process.Direct, r.process.Token); err != nil {
			fmt.Fprintf(os.Stderr, "volley: everything goes by way of the driver: %v\n", err)
		}
	}
	go c.read(by.Recv)
	if c.direct != nil {
		go c.read(c.direct.recv)
	}
	return c
}

// Send sends a message, whose first is the registration.
func (c *runnerConn) Send(m *wire.ToDriver) error {
	if c.direct == nil {
		return c.ExecutorConn.Send(m)
	}
	if reg := m.GetRegister(); reg != nil {
		reg.Direct = c.direct.name
	}
	b, ok, err := wire.BulkOf(m)
	if err != nil {
		return err
	}
	if !ok {
		return c.ExecutorConn.Send(m)
	}
	if err := c.direct.stream.SendMsg(b); err != nil {
		return err
	}
	bare := &wire.ToDriver{}
	if err := proto.Unmarshal(b.Head, bare); err != nil {
		return err
	}
	// The executor has to know that the run is over.
	return c.ExecutorConn.Send(&wire.ToDriver{Body: &wire.ToDriver_Folded{Folded: bare.GetResult()}})
}

// Recv waits for the agent's next message.
func (c *runnerConn) Recv() (*wire.ToExecutor, error) { return c.in.Take() }

// read takes messages in until the connection ends, and with it all of them.
func (c *runnerConn) read(recv func() (*wire.ToExecutor, error)) {
	defer c.in.Stop()
	for {
		m, err := recv()
		if err != nil {
			return
		}
		switch b := m.Body.(type) {
		case *wire.ToExecutor_Pause:
			c.gate.Set(b.Pause.On)
		case *wire.ToExecutor_Hand:
			go c.hand(b.Hand)
		default:
			if c.in.Put(m) != nil {
				return
			}
		}
	}
}

func (c *runnerConn) hand(h *wire.Hand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.runner.hand(ctx, h); err != nil {
		fmt.Fprintf(os.Stderr, "volley: a block was not handed to the driver: %v\n", err)
	}
}
