package daemon

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// member is an executor's connection.
type member struct {
	name        string
	link        uint64
	incarnation string // which process of that name
	slots       uint32
	labels      map[string]string
	spoken      string // the version of the protocol in which it and this driver speak
	module      string // the version of its module; empty where it speaks volley/5 only
	flight      string // where it serves datasets to Arrow clients; empty is nowhere
	since       time.Time
	out         *wire.Outbox[*wire.ForExecutor]
	gone        chan string // why it is dropped
	ended       chan struct{}

	mu struct {
		sync.Mutex
		heard time.Time
		busy  bool // one of its messages is being handled
		beat  *wire.Beat
		shown ExecutorShown
		peer  trust.Peer // its certificate; without a name over a socket
		why   string     // of the end; empty while connected
		ended time.Time
	}
}

// validName reports whether a name can be part of a file's.
func validName(name string) bool {
	ok := len(name) > 0 && len(name) <= 128 && name[0] != '.'
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' ||
			r == '-')
	}
	return ok
}

// drop ends a connection.
func (m *member) drop(why string) {
	select {
	case m.gone <- why:
	default:
	}
}

// goodbye shuts an executor down.
var goodbye = &wire.ForExecutor{Body: &wire.ForExecutor_Goodbye{Goodbye: &wire.Goodbye{}}}

func (m *member) hear(b *wire.Beat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.heard, m.mu.busy = time.Now(), true
	if b != nil {
		m.mu.beat = b
	}
}

// handled marks the end of what hear began: while a message waits for a disk,
// its sender is not silent.
func (m *member) handled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.heard, m.mu.busy = time.Now(), false
}

// unfit returns why the member can start no runner; empty where it can, by its last report.
func (m *member) unfit() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.beat.GetUnfit()
}

func (m *member) info() *wire.ExecutorInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.mu.beat
	if b == nil {
		b = &wire.Beat{}
	}
	i := &wire.ExecutorInfo{Name: m.name, State: "alive", Slots: m.slots, Splits: b.Splits,
		RowsPerSecond: b.RowsPerSecond,
		Memory:        b.Memory, Disk: b.Disk, SinceUnixNs: m.since.UnixNano(), Labels: m.labels, Why: m.mu.why,
		Version: shownVersion(m.module, m.spoken)}
	if !m.mu.peer.Expires.IsZero() {
		i.CertificateUntilUnixNs = m.mu.peer.Expires.UnixNano()
	}
	if i.Why == "" {
		i.Why = cmp.Or(b.Unfit, m.mu.shown.Excluded, m.mu.peer.Overdue(time.Now()))
	}
	switch {
	case m.mu.why != "":
		i.State, i.SinceUnixNs, i.Splits, i.RowsPerSecond = "lost", m.mu.ended.UnixNano(), 0, 0
	case m.mu.shown.Drained:
		i.State = "drained"
	case m.mu.shown.Draining:
		i.State = "draining"
	case b.Unfit != "":
		i.State = "unfit"
	}
	return i
}

// party returns the certificate of the member, and reports whether it has none since it is on this machine.
func (m *member) party() (p trust.Peer, local bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.peer, m.mu.peer.Serial == ""
}

// renewed notes that a member has another certificate than when it connected.
func (ms *members) renewed(p trust.Peer, chain []byte) {
	c, err := trust.CertificateOf(chain)
	m := ms.get(p.Name.ID)
	if err != nil || m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.peer = trust.Peer{Name: p.Name, Serial: c.Serial, Issued: time.Now(), Expires: c.Expires}
}

// members are the executors that a driver knows, by name.
type members struct {
	mu   sync.Mutex
	list map[string]*member
}

func newMembers() *members { return &members{list: map[string]*member{}} }

// all returns the connected members, by name.
func (ms *members) all() []*member {
	var out []*member
	for _, m := range ms.known() {
		m.mu.Lock()
		alive := m.mu.why == ""
		m.mu.Unlock()
		if alive {
			out = append(out, m)
		}
	}
	return out
}

func (ms *members) known() []*member {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var out []*member
	for _, m := range ms.list {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	return out
}

// states counts the members by state.
func (ms *members) states() map[string]int {
	out := map[string]int{"alive": 0, "unfit": 0, "draining": 0, "drained": 0, "lost": 0}
	for _, m := range ms.known() {
		out[m.info().State]++
	}
	return out
}

// knows reports whether a member of a name ever joined.
func (ms *members) knows(name string) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.list[name] != nil
}

// get returns the connected member of a name, if there is one.
func (ms *members) get(name string) *member {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.list[name]
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.why != "" {
		return nil
	}
	return m
}

func (ms *members) put(m *member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.list[m.name] = m
}

// send sends a message to an executor, if it is connected.
func (ms *members) send(name string, m *wire.ForExecutor) {
	if to := ms.get(name); to != nil {
		_ = to.out.Put(m)
	}
}

// drop ends the connection of an executor.
func (ms *members) drop(name, why string) {
	if m := ms.get(name); m != nil {
		m.drop(why)
	}
}

// show publishes an executor's visible state.
func (ms *members) show(s *ExecutorShown) {
	if m := ms.get(s.Executor); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.shown = *s
	}
}

// silent returns the connected members that the failure detector takes for dead.
func (ms *members) silent(v *wire.FailureDetector) []*member {
	return slices.DeleteFunc(ms.all(), func(m *member) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.mu.busy || !v.Dead(m.mu.heard)
	})
}

// waitGone waits until every executor has ended its connection.
func (ms *members) waitGone(most time.Duration) {
	end := time.NewTimer(most)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(ms.all()) > 0 {
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}

// Serve serves an executor's connection.
func (d *Daemon) Serve(stream wire.Cluster_ServeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	h := first.GetHello()
	switch {
	case h == nil || h.Name == "":
		return status.Error(codes.InvalidArgument, "the first message of an executor must be Hello, with its name")
	case !validName(h.Name):
		return status.Errorf(codes.InvalidArgument,
			"%q is no name for an executor: letters, digits, '.', '_' and '-', at most 128", h.Name)
	}
	spoken, err := agreed("the executor", h.Side())
	if err != nil {
		return err
	}
	if err := d.admitExecutor(stream.Context(), h.Name); err != nil {
		return err
	}
	if h.Term > d.term { // which it has been elected for meanwhile, or will find out about
		return status.Errorf(codes.Unavailable, "another driver leads since term %d, this one did in %d", h.Term,
			d.term)
	}
	m := &member{name: h.Name, incarnation: h.Incarnation,
		slots:  h.Slots,
		spoken: spoken, module: h.Module,
		labels: h.Labels, since: time.Now(), flight: locationIn(h.Flight),
		gone: make(chan string, 1), ended: make(chan struct{})}
	m.mu.peer = wire.CallerOf(stream.Context()).Peer
	m.out = wire.NewOutbox(stream.Send, func(err error) { m.drop(err.Error()) })
	m.handled()
	if err := d.jobs.memberJoined(m); err != nil {
		m.out.Stop()
		return err
	}
	ended := make(chan string, 1)
	go func() { ended <- d.readMember(m, stream) }()
	var why string
	select {
	case why = <-ended:
	case why = <-m.gone:
	}
	m.mu.Lock()
	m.mu.why, m.mu.ended = why, time.Now()
	m.mu.Unlock()
	m.out.Stop()
	close(m.ended)
	d.log.Warn("executor left", "executor", m.name, "why", why)
	d.jobs.memberLeft(m, why)
	return status.Error(codes.Aborted, why)
}

// admitMember sends an executor its welcome.
func (d *Daemon) admitMember(m *member) {
	d.members.put(m)
	w := &wire.Welcome{BeatNs: uint64(d.cfg.beat()), Term: d.term, Version: m.spoken}
	if m.flight != "" {
		w.FlightKey = d.flightKey
	}
	if d.hasPeers() {
		w.LeaseNs = uint64(silenceMost)
	}
	_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Welcome{Welcome: w}})
	d.log.Info("executor joined", "executor", m.name, "slots", m.slots)
}

func (d *Daemon) readMember(m *member, stream wire.Cluster_ServeServer) string {
	for {
		f, err := stream.Recv()
		if err != nil {
			if status.Code(err) == codes.Canceled {
				return "its connection ended"
			}
			return "its connection ended: " + status.Convert(err).Message()
		}
		ev := &MemberEvent{Executor: m.name, Link: m.link}
		before := m.unfit()
		m.hear(f.GetBeat())
		if why := m.unfit(); why != before {
			ev.Unfit = &why
		}
		switch b := f.Body.(type) {
		case *wire.FromExecutor_Relay:
			d.jobs.fromExecutor(m, b.Relay)
		case *wire.FromExecutor_Closed:
			if d.jobs.runs(b.Closed.Job) {
				d.metrics.runners.Inc()
			}
			ev.Ended = &LifeRunner{Executor: m.name, Job: b.Closed.Job, ID: b.Closed.Runner, Why: b.Closed.Why}
		case *wire.FromExecutor_Leaving:
			ev.Leaving = true
		}
		if ev.Unfit != nil || ev.Ended != nil || ev.Leaving {
			d.jobs.step(LifeEvent{Member: ev})
		}
		m.handled()
	}
}
