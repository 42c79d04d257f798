package host

import (
	"context"
	"crypto/subtle"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// serveJob serves other processes of the same job, which have its token, on
// a port of its own.
func serveJob(token string, register func(*grpc.Server)) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fault.New(fault.NoResources, "listen for", "the job's other processes", err)
	}
	admit := func(ctx context.Context, _ string) error {
		if subtle.ConstantTimeCompare([]byte(wire.CallerToken(ctx)), []byte(token)) != 1 {
			return status.Error(codes.Unauthenticated, "the token is not this job's")
		}
		return nil
	}
	listener := wire.NewListener(l)
	s := grpc.NewServer(wire.ServerOptions(listener, admit)...)
	register(s)
	go func() { _ = s.Serve(listener) }()
	return l.Addr().String(), s.Stop, nil
}

// directs are the direct connections of a job process to its runners, by the
// names that these gave them.
type directs struct {
	wire.UnimplementedDirectServer
	receive func(name string, m *wire.ToDriver)
	ended   func(name string, err error)
	mu      sync.Mutex
	open    map[string]*wire.Outbox[*wire.Frame]
}

// Carry serves a runner's direct connection.
func (d *directs) Carry(stream wire.Direct_CarryServer) (err error) {
	hello, err := stream.Recv()
	if err != nil {
		return err
	}
	broken := make(chan error, 1)
	out := wire.NewOutbox(func(f *wire.Frame) error { return stream.SendMsg(f) }, func(err error) { broken <- err })
	defer out.Stop()
	d.set(hello.Incarnation, out)
	defer func() {
		d.set(hello.Incarnation, nil)
		d.ended(hello.Incarnation, err)
	}()
	if err = stream.Send(&wire.Hello{Version: wire.Version}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.read(stream, hello.Incarnation) }()
	select {
	case err = <-broken:
	case err = <-ended:
	}
	return err
}

func (d *directs) read(stream wire.Direct_CarryServer, name string) error {
	for {
		m := &wire.ToDriver{}
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		d.receive(name, m)
	}
}

func (d *directs) set(name string, out *wire.Outbox[*wire.Frame]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if out == nil {
		delete(d.open, name)
		return
	}
	if d.open == nil {
		d.open = map[string]*wire.Outbox[*wire.Frame]{}
	}
	d.open[name] = out
}

// to returns the direct connection to a runner; nil where it has none.
func (d *directs) to(name string) *wire.Outbox[*wire.Frame] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[name]
}

// direct is a runner's direct connection to its job's process.
type direct struct {
	name   string
	mu     sync.Mutex // guards sending
	stream wire.Direct_CarryClient
	close  func()
}

// directWait bounds how long a runner tries to connect to its job's process;
// without a direct connection messages are relayed by executor and driver.
const directWait = 2 * time.Second

func dialDirect(addr, token string) (*direct, error) {
	conn, err := wire.Dial(addr, token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &direct{name: uuid.NewString(), close: func() { cancel(); conn.Close() }}
	timer := time.AfterFunc(directWait, d.close)
	if d.stream, err = wire.NewDirectClient(conn).Carry(ctx, wire.DirectCodec()); err == nil {
		err = d.stream.Send(&wire.Hello{Version: wire.Version, Incarnation: d.name})
	}
	if err == nil {
		_, err = d.stream.Recv()
	}
	if !timer.Stop() || err != nil {
		d.close()
		return nil, fault.New(fault.FetchFailed, "reach the job's process at", addr, err)
	}
	return d, nil
}

// send sends a message.
func (d *direct) send(m *wire.ToDriver) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stream.SendMsg(m)
}

// recv waits for the next message.
func (d *direct) recv() (*wire.ToExecutor, error) {
	m := &wire.ToExecutor{}
	return m, d.stream.RecvMsg(m)
}
