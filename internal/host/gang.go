package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// gangs are those of a job, by number.
type gangs struct {
	mu   sync.Mutex
	term uint32 // of this process: no other has gangs of the same numbers
	last uint32
	now  map[uint64]*gang
}

// gang is the members of work that goes on on executors at once, as the job's process sees them.
type gang struct {
	r       *remote
	id      uint64
	pack    int
	timeout time.Duration
	members []string
	conns   []*relayConn
	slots   []int
	homes   []int
	in      *wire.Queue[*wire.Gang]
	mu      sync.Mutex
	joined  int
	whole   chan struct{} // closed once all have joined, or the gang has ended
	err     error         // why it has ended
}

// Elsewhere reports whether executors are other processes.
func (j *Job) Elsewhere() bool { return j.remote != nil }

// Gather begins a node's work on all executors that work over a pack may be given to.
func (j *Job) Gather(ctx context.Context, work, packNode int, before error) (rdd.Gang, error) {
	if before != nil {
		j.cfg.Logger.Warn("the workers of tables begin again from the last tick", "why", before)
	}
	number, meta, _ := j.packs.opened(packNode)
	g, begin, err := j.remote.muster(ctx, number, work, packNode)
	if gone := (*driver.Gone)(nil); errors.As(err, &gone) {
		return nil, j.packs.lost(driver.Command{PackGone: gone})
	}
	if err != nil {
		return nil, err
	}
	g.timeout = j.cfg.Job.EnsureDefaults().TaskTimeout
	if len(begin.Holders) != len(meta.Splits) {
		return nil, fault.Newf(fault.Internal, "gather", "executors", "%d of %d splits are placed", len(begin.Holders),
			len(meta.Splits))
	}
	for i := range g.members {
		if err := g.post(i, &wire.Gang{Begin: begin}); err != nil {
			g.fail(err)
		}
	}
	timer := time.NewTimer(gangWait)
	defer timer.Stop()
	select {
	case <-g.whole:
	case <-timer.C:
		g.fail(fault.Newf(fault.ExecutorLost, "gather", "executors", "%d of %d have begun after %v", g.came(),
			len(g.members), gangWait).WithHint("executors of an older version do not know parameter tables"))
	case <-ctx.Done():
		g.fail(fault.New(fault.KindOf(ctx.Err()), "gather", "executors", ctx.Err()))
	}
	if err := g.why(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// gangWait is how long members may take until they begin, and musterLook the time between two looks at who is there.
const (
	gangWait   = 10 * time.Second
	musterLook = 20 * time.Millisecond
)

// muster makes a gang of the executors that are there; where there are none, or some of those that hold splits have no
// connection yet, it waits for them.
func (r *remote) muster(ctx context.Context, pack, work, packNode int) (*gang, *wire.GangBegin, error) {
	look := time.NewTicker(musterLook)
	defer look.Stop()
	for {
		at := r.Placement(pack)
		if at.Gone != nil {
			return nil, nil, at.Gone
		}
		if g, begin := r.tryMuster(at, work, packNode); g != nil {
			g.pack = pack
			return g, begin, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, nil, fault.New(fault.KindOf(ctx.Err()), "wait for", "executors", ctx.Err())
		}
	}
}

// tryMuster returns nil where not all who own splits are there.
func (r *remote) tryMuster(at driver.Placement, work, packNode int) (*gang, *wire.GangBegin) {
	g := &gang{r: r, in: wire.NewQueue[*wire.Gang](), whole: make(chan struct{})}
	begin := &wire.GangBegin{Work: uint32(work), Pack: uint32(packNode)}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range at.Members {
		if c := r.peers[string(m.ID)]; c != nil {
			g.members, g.slots, g.conns = append(g.members, c.peer), append(g.slots, m.Slots), append(g.conns, c)
			begin.Executors = append(begin.Executors, c.peer)
			begin.Addresses = append(begin.Addresses, r.blocks[c.peer])
		}
	}
	for _, o := range at.Owners {
		home := slices.Index(g.members, string(o))
		if home < 0 {
			return nil, nil
		}
		g.homes, begin.Holders = append(g.homes, home), append(begin.Holders, int32(home))
	}
	r.gangs.add(g)
	return g, begin
}

func (s *gangs) add(g *gang) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	g.id = uint64(s.term)<<32 | uint64(s.last)
	if s.now == nil {
		s.now = map[uint64]*gang{}
	}
	s.now[g.id] = g
}

func (s *gangs) drop(g *gang) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, g.id)
}

func (s *gangs) find(id uint64) *gang {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[id]
}

// left ends the gangs that an executor was a member of.
func (s *gangs) left(executor, why string) {
	s.end(executor, fault.Newf(fault.ExecutorLost, "hear from", executor, "%s", why).
		WithHint("volley logs JOB --task "+executor+" shows what its process has printed"))
}

// drained ends the gangs that an executor is a member of which is to leave.
func (s *gangs) drained(executor string) {
	s.end(executor, fault.New(fault.ExecutorLost, "go on with", executor, rdd.ErrDrained))
}

func (s *gangs) end(executor string, why error) {
	s.mu.Lock()
	all := s.now
	var its []*gang
	for _, g := range all {
		if slices.Contains(g.members, executor) {
			its = append(its, g)
		}
	}
	s.mu.Unlock()
	for _, g := range its {
		g.fail(why)
	}
}

// receive takes what a member sends: to this process, or, where the two do not reach each other, to another member.
func (s *gangs) receive(m *wire.Gang) {
	g := s.find(m.Gang)
	switch {
	case g == nil || m.From < 0 || int(m.From) >= len(g.members) || m.To < rdd.Leader || int(m.To) >= len(g.members):
	case m.Joined:
		g.come()
	case m.End:
		if m.Fault != nil {
			g.fail(m.Fault.AsError())
		}
	case m.To >= 0:
		if err := g.post(int(m.To), m); err != nil {
			g.fail(err)
		}
	default:
		if err := g.in.Await(m, wire.Patience); fault.KindOf(err) == fault.Timeout {
			g.fail(err) // this process takes nothing
		}
	}
}

func (g *gang) come() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joined++; g.joined == len(g.members) && g.err == nil {
		close(g.whole)
	}
}

func (g *gang) came() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.joined
}

func (g *gang) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail ends the gang with an error; the first counts.
func (g *gang) fail(err error) {
	g.mu.Lock()
	first := g.err == nil
	if first {
		g.err = err
		if g.joined < len(g.members) {
			close(g.whole)
		}
	}
	g.mu.Unlock()
	g.in.Stop()
}

// Timeout returns how long a worker may give no sign.
func (g *gang) Timeout() time.Duration { return g.timeout }

// Slots returns how many slots each member has.
func (g *gang) Slots() []int { return g.slots }

// Homes returns, of each split of the pack, the member that holds it.
func (g *gang) Homes() []int { return g.homes }

func (g *gang) Names() []string { return g.members }

// Send sends a member a message.
func (g *gang) Send(member int, message []byte) error {
	return g.post(member, &wire.Gang{From: rdd.Leader, To: int32(member), Data: message})
}

func (g *gang) post(member int, m *wire.Gang) error {
	m.Gang = g.id
	if err := g.conns[member].Send(&wire.ToExecutor{Body: &wire.ToExecutor_Gang{Gang: m}}); err != nil {
		return fault.New(fault.ExecutorLost, "send to", g.members[member], err)
	}
	return nil
}

// Grown reports whether there are executors that could take part, and do not yet.
func (g *gang) Grown() bool {
	at := g.r.Placement(g.pack)
	if at.Gone != nil || len(g.members) >= len(at.Owners) {
		return false
	}
	g.r.mu.Lock()
	defer g.r.mu.Unlock()
	for _, m := range at.Members {
		owns := slices.Contains(at.Owners, m.ID)
		if owns && g.r.peers[string(m.ID)] != nil && !slices.Contains(g.members, string(m.ID)) {
			return true
		}
	}
	return false
}

// Recv waits for the next message of a member.
func (g *gang) Recv() (int, []byte, error) {
	m, err := g.in.Take()
	if why := g.why(); why != nil {
		return 0, nil, why
	}
	if err != nil {
		return 0, nil, fault.New(fault.Cancelled, "hear from", "executors", err)
	}
	return int(m.From), m.Data, nil
}

// Close ends the work of all members.
func (g *gang) Close() {
	g.fail(fault.Newf(fault.Cancelled, "go on with", fmt.Sprintf("gang %d", g.id), "it has ended"))
	g.r.gangs.drop(g)
	for i := range g.members {
		_ = g.post(i, &wire.Gang{End: true}) // who is lost has ended
	}
}
