package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/volley-engine/volley/internal/fault"
)

// Raft is the journal of a driver daemon: records are replicated, and on disk,
// before they are applied. One driver is a raft of one.
type Raft struct {
	raft  *raft.Raft
	store *raftboltdb.BoltStore
	fsm   *machine
}

const (
	// A raft of one elects itself as fast as it may.
	raftBeat = 50 * time.Millisecond
	// raftWait bounds waits for the journal.
	raftWait = 10 * time.Second
	// keptSnapshots is how many snapshots of the state are kept.
	keptSnapshots = 2
)

// OpenRaft opens the journal of a data directory and waits until it can be
// written to.
func OpenRaft(dir string, log hclog.Logger) (*Raft, error) {
	failed := func(err error) error {
		return fault.New(fault.NoResources, "open the journal in", dir, err).WithHint("does another driver use this data directory?")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, failed(err)
	}
	store, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "raft.db"), BoltOptions: boltOptions()})
	if err != nil {
		return nil, failed(err)
	}
	r := &Raft{store: store, fsm: &machine{}}
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
	addr, transport := raft.NewInmemTransport("driver")
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
	return r.raft.Barrier(raftWait).Error() // everything that was committed is applied
}

// Append returns once the records are on disk and applied.
func (r *Raft) Append(_ context.Context, records ...Record) error {
	raw, err := json.Marshal(records)
	if err == nil {
		err = r.raft.Apply(raw, raftWait).Error()
	}
	if err != nil {
		return fault.New(fault.NoResources, "write", "the journal", err)
	}
	return nil
}

// State is what the records add up to.
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
}

// Apply takes the records of a log entry in; one that is not ours is ignored
// by every driver alike.
func (m *machine) Apply(l *raft.Log) any {
	var records []Record
	if err := json.Unmarshal(l.Data, &records); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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

// Snapshot is the state as it is now.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	raw, err := json.Marshal(m.copy())
	return snapshot(raw), err
}

// Restore takes a snapshot's state over.
func (m *machine) Restore(from io.ReadCloser) error {
	defer from.Close()
	var s State
	if err := json.NewDecoder(from).Decode(&s); err != nil {
		return err
	}
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

// Release has nothing to let go of.
func (snapshot) Release() {}

// boltOptions bound the wait for a data directory that another driver uses.
func boltOptions() *bolt.Options { return &bolt.Options{Timeout: time.Second} }
