package host

import (
	"fmt"
	"io"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// Loss is an executor of an embedded cluster that is lost: for programs' tests.
type Loss struct {
	Executor int // from 0
	After    int // how many tasks and parts of steps it is given before the one at which it is lost
}

// checkLosses returns an error where an executor that is to be lost is none, or none would be left.
func (c Config) checkLosses() error {
	lost := map[int]bool{}
	for _, l := range c.Losses {
		if l.Executor < 0 || l.Executor >= c.Executors {
			return fault.Newf(fault.Usage, "lose", fmt.Sprintf("executor %d", l.Executor), "there are %d, from 0",
				c.Executors)
		}
		lost[l.Executor] = true
	}
	if len(lost) == c.Executors {
		return fault.Newf(fault.Usage, "lose", "all executors", "none would be left")
	}
	return nil
}

// losing is the connection of an executor that is to be lost.
type losing struct {
	wire.ExecutorConn
	left int
	once sync.Once
	lose func()
}

// Recv returns the next message; at the one at which the executor is lost, it is.
func (c *losing) Recv() (*wire.ToExecutor, error) {
	m, err := c.ExecutorConn.Recv()
	if err != nil || !isWork(m) {
		return m, err
	}
	if c.left--; c.left >= 0 {
		return m, nil
	}
	c.once.Do(c.lose)
	c.Close()
	return nil, io.EOF
}

// isWork reports whether a message is a task, or an executor's part of a step.
func isWork(m *wire.ToExecutor) bool {
	return m.GetRunTask() != nil || m.GetStartStep() != nil || m.GetLeases() != nil
}
