package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
)

// Restore makes the journal of a driver that has none of a snapshot: it is the only driver of its cluster then, and
// others join it. Jobs that had not ended go on from the checkpoints that are in its data directory, or else begin
// anew.
func Restore(dataDir, file string) (jobs int, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, fault.New(fault.BadInput, "read", file, err)
	}
	text, whole := disk.Unseal(raw)
	var of kept
	if !whole || json.Unmarshal(text, &of) != nil {
		return 0, fault.Newf(fault.Corrupt, "read", file, "it is no snapshot of a journal, or not whole")
	}
	dir := filepath.Join(dataDir, "journal")
	if hasFile(dir) {
		return 0, fault.Newf(fault.Usage, "restore into", dataDir, "it has a journal").
			WithHint("move the directory journal away, if what is in it is to be given up")
	}
	self, err := selfOf(dataDir)
	if err != nil {
		return 0, err
	}
	if (of.Cluster != "") != (self.ID != alone) {
		return 0, fault.Newf(fault.Usage, "restore into", dataDir, "the snapshot is of a cluster over a network, and "+
			"this is no driver of one, or the other way round").WithHint("make it one first: volley init")
	}
	if self.ID != alone { // drivers of before do not speak with those of after it
		again := []byte(trust.NewSecret()[:16] + "\n")
		if err := trust.WritePrivate(filepath.Join(TrustDir(dataDir), foundingFile), again); err != nil {
			return 0, err
		}
		if err := writeDrivers(TrustDir(dataDir), []Peer{self}); err != nil {
			return 0, err
		}
	}
	s := of.State
	for id, j := range s.Jobs {
		j.Place = nil // the copies of it may be gone with the other drivers
		s.Jobs[id] = j
	}
	return len(s.Jobs), writeJournal(dir, self, s, of.Term+restoredAfter)
}

// selfOf returns the driver of a data directory, as the journal names it.
func selfOf(dataDir string) (Peer, error) {
	if !hasFile(TrustDir(dataDir)) {
		return Peer{alone, alone}, nil
	}
	id, err := trust.OpenIdentity(TrustDir(dataDir))
	if err != nil {
		return Peer{}, err
	}
	at, err := addressOf(dataDir)
	return Peer{id.Name().ID, at}, err
}

// restoredAfter is how many terms a restored journal leaves to those in which the drivers before it may have led.
const restoredAfter = 1000

// writeJournal makes a journal that has a snapshot and nothing after it.
func writeJournal(dir string, self Peer, s State, term uint64) error {
	failed := func(err error) error { return fault.New(fault.NoResources, "make the journal in", dir, err) }
	if err := disk.MkdirSynced(filepath.Join(dir, "snapshots"), 0o700); err != nil {
		return failed(err)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, hclog.NewNullLogger())
	if err != nil {
		return failed(err)
	}
	_, transport := raft.NewInmemTransport(raft.ServerAddress(self.Address))
	servers := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(self.ID),
		Address: raft.ServerAddress(self.Address)}}}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, 1, term, servers, 1, transport)
	if err != nil {
		return failed(err)
	}
	raw, err := json.Marshal(s)
	if err == nil {
		err = snapshot(raw).Persist(sink)
	}
	if err != nil {
		return failed(err)
	}
	store, err := openJournalFile(dir)
	if err != nil {
		return failed(err)
	}
	err = store.SetUint64([]byte("CurrentTerm"), term)
	if closed := store.Close(); err == nil {
		err = closed
	}
	return err
}
