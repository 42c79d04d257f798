package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// memberships are a runner's in gangs, by their numbers.
type memberships struct {
	mu    sync.Mutex
	over  uint64          // all up to this one have ended
	ended map[uint64]bool // and these
	known map[uint64]*membership
	work  sync.WaitGroup // begun, and not ended
}

// membership is a runner's in a gang.
type membership struct {
	runner *localRunner
	id     uint64
	begin  *wire.GangBegin // nil while only other members have been heard
	conn   *runnerConn
	number int
	in     *wire.Queue[*wire.Gang]
	ctx    context.Context
	cancel context.CancelFunc
	told   sync.Once // that the work has ended here
	mu     sync.Mutex
	ways   map[int]wire.Gangs_SpeakClient // to other members; nil is by way of the job's process
}

// of returns the membership in a gang; nil where that has ended.
func (s *memberships) of(r *localRunner, id uint64) *membership {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known[id]
	if m == nil && (id <= s.over || s.ended[id]) {
		return nil
	}
	if m == nil {
		m = &membership{runner: r, id: id, in: wire.NewQueue[*wire.Gang](), ways: map[int]wire.Gangs_SpeakClient{}}
		m.ctx, m.cancel = context.WithCancel(context.Background())
		if s.known == nil {
			s.known = map[uint64]*membership{}
		}
		s.known[id] = m
	}
	return m
}

// end ends the membership in a gang.
func (s *memberships) end(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = map[uint64]bool{}
	}
	s.ended[id] = true
	if m := s.known[id]; m != nil {
		delete(s.known, id)
		m.stop()
	}
}

// begin makes a membership one of a session, whose work begins; false where the session has ended.
func (s *memberships) begin(m *membership, of *runnerConn, b *wire.GangBegin) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.over {
		delete(s.known, m.id)
		s.over = max(s.over, m.id)
		m.stop()
		return false
	}
	m.begin, m.conn = b, of
	s.work.Add(1)
	return true
}

// endAll ends all memberships: the job's process has gone, and the next has gangs of greater numbers.
func (s *memberships) endAll(of *runnerConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.over = true
	for id, m := range s.known {
		if m.conn == of {
			delete(s.known, id)
			m.stop()
			s.over = max(s.over, id)
		}
	}
}

func (m *membership) stop() {
	m.cancel()
	m.in.Stop()
}

// onGang takes what the job's process sends of a gang.
func (c *runnerConn) onGang(g *wire.Gang) {
	if g.End {
		c.runner.gangs.end(g.Gang)
		return
	}
	m := c.runner.gangs.of(c.runner, g.Gang)
	switch {
	case m == nil:
	case g.Begin != nil:
		m.start(c, g.Begin)
	default:
		m.take(g)
	}
}

// take keeps a message until the work takes it. Where too many wait the member has failed.
func (m *membership) take(g *wire.Gang) {
	if err := m.in.Await(g, wire.Patience); fault.KindOf(err) == fault.Timeout {
		m.in.Stop()
		m.ended(err)
	}
}

// start begins the work.
func (m *membership) start(c *runnerConn, b *wire.GangBegin) {
	if !c.runner.gangs.begin(m, c, b) {
		return
	}
	for i, name := range b.Executors {
		if name == c.runner.process.Executor {
			m.number = i
		}
	}
	slots := c.runner.process.Slots
	_ = c.notes.Put(&wire.Note{Began: uint32(slots)}) // its failure ends the connection
	if err := m.up(&wire.Gang{Joined: true}); err != nil {
		c.runner.gangs.work.Done()
		return // the session ends with its connection
	}
	member := &rdd.Member{Number: m.number, Slots: slots, Send: m.send, Recv: m.recv, Open: m.open,
		Pause: c.gate.Pass, Fail: m.ended,
		Pacer: func(slot int) rdd.Pacer { return pacerOf(c.runner.pacer, slot) }}
	graph := c.runner.maker.Graph
	go func() {
		defer c.runner.gangs.work.Done()
		began := time.Now()
		err := graph.RunGang(m.ctx, int(b.Work), member)
		_ = c.notes.Put(&wire.Note{Ended: true, BusyNs: uint64(time.Since(began))})
		m.ended(err)
	}()
}

// ended says, once, that the work has ended here, or has failed and is ending.
func (m *membership) ended(err error) {
	m.told.Do(func() {
		m.runner.gangs.mu.Lock()
		begun := m.conn != nil // of one that has not, the job's process hears that it never comes
		m.runner.gangs.mu.Unlock()
		if begun && m.ctx.Err() == nil {
			_ = m.up(&wire.Gang{End: true, Fault: wire.FromError(err)}) // the session ends with its connection
		}
	})
}

// up sends the job's process a message.
func (m *membership) up(g *wire.Gang) error {
	g.Gang, g.From = m.id, int32(m.number)
	return m.conn.Send(&wire.ToDriver{Body: &wire.ToDriver_Gang{Gang: g}})
}

// send sends a message to another member, directly or by way of the job's process, or to that.
func (m *membership) send(to int, data []byte) error {
	g := &wire.Gang{Gang: m.id, From: int32(m.number), To: int32(to), Data: data}
	if to == rdd.Leader {
		return m.up(g)
	}
	way, err := m.way(to)
	if err != nil {
		return err
	}
	if way == nil {
		return m.up(g)
	}
	if err := way.Send(g); err != nil {
		return m.unreached(to, err)
	}
	return nil
}

func (m *membership) unreached(to int, err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("its connection has ended")
	}
	return fault.New(fault.FetchFailed, "send to", m.begin.Executors[to], err)
}

// way returns the connection to another member, which stays what it is: messages keep their order.
func (m *membership) way(to int) (wire.Gangs_SpeakClient, error) {
	m.mu.Lock()
	way, known := m.ways[to]
	m.mu.Unlock()
	if known {
		return way, nil
	}
	way, err := m.speak(m.begin.Addresses[to])
	if err != nil && status.Code(err) != codes.Unavailable {
		return nil, m.unreached(to, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ways[to] = way
	return way, nil
}

// speak opens a connection to another member; nil where there is none.
func (m *membership) speak(addr string) (wire.Gangs_SpeakClient, error) {
	if addr == "" || m.runner.process.Unreachable {
		return nil, nil
	}
	c, err := m.runner.reached(addr)
	if err != nil {
		return nil, err
	}
	way, err := wire.NewGangsClient(c).Speak(m.ctx)
	if err != nil {
		return nil, err
	}
	return way, nil
}

// recv waits for the next message.
func (m *membership) recv() (int, []byte, error) {
	g, err := m.in.Take()
	if err == nil && m.ctx.Err() == nil {
		return int(g.From), g.Data, nil
	}
	return 0, nil, fault.Newf(fault.Cancelled, "go on with", "the work of all executors", "it has ended")
}

// open opens a split, which is brought here if need be.
func (m *membership) open(ctx context.Context, split int) (*pack.Split, error) {
	var from executor.Peer
	if h := m.begin.Holders[split]; h >= 0 && int(h) != m.number {
		from = executor.Peer{ID: plan.ExecutorID(m.begin.Executors[h]), Address: m.begin.Addresses[h]}
	}
	return m.runner.engine.Load().OpenSplit(ctx, pack.SplitKey{Node: int(m.begin.Pack), Split: split}, from)
}

// Speak takes what another member of a gang sends.
func (r *localRunner) Speak(stream wire.Gangs_SpeakServer) error {
	for {
		g, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&wire.SpokenReply{})
		}
		if err != nil {
			return err
		}
		m := r.gangs.of(r, g.Gang)
		if m == nil {
			return status.Error(codes.Aborted, "the gang has ended")
		}
		if m.take(g); m.ctx.Err() != nil {
			return status.Error(codes.Aborted, "the gang has ended")
		}
	}
}
