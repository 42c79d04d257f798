package wire

import (
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

// Version is the version of the protocol. A driver and an executor of
// different versions do not work together.
const Version = "volley/2"

// DriverConn is the driver's end of a connection to one executor.
type DriverConn interface {
	Send(*ToExecutor) error
	Recv() (*ToDriver, error)
	Close() error
}

// ExecutorConn is an executor's end of its connection to the driver.
type ExecutorConn interface {
	Send(*ToDriver) error
	Recv() (*ToExecutor, error)
	Close() error
}

// Pipe connects a driver and an executor within one process. Messages cross
// it encoded, so what works here works between processes. Send never blocks:
// both ends run a loop that must not wait for the other.
func Pipe() (DriverConn, ExecutorConn) {
	p := &pipe{down: newQueue(), up: newQueue()}
	return &driverPipe{p}, &executorPipe{p}
}

type pipe struct{ down, up *queue }

// Close ends both directions; messages already sent may be lost.
func (p *pipe) Close() error {
	p.down.close()
	p.up.close()
	return nil
}

// queueLimit is how many messages may wait: an end that reads so little is
// as good as dead, and its connection is closed.
const queueLimit = 1 << 20

// queue is an unbounded channel of encoded messages.
type queue struct {
	mu struct {
		sync.Mutex
		waiting [][]byte
		closed  bool
	}
	ready *sync.Cond
}

func newQueue() *queue {
	q := &queue{}
	q.ready = sync.NewCond(&q.mu)
	return q
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed, q.mu.waiting = true, nil
	q.ready.Broadcast()
}

func (q *queue) send(m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "encode", "message", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed || len(q.mu.waiting) >= queueLimit {
		return io.ErrClosedPipe
	}
	q.mu.waiting = append(q.mu.waiting, raw)
	q.ready.Signal()
	return nil
}

func (q *queue) recv(m proto.Message) error {
	q.mu.Lock()
	for len(q.mu.waiting) == 0 && !q.mu.closed {
		q.ready.Wait()
	}
	if q.mu.closed {
		q.mu.Unlock()
		return io.EOF
	}
	raw := q.mu.waiting[0]
	q.mu.waiting = q.mu.waiting[1:]
	q.mu.Unlock()
	return proto.Unmarshal(raw, m)
}

type driverPipe struct{ *pipe }

func (d *driverPipe) Send(m *ToExecutor) error { return d.down.send(m) }

func (d *driverPipe) Recv() (*ToDriver, error) {
	m := &ToDriver{}
	return m, d.up.recv(m)
}

type executorPipe struct{ *pipe }

func (e *executorPipe) Send(m *ToDriver) error { return e.up.send(m) }

func (e *executorPipe) Recv() (*ToExecutor, error) {
	m := &ToExecutor{}
	return m, e.down.recv(m)
}

// FromError is an error in its wire form; nil stays nil.
func FromError(err error) *Fault {
	w := fault.ToWire(err)
	if w == nil {
		return nil
	}
	return &Fault{Kind: uint32(w.Kind), Op: w.Op, Subject: w.Subject, Hint: w.Hint, Message: w.Message}
}

// AsError is the error that a fault carries; nil stays nil.
func (x *Fault) AsError() error {
	if x == nil {
		return nil
	}
	return fault.FromWire(&fault.Wire{Kind: fault.Kind(x.Kind), Op: x.Op, Subject: x.Subject, Hint: x.Hint, Message: x.Message})
}
