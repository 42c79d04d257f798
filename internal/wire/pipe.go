package wire

import (
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

// Version is the version of the protocol. A driver and an executor of
// different versions do not work together.
const Version = "volley/1"

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

// pipeDepth is how many messages may wait in a pipe before Send blocks.
const pipeDepth = 256

// Pipe connects a driver and an executor within one process. Messages cross
// it encoded, so what works here works between processes.
func Pipe() (DriverConn, ExecutorConn) {
	down, up := make(chan []byte, pipeDepth), make(chan []byte, pipeDepth)
	shared := &pipe{closed: make(chan struct{})}
	return &driverPipe{shared, down, up}, &executorPipe{shared, down, up}
}

type pipe struct {
	once   sync.Once
	closed chan struct{}
}

// Close ends both directions; messages already sent may be lost.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) send(to chan<- []byte, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "encode", "message", err)
	}
	select {
	case to <- raw:
		return nil
	case <-p.closed:
		return io.ErrClosedPipe
	}
}

func (p *pipe) recv(from <-chan []byte, m proto.Message) error {
	select {
	case raw := <-from:
		return proto.Unmarshal(raw, m)
	case <-p.closed:
		return io.EOF
	}
}

type driverPipe struct {
	*pipe
	down, up chan []byte
}

func (d *driverPipe) Send(m *ToExecutor) error { return d.send(d.down, m) }

func (d *driverPipe) Recv() (*ToDriver, error) {
	m := &ToDriver{}
	return m, d.recv(d.up, m)
}

type executorPipe struct {
	*pipe
	down, up chan []byte
}

func (e *executorPipe) Send(m *ToDriver) error { return e.send(e.up, m) }

func (e *executorPipe) Recv() (*ToExecutor, error) {
	m := &ToExecutor{}
	return m, e.recv(e.down, m)
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
