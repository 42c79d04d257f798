package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/version"
)

// Raft is the journal of a driver daemon: records are on the disks of a majority of the drivers before they are
// applied. One driver is a raft of one.
type Raft struct {
	raft  *raft.Raft
	store *journalFile
	fsm   *machine
	self  Peer
	again chan bool   // it may try again to lead
	votes atomic.Bool // others are given this driver's vote: its journal has all that it had

	mu      sync.Mutex
	waiting map[int]time.Time // since when entries have not been confirmed
	entries int               // so far
}

// Peer is a driver of a cluster.
type Peer struct{ ID, Address string }

const (
	// Timeouts at which a raft of one elects itself as fast as possible.
	raftBeat = 50 * time.Millisecond
	// electionWait is the silence of the driver that leads after which another is elected. One that was alone when it
	// was started takes ElectionLeast for it.
	electionWait = 700 * time.Millisecond
	// raftWait bounds waits for the journal.
	raftWait = 10 * time.Second
	// trailing is how many entries the journal keeps that a snapshot has, for drivers that lag; one alone needs few.
	trailing, trailingAlone = 1024, 64
	// keptSnapshots is how many snapshots of the state are kept.
	keptSnapshots = 2
)

// raftConfig says where a journal is, and which drivers keep it.
type raftConfig struct {
	removed func(plan.JobID) // is called for each job that the journal forgets; may be nil
	// incomplete says that the journal lacks what it once had: this driver votes for none.
	incomplete bool
	dir        string
	self       Peer             // without an address: alone, over no network
	first      []Peer           // the drivers of a new cluster; none: it is there, and takes this one in
	streams    raft.StreamLayer // connections to the others
	log        hclog.Logger
}

// OpenRaft opens the journal of a driver that is alone and waits until it can be
// written to.
func OpenRaft(dir string, log hclog.Logger) (*Raft, error) {
	r, err := openRaft(raftConfig{dir: dir, log: log})
	if err != nil {
		return nil, err
	}
	if err := r.begun(); err != nil {
		return nil, errors.Join(journalNotOpen(dir, err), r.Close())
	}
	return r, nil
}

// begun waits until a driver that is alone leads, and has applied what its journal has.
func (r *Raft) begun() error {
	select {
	case <-r.raft.LeaderCh():
	case <-time.After(raftWait):
		return errors.New("no leader was elected")
	}
	return r.caughtUp()
}

// caughtUp waits until everything that was committed is applied.
func (r *Raft) caughtUp() error {
	if err := r.raft.Barrier(raftWait).Error(); err != nil {
		return err
	}
	return r.fsm.unread()
}

// journalNotOpen returns the error of a journal that cannot be opened.
func journalNotOpen(dir string, err error) error {
	if k := fault.KindOf(err); k == fault.Corrupt || k == fault.BadInput {
		return fault.New(k, "open the journal in", dir, err)
	}
	return fault.New(fault.NoResources, "open the journal in", dir,
		err).WithHint("does another driver use this data directory?")
}

// openRaft opens a journal.
func openRaft(cfg raftConfig) (*Raft, error) {
	dir := cfg.dir
	if err := disk.MkdirSynced(filepath.Join(dir, "snapshots"), 0o700); err != nil {
		return nil, journalNotOpen(dir, err)
	}
	store, err := openJournalFile(dir)
	if err != nil {
		return nil, journalNotOpen(dir, err)
	}
	r := &Raft{store: store, fsm: &machine{removed: cfg.removed}, waiting: map[int]time.Time{}, self: cfg.self,
		again: make(chan bool, 1)}
	if err := r.start(cfg); err != nil {
		store.Close()
		return nil, journalNotOpen(dir, err)
	}
	return r, nil
}

// alone is the name of a driver that serves a socket.
const alone = "driver"

func (r *Raft) start(cfg raftConfig) error {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(cfg.dir, keptSnapshots, cfg.log)
	if err != nil {
		return err
	}
	if err := wholeSnapshots(cfg.dir, snapshots); err != nil {
		return err
	}
	settings := raftSettings(cfg)
	known, err := raft.HasExistingState(r.store, r.store, snapshots)
	transport := cfg.transport(&r.votes)
	if err == nil && !known && !cfg.incomplete {
		err = raft.BootstrapCluster(settings, r.store, r.store, snapshots, transport, cfg.servers())
	}
	if err == nil && known {
		err = r.renamesAlone(cfg, settings, snapshots, transport)
	}
	if err != nil {
		return err
	}
	after, votes := VotesAfter(cfg.incomplete, known && cfg.self.Address != "" && len(cfg.first) > 1)
	switch {
	case after > 0:
		time.AfterFunc(after, func() { r.votes.Store(true) })
	case votes:
		r.votes.Store(true)
	}
	r.raft, err = raft.NewRaft(settings, r.fsm, r.store, r.store, snapshots, transport)
	return err
}

// raftSettings returns what raft is to do.
func raftSettings(cfg raftConfig) *raft.Config {
	out := raft.DefaultConfig()
	out.LocalID, out.Logger = raft.ServerID(alone), cfg.log
	beat := raftBeat
	out.TrailingLogs = trailingAlone
	if cfg.self.Address != "" {
		out.LocalID, out.TrailingLogs, beat = raft.ServerID(cfg.self.ID), trailing, ElectionLeast
	}
	out.HeartbeatTimeout, out.ElectionTimeout, out.LeaderLeaseTimeout = beat, beat, beat
	if len(cfg.first) > 1 {
		out.HeartbeatTimeout, out.ElectionTimeout = electionWait, electionWait
	}
	return out
}

// transport returns how the drivers reach each other.
func (cfg raftConfig) transport(votes *atomic.Bool) raft.Transport {
	if cfg.self.Address == "" {
		_, t := raft.NewInmemTransport(alone)
		return t
	}
	return newVoting(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: cfg.streams, MaxPool: 3,
		Timeout: raftWait, Logger: cfg.log, MsgpackUseNewTimeFormat: true}), votes)
}

// servers returns the drivers of a new cluster.
func (cfg raftConfig) servers() (out raft.Configuration) {
	if cfg.self.Address == "" {
		return raft.Configuration{Servers: []raft.Server{{ID: alone, Address: alone}}}
	}
	for _, p := range cfg.first {
		out.Servers = append(out.Servers, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
	}
	return out
}

// renamesAlone gives a driver that is alone another name or address in its journal than it had: it served a socket, or
// is reached otherwise now.
func (r *Raft) renamesAlone(cfg raftConfig, settings *raft.Config, snapshots raft.SnapshotStore,
	t raft.Transport) error {
	look := *settings // which is changed
	servers, err := raft.GetConfiguration(&look, &machine{}, r.store, r.store, snapshots, t)
	if err != nil || cfg.self.Address == "" || len(servers.Servers) != 1 {
		return err
	}
	only := servers.Servers[0]
	self := raft.Server{ID: raft.ServerID(cfg.self.ID), Address: raft.ServerAddress(cfg.self.Address)}
	if only == self || only.ID != alone && only.ID != self.ID {
		return nil
	}
	servers.Servers = []raft.Server{self}
	return raft.RecoverCluster(settings, &machine{}, r.store, r.store, snapshots, t, servers)
}

// Peers returns the drivers of which a majority decides, by id.
func (r *Raft) Peers() (out []Peer) {
	if r.self.Address == "" {
		return nil
	}
	for _, s := range r.servers() {
		if s.Suffrage == raft.Voter {
			out = append(out, Peer{string(s.ID), string(s.Address)})
		}
	}
	slices.SortFunc(out, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Leader returns the driver that leads, as far as this one knows; empty is none.
func (r *Raft) Leader() Peer {
	addr, id := r.raft.LeaderWithID()
	return Peer{string(id), string(addr)}
}

// Term returns the journal's present term.
func (r *Raft) Term() uint64 { return r.raft.CurrentTerm() }

// abdicate lets another driver lead, or this one try again.
func (r *Raft) abdicate() {
	if err := r.raft.LeadershipTransfer().Error(); err == nil || !r.Leads() {
		return
	}
	time.AfterFunc(abdicateAgain, func() {
		select {
		case r.again <- r.Leads():
		default:
		}
	})
}

// abdicateAgain is the time before a driver tries again to lead, where there is no other.
const abdicateAgain = time.Second

// handOver has another driver lead, where this one does.
func (r *Raft) handOver() {
	if r.Leads() {
		_ = r.raft.LeadershipTransfer().Error() // else the others find that it is gone
	}
}

// Leads reports whether this driver leads, as far as it knows.
func (r *Raft) Leads() bool { return r.raft.State() == raft.Leader }

// wholeSnapshots refuses a directory whose newest snapshot is damaged: raft would go on from
// the one before, without what came between.
func wholeSnapshots(dir string, s raft.SnapshotStore) error {
	entries, err := os.ReadDir(filepath.Join(dir, "snapshots"))
	if err != nil {
		return err
	}
	list, err := s.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		known := slices.ContainsFunc(list, func(m *raft.SnapshotMeta) bool { return m.ID == e.Name() })
		if !known && !strings.HasSuffix(e.Name(), ".tmp") {
			return fault.Newf(fault.Corrupt, "read", filepath.Join(dir, "snapshots", e.Name()), "it cannot be read")
		}
	}
	if len(list) == 0 {
		return nil
	}
	_, state, err := s.Open(list[0].ID)
	if err != nil {
		return fault.New(fault.Corrupt, "read", filepath.Join(dir, "snapshots", list[0].ID), err)
	}
	return state.Close()
}

// Append returns once the records are on disk and applied, or, with a Timeout, when that
// has taken too long: they may be applied later.
func (r *Raft) Append(ctx context.Context, records ...Record) error {
	raw, err := json.Marshal(records)
	if err != nil {
		return fault.New(fault.Internal, "write", "the journal", err)
	}
	applied := make(chan error, 1)
	go func() { applied <- r.apply(raw) }()
	wait := time.NewTimer(raftWait)
	defer wait.Stop()
	select {
	case err = <-applied:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.New(fault.Timeout, "write", "the journal", ctx.Err())
		}
		return fault.New(fault.Cancelled, "write", "the journal", ctx.Err())
	case <-wait.C:
		return fault.Newf(fault.Timeout, "write", "the journal", "its disk has not answered for %v", raftWait)
	}
	return journalFault(err)
}

// journalFault returns the error of an entry that the log has not confirmed. A Timeout means
// that it may still be applied: it was handed over before the leadership was lost or the log
// closed.
func journalFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return fault.New(fault.Timeout, "write", "the journal", err)
	}
	return fault.New(fault.NoResources, "write", "the journal", err)
}

// apply replicates an entry and returns the state machine's answer.
func (r *Raft) apply(raw []byte) error {
	defer r.awaits()()
	f := r.raft.Apply(raw, raftWait)
	if err := f.Error(); err != nil {
		return err
	}
	err, _ := f.Response().(error)
	return err
}

// awaits notes that an entry is on its way; done is called once it is confirmed, or will not be.
func (r *Raft) awaits() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries++
	n := r.entries
	r.waiting[n] = time.Now()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, n)
	}
}

// lateAfter is how long an entry may take before the journal is said to be late.
const lateAfter = 2 * time.Second

// Late returns how long the oldest entry that is not confirmed has been waited for; 0 where that is no longer than
// usual.
func (r *Raft) Late() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most time.Duration
	for _, since := range r.waiting {
		most = max(most, time.Since(since))
	}
	if most < lateAfter {
		return 0
	}
	return most
}

// State returns the state that the records make.
func (r *Raft) State() State { return r.fsm.copy() }

// Close ends the journal.
func (r *Raft) Close() error {
	return errors.Join(r.raft.Shutdown().Error(), r.store.Close())
}

// machine is the replicated state: it reads no clock, no random number and no
// unsorted map.
type machine struct {
	mu    sync.Mutex
	state State
	bad   error // of the first entry that could not be read
	// removed is called for each job that is forgotten, if it is there.
	removed func(plan.JobID)
}

// unread returns why an entry could not be read, if one could not.
func (m *machine) unread() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.bad, m.state.reads())
}

// Apply applies the records of a log entry; an unknown one is an error, in every driver that
// reads it.
func (m *machine) Apply(l *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	var records []Record
	if err := json.Unmarshal(l.Data, &records); err != nil {
		err = fault.New(fault.Corrupt, "read", fmt.Sprintf("entry %d of the journal", l.Index), err)
		if m.bad == nil {
			m.bad = err
		}
		return err
	}
	for _, r := range records {
		m.state.Apply(r)
		if r.Kind == JobRemoved && m.removed != nil {
			go m.removed(r.Job)
		}
	}
	return nil
}

// access calls a function that looks at who may do what.
func (m *machine) access(look func(*Access)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(&m.state.Access)
}

// job returns a job, and reports whether there is one of the id.
func (m *machine) job(id plan.JobID) (JobState, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.state.Jobs[id]
	return j, ok
}

// level returns the version of the protocol that all drivers are known to speak.
func (m *machine) level() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.state.Level, version.Oldest)
}

func (m *machine) copy() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Clone()
}

// Snapshot returns the state as it is now.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	raw, err := json.Marshal(m.copy())
	return snapshot(raw), err
}

// Restore replaces the state by a snapshot's.
func (m *machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	var s State
	if err := json.NewDecoder(from).Decode(&s); err != nil {
		return err
	}
	s.upgrade()
	m.mu.Lock()
	m.state = s
	m.mu.Unlock()
	return nil
}

type snapshot []byte

// Persist writes the snapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release does nothing.
func (snapshot) Release() {}
