package host

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// jobParty is how a process of a job serves and reaches the others of it.
type jobParty struct {
	process wire.Process
	self    wire.Party
}

func partyOf(p wire.Process) (jobParty, error) {
	self, err := p.Party()
	return jobParty{p, self}, err
}

// serve serves other processes of the same job only: at a socket of a name in a directory of this
// process's, or at a port of its own.
func (p jobParty) serve(dir, name string, register func(*grpc.Server)) (addr string, stop func(), err error) {
	l, err := p.listen(dir, name)
	if err != nil {
		return "", nil, err
	}
	s := p.self.NewServer(wire.Gate{Knows: p.ours, Admit: p.admit})
	register(s)
	go func() { _ = s.Serve(l) }()
	return p.reachedAt(l.Addr().String()), s.Stop, nil
}

// listen listens at the address by which others reach this machine, or, where that is not one of its own (a name, or
// one that is translated), at all of them.
func (p jobParty) listen(dir, name string) (*wire.Listener, error) {
	at := p.process.ServeAt(dir, name)
	l, err := wire.Listen(at)
	if _, socket := wire.SocketPath(at); err != nil && !socket {
		return wire.Listen(":0")
	}
	return l, err
}

// reachedAt returns where others reach what listens here.
func (p jobParty) reachedAt(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if _, socket := wire.SocketPath(addr); socket || err != nil {
		return addr
	}
	return net.JoinHostPort(p.process.Host, port)
}

// admit lets processes of the job in.
func (p jobParty) admit(ctx context.Context, _ string) error {
	c := wire.CallerOf(ctx)
	ours := c.Local && subtle.ConstantTimeCompare([]byte(c.Token), []byte(p.process.Token)) == 1
	if !c.Local {
		ours = p.ours(c.Peer)
	}
	if !ours {
		return status.Error(codes.Unauthenticated, "the caller is not of this job")
	}
	return nil
}

// ours reports whether a certificate is of a process of the job.
func (p jobParty) ours(c trust.Peer) bool {
	return trust.OfJob(p.process.Job)(c.Name) == nil && !c.Over(time.Now())
}

// dial prepares a connection to another process of the job.
func (p jobParty) dial(addr string) (*grpc.ClientConn, error) {
	return wire.Dial(addr, p.self, trust.OfJob(p.process.Job))
}

// driver prepares a connection to the cluster's driver: a job's own process to that which has started it, a runner to
// the one that leads.
func (p jobParty) driver() (*grpc.ClientConn, error) {
	if p.process.Role == wire.JobRole {
		return wire.Dial(p.process.Driver, p.self, trust.OfRole(trust.Driver))
	}
	return wire.DialDriver(p.process.Driver, p.self)
}

// keepRenewed renews the process's certificate while it runs, where it has one.
func (p jobParty) keepRenewed(ctx context.Context) {
	if p.self.ID == nil {
		return
	}
	conn, err := p.driver() // made at the first call
	if err != nil {
		fmt.Fprintf(os.Stderr, "volley: the certificate will not be renewed: %v\n", err)
		return
	}
	defer conn.Close()
	client := wire.NewClusterClient(conn)
	wire.KeepRenewed(ctx, p.self, func() wire.ClusterClient { return client }, func(err error) {
		fmt.Fprintf(os.Stderr, "volley: the certificate was not renewed, and is tried again: %v\n", err)
	})
}

// directs are the direct connections of a job process to its runners, by the
// names that these gave them.
type directs struct {
	wire.UnimplementedDirectServer
	incarnation string // of this process
	receive     func(name string, m *wire.ToDriver)
	ended       func(name string, err error)
	mu          sync.Mutex
	open        map[string]*wire.Outbox[*wire.Frame]
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
	hi := wire.Greeting()
	hi.Incarnation = d.incarnation
	if err = stream.Send(hi); err != nil {
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

// dialDirect connects to the process of an incarnation, where that is known.
func dialDirect(addr, incarnation string, by jobParty) (*direct, error) {
	conn, err := wire.Dial(addr, by.self, trust.OfJobProcess(by.process.Job))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &direct{name: uuid.NewString(), close: func() { cancel(); conn.Close() }}
	timer := time.AfterFunc(directWait, d.close)
	if d.stream, err = wire.NewDirectClient(conn).Carry(ctx, wire.DirectCodec()); err == nil {
		hi := wire.Greeting()
		hi.Incarnation = d.name
		err = d.stream.Send(hi)
	}
	var hello *wire.Hello
	if err == nil {
		hello, err = d.stream.Recv()
	}
	if err == nil && incarnation != "" && hello.Incarnation != incarnation {
		err = fmt.Errorf("it is %s, not %s", hello.Incarnation, incarnation)
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
