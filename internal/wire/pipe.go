package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/fault"
)

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
// it encoded, so what works here works between processes. The driver's Send never blocks, the
// executor's where the driver is behind.
func Pipe() (DriverConn, ExecutorConn) {
	p := &pipe{down: NewQueue[[]byte](), up: NewQueue[[]byte]()}
	return &driverPipe{p}, &executorPipe{p}
}

type pipe struct{ down, up *Queue[[]byte] }

// Close ends both directions; messages already sent may be lost.
func (p *pipe) Close() error {
	p.down.Stop()
	p.up.Stop()
	return nil
}

type driverPipe struct{ *pipe }

// Send sends a message. An end that lags too far behind counts as dead, and its connection is closed.
func (d *driverPipe) Send(m *ToExecutor) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "encode", "message", err)
	}
	if err = d.down.Put(raw); err != nil {
		d.Close()
	}
	return err
}

func (d *driverPipe) Recv() (*ToDriver, error) {
	raw, err := d.up.Take()
	if err != nil {
		return nil, err
	}
	m := &ToDriver{}
	return m, proto.Unmarshal(raw, m)
}

type executorPipe struct{ *pipe }

// Send sends a message, once there is room: the driver never waits for an executor.
func (e *executorPipe) Send(m *ToDriver) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "encode", "message", err)
	}
	if err = e.up.Await(raw, Patience); err != nil {
		e.Close()
	}
	return err
}

func (e *executorPipe) Recv() (*ToExecutor, error) {
	raw, err := e.down.Take()
	if err != nil {
		return nil, err
	}
	m := &ToExecutor{}
	return m, proto.Unmarshal(raw, m)
}

// FromError returns an error in its wire form; nil stays nil.
func FromError(err error) *Fault {
	w := fault.ToWire(err)
	if w == nil {
		return nil
	}
	return &Fault{Kind: uint32(w.Kind), Op: w.Op, Subject: w.Subject, Hint: w.Hint, Message: w.Message}
}

// AsError returns the error that a fault carries; nil stays nil.
func (x *Fault) AsError() error {
	if x == nil {
		return nil
	}
	return fault.FromWire(&fault.Wire{Kind: fault.Kind(x.Kind), Op: x.Op, Subject: x.Subject, Hint: x.Hint,
		Message: x.Message})
}
