package daemon

import (
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
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Raft is the journal of a driver daemon: records are replicated, and on disk,
// before they are applied. One driver is a raft of one.
type Raft struct {
	raft  *raft.Raft
	store *journalFile
	fsm   *machine

	mu      sync.Mutex
	waiting map[int]time.Time // since when entries have not been confirmed
	entries int               // so far
}

const (
	// Timeouts at which a raft of one elects itself as fast as possible.
	raftBeat = 50 * time.Millisecond
	// raftWait bounds waits for the journal.
	raftWait = 10 * time.Second
	// trailing is how many entries the journal keeps that a snapshot has: there is no follower that could lag.
	trailing = 64
	// keptSnapshots is how many snapshots of the state are kept.
	keptSnapshots = 2
)

// OpenRaft opens the journal of a data directory and waits until it can be
// written to.
func OpenRaft(dir string, log hclog.Logger) (*Raft, error) {
	failed := func(err error) error {
		if k := fault.KindOf(err); k == fault.Corrupt || k == fault.BadInput {
			return fault.New(k, "open the journal in", dir, err)
		}
		return fault.New(fault.NoResources, "open the journal in", dir,
			err).WithHint("does another driver use this data directory?")
	}
	if err := disk.MkdirSynced(filepath.Join(dir, "snapshots"), 0o700); err != nil {
		return nil, failed(err)
	}
	store, err := openJournalFile(dir)
	if err != nil {
		return nil, failed(err)
	}
	r := &Raft{store: store, fsm: &machine{}, waiting: map[int]time.Time{}}
	if err := r.start(dir, log); err != nil {
		store.Close()
		return nil, failed(err)
	}
	return r, nil
}

func (r *Raft) start(dir string, log hclog.Logger) error {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, log)
	if err != nil {
		return err
	}
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.Logger = "driver", log
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = raftBeat, raftBeat, raftBeat
	cfg.TrailingLogs = trailing
	addr, transport := raft.NewInmemTransport("driver")
	if err := wholeSnapshots(dir, snapshots); err != nil {
		return err
	}
	known, err := raft.HasExistingState(r.store, r.store, snapshots)
	if err != nil {
		return err
	}
	if !known {
		servers := raft.Configuration{Servers: []raft.Server{{ID: cfg.LocalID, Address: addr}}}
		if err := raft.BootstrapCluster(cfg, r.store, r.store, snapshots, transport, servers); err != nil {
			return err
		}
	}
	if r.raft, err = raft.NewRaft(cfg, r.fsm, r.store, r.store, snapshots, transport); err != nil {
		return err
	}
	select {
	case <-r.raft.LeaderCh():
	case <-time.After(raftWait):
		return errors.New("no leader was elected")
	}
	if err := r.raft.Barrier(raftWait).Error(); err != nil { // everything that was committed is applied
		return err
	}
	return r.fsm.unread()
}

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
}

// unread returns why an entry could not be read, if one could not.
func (m *machine) unread() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bad
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
	}
	return nil
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
