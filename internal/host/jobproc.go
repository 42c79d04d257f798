package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// gatherFor is how long a job waits for executors that were connected when it
// started and have not answered yet, before it begins without them.
const gatherFor = 5 * time.Second

// remote is a cluster of processes, seen from the process of one of its jobs:
// the job's own controller runs here, and the cluster's driver carries its
// messages to the executors' runners.
type remote struct {
	*driver.Driver
	executors int           // that the job begins with
	gather    time.Duration // how long it waits for them
	conn      *grpc.ClientConn
	out       *wire.Outbox[*wire.FromJob]

	mu     sync.Mutex
	peers  map[string]*relayConn
	blocks map[string]string     // addresses, by executor
	byName map[string]*relayConn // those with direct connections, by the names of these

	self    jobParty
	stands  *standing
	lease   *lease
	directs *directs
	gangs   gangs
	stop    func() // serving them
	closed  bool
}

// regatherFor is how long a resumed job waits for as many executors as it had:
// after the driver's death they reconnect at once, if they live.
const regatherFor = time.Second

// connect registers with the cluster's driver and starts the job's controller;
// had is how many executors a resumed job had.
func connect(ctx context.Context, p wire.Process, job driver.JobConfig, had int, stands *standing,
	log hclog.Logger) (*remote, error) {
	self, err := partyOf(p)
	if err != nil {
		return nil, err
	}
	conn, err := self.driver()
	if err != nil {
		return nil, err
	}
	stream, err := wire.NewClusterClient(conn).Work(context.WithoutCancel(ctx))
	if err != nil {
		return nil, wire.CallError("reach the driver at", p.Driver, err)
	}
	go self.keepRenewed(ctx)
	r := &remote{conn: conn, self: self, stands: stands, gangs: gangs{term: p.Term}, peers: map[string]*relayConn{},
		blocks: map[string]string{}, byName: map[string]*relayConn{}}
	r.directs = &directs{incarnation: p.Incarnation, receive: r.receiveDirect, ended: r.endedDirect}
	direct, stop, err := self.serve(p.JobDir, "direct.sock", func(s *grpc.Server) {
		wire.RegisterDirectServer(s,
			r.directs)
	})
	if err != nil {
		return nil, err
	}
	r.stop = stop
	r.out = wire.NewOutbox(stream.Send, r.lost)
	r.lease = newLease()
	hello := wire.Greeting()
	hello.Name, hello.Incarnation, hello.Direct = p.Job, p.Incarnation, direct
	if err := r.out.Put(&wire.FromJob{Body: &wire.FromJob_Hello{Hello: hello}}); err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, wire.CallError("join the driver at", p.Driver, err)
	}
	r.executors = int(max(1, first.GetWelcome().GetExecutors()))
	job.Executors, job.Gather = r.executors, gatherFor
	if had > r.executors {
		r.executors = had
		job.Executors, job.Gather = had, regatherFor
	}
	r.gather = job.Gather
	r.Driver = driver.NewDriver(job, log)
	if first.GetWelcome().GetExecutors() == 0 {
		fmt.Fprintf(os.Stderr, "volley: waiting for executors: none has joined\n")
	}
	r.OnExclusion(func(x *driver.Exclusion) {
		_ = r.out.Put(&wire.FromJob{Body: &wire.FromJob_Exclusion{Exclusion: &wire.Exclusion{Executor: string(
			x.Executor), Why: x.Why}}})
	})
	r.lease.until.Store(int64(first.GetWelcome().GetLeaseNs()))
	go r.read(stream)
	go r.beat(time.Duration(first.GetWelcome().GetBeatNs()))
	go r.lease.watch()
	return r, nil
}

// beat sends heartbeats until the connection ends.
func (r *remote) beat(every time.Duration) {
	ticker := time.NewTicker(max(every, time.Millisecond))
	defer ticker.Stop()
	for range ticker.C {
		if r.sendBeat(actionsOf(r.Running())) != nil {
			return
		}
	}
}

// sendBeat sends a heartbeat, with the actions in progress.
func (r *remote) sendBeat(actions []*wire.ActionInfo) error {
	beat := &wire.Beat{SentNs: r.lease.now(), Actions: actions, Standing: r.stands.now()}
	return r.out.Put(&wire.FromJob{Body: &wire.FromJob_Beat{Beat: beat}})
}

// actionsOf returns actions in progress as they are told.
func actionsOf(all []driver.Running) (out []*wire.ActionInfo) {
	for _, a := range all[:min(len(all), mostActions)] {
		out = append(out, &wire.ActionInfo{Node: uint32(a.Node), Tasks: uint32(a.Tasks), Done: uint32(a.Done)})
	}
	return out
}

// mostActions is how many actions in progress are told of.
const mostActions = 16

// read runs until the driver's connection ends.
func (r *remote) read(stream wire.Cluster_WorkClient) {
	for {
		m, err := stream.Recv()
		if err != nil {
			r.lost(err)
			return
		}
		switch b := m.Body.(type) {
		case *wire.ForJob_Relay:
			r.receive(b.Relay)
		case *wire.ForJob_Left:
			r.left(b.Left.Job, b.Left.Why)
		case *wire.ForJob_Lease:
			r.lease.extend(b.Lease)
		case *wire.ForJob_Ask:
			go r.self.answer(b.Ask, "")
		case *wire.ForJob_Drain:
			r.gangs.drained(b.Drain.Name)
			r.Drain(plan.ExecutorID(b.Drain.Name), func(id plan.ExecutorID) {
				_ = r.out.Put(&wire.FromJob{Body: &wire.FromJob_Drained{Drained: &wire.DrainRequest{Name: string(id)}}})
			})
		}
	}
}

// lost ends this process: without the cluster's driver a job cannot go on, and
// the driver starts it again from its last committed step.
func (r *remote) lost(err error) {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return
	}
	fmt.Fprintf(os.Stderr, "volley: the cluster's driver is gone: %v\n", err)
	if !lostBy(err) {
		os.Exit(ExitFailed) // it would report the same to the next driver
	}
	os.Exit(wire.ExitLost)
}

// receive hands a runner's message to the controller. A runner's first message
// is its registration, which replaces an earlier runner of its executor.
func (r *remote) receive(m *wire.Relay) {
	msg := &wire.ToDriver{}
	if err := proto.Unmarshal(m.Data, msg); err != nil {
		r.left(m.Peer, "it sent a malformed message: "+err.Error())
		return
	}
	if msg.GetRegister() != nil {
		r.register(m.Peer, msg)
		return
	}
	r.mu.Lock()
	c := r.peers[m.Peer]
	r.mu.Unlock()
	r.hand(c, msg)
}

// register admits a runner.
func (r *remote) register(peer string, m *wire.ToDriver) {
	r.left(peer, "it registered again")
	reg := m.GetRegister()
	c := &relayConn{r: r, peer: peer, name: reg.Direct, in: wire.NewQueue[*wire.ToDriver]()}
	r.mu.Lock()
	if r.closed { // no other place would end it
		r.mu.Unlock()
		return
	}
	r.peers[peer], r.blocks[peer] = c, reg.Blocks
	r.byName[reg.Direct] = c
	c.direct = r.directs.to(reg.Direct)
	r.mu.Unlock()
	_ = c.in.Put(m)
	r.Attach(c)
	if reg.Direct != "" && c.direct == nil {
		r.left(peer, "its connection to the job's process has ended")
	}
}

// hand passes a runner's message to the controller. A runner with too many messages queued is
// given up, so that none is silently lost.
func (r *remote) hand(c *relayConn, m *wire.ToDriver) {
	if c == nil {
		return
	}
	if g := m.GetGang(); g != nil {
		r.gangs.receive(g)
		return
	}
	if err := c.in.Put(m); fault.KindOf(err) == fault.Timeout {
		r.left(c.peer, err.Error())
	}
}

// receiveDirect passes on the messages of a direct connection.
func (r *remote) receiveDirect(name string, m *wire.ToDriver) {
	r.mu.Lock()
	c := r.byName[name]
	r.mu.Unlock()
	if c == nil {
		return
	}
	if g := m.GetGang(); g != nil {
		r.gangs.receive(g)
		return
	}
	if err := c.in.Await(m, wire.Patience); fault.KindOf(err) == fault.Timeout {
		r.left(c.peer, err.Error())
	}
}

// endedDirect gives up a runner whose direct connection has ended: messages on it may be lost.
func (r *remote) endedDirect(name string, err error) {
	r.mu.Lock()
	c := r.byName[name]
	r.mu.Unlock()
	if c != nil {
		r.left(c.peer, fmt.Sprintf("its connection to the job's process ended: %v", err))
	}
}

// left ends the connection to an executor's runner, if there is one.
func (r *remote) left(peer, why string) {
	r.mu.Lock()
	c := r.peers[peer]
	delete(r.peers, peer)
	if c != nil {
		delete(r.byName, c.name)
	}
	r.mu.Unlock()
	if c != nil {
		c.why.Store(&why)
		c.in.Stop()
		r.gangs.left(peer, why)
	}
}

// commitOf returns the message to the driver about a committed step.
func commitOf(s *driver.StepReport, digest plan.Digest) *wire.Commit {
	c := &wire.Commit{Step: uint64(s.Number), Epoch: uint64(s.Epoch), Params: digest[:], Share: s.Share, NEff: s.NEff,
		TookNs: uint64(s.Took), Bytes: uint64(s.Bytes), Cut: s.Stats.Cut, Moves: uint64(s.Counters.Moves),
		StaleReports: uint64(s.Counters.StaleReports), LateResults: uint64(s.Counters.LateResults),
		Mismatched: uint64(s.Counters.Mismatched), DroppedRows: uint64(s.Counters.DroppedRows), Rows: uint64(s.Merged)}
	if s.Stats.FirstFinish > 0 {
		c.WaitNs = uint64(s.Stats.StopAt - s.Stats.FirstFinish)
	}
	return c
}

// committed reports committed steps to the driver.
func (r *remote) committed(steps []*wire.Commit) {
	for _, c := range steps {
		_ = r.out.Put(&wire.FromJob{Body: &wire.FromJob_Commit{Commit: c}})
	}
}

// troubled reports to the driver what keeps steps from being committed, if anything does.
func (r *remote) troubled(what string) {
	_ = r.out.Put(&wire.FromJob{Body: &wire.FromJob_Trouble{Trouble: &wire.Trouble{What: what}}})
}

// Close ends the controller and the connection.
func (r *remote) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	err := r.Driver.Close()
	_ = r.sendBeat(nil) // how its loop stands at the end, also where that came before the first heartbeat
	r.out.Stop()
	r.stop()
	return errors.Join(err, r.conn.Close())
}

// relayConn is a connection to an executor's runner, relayed by the driver.
type relayConn struct {
	r      *remote
	peer   string
	name   string                    // of the runner's direct connection, if it has one
	direct *wire.Outbox[*wire.Frame] // that connection
	in     *wire.Queue[*wire.ToDriver]
	why    atomic.Pointer[string] // of the end
}

// Send carries a message to the runner.
func (c *relayConn) Send(m *wire.ToExecutor) error {
	if h := m.GetHold(); h != nil && h.From != "" {
		c.r.mu.Lock()
		h.FromAddress = c.r.blocks[h.From]
		c.r.mu.Unlock()
	}
	if t := m.GetRunTask(); t != nil {
		c.r.mu.Lock()
		for _, h := range t.Holders {
			t.Addresses = append(t.Addresses, c.r.blocks[h])
		}
		c.r.mu.Unlock()
	}
	// A broadcast to many executors can exceed the queue: the controller then blocks. No message bypasses a direct
	// connection, not even a broken one: messages keep their order.
	if c.name != "" {
		f, err := wire.NewFrame(m)
		if err != nil || c.direct == nil {
			return err
		}
		return c.direct.Await(f, wire.Patience)
	}
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if len(raw) > wire.MostRelayed {
		c.r.left(c.peer, wire.TooLarge(len(raw)))
		return nil
	}
	return c.r.out.Await(&wire.FromJob{Body: &wire.FromJob_Relay{Relay: &wire.Relay{Peer: c.peer, Data: raw}}},
		wire.Patience)
}

// Recv waits for the runner's next message.
func (c *relayConn) Recv() (*wire.ToDriver, error) {
	m, err := c.in.Take()
	if errors.Is(err, io.EOF) {
		why := "its connection is closed"
		if w := c.why.Load(); w != nil {
			why = *w
		}
		return nil, fault.Newf(fault.ExecutorLost, "hear from", c.peer, "%s", why)
	}
	return m, err
}

// Close ends this end.
func (c *relayConn) Close() error {
	c.in.Stop()
	return nil
}
