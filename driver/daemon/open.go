package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/trust"
)

// foundedFile says, beside a driver's certificate, that it has kept a journal: one that is gone is not begun anew.
const foundedFile = "founded"

// openJournal opens the journal. One that is damaged or gone is brought from the other drivers, if there are any, and
// anew says that it is to be; this driver votes for none until it is there.
func (r *Replica) openJournal() (anew bool, err error) {
	dir := filepath.Join(r.cfg.DataDir, "journal")
	first, err := r.first()
	if err != nil {
		return false, err
	}
	founded := filepath.Join(TrustDir(r.cfg.DataDir), foundedFile)
	cfg := raftConfig{dir: dir, self: r.self, first: first, streams: r.streams(), log: r.raftLog(),
		removed: r.jobRemoved}
	others := r.self.Address != "" && len(first) > 1
	if others && !hasFile(dir) {
		if hasFile(founded) || r.clusterIsThere(first) {
			anew = true
			cfg.first = nil
		}
	}
	if r.self.Address != "" && !contains(first, r.self.ID) { // it has joined, and is taken in
		cfg.first = nil
	}
	r.journal, err = openRaft(cfg)
	if others && fault.Is(err, fault.Corrupt) {
		aside := fmt.Sprintf("%s.damaged-%d", dir, time.Now().UnixNano())
		r.log.Error("the journal is damaged: it is brought from the other drivers", "kept as", aside, "error", err)
		if err := os.Rename(dir, aside); err != nil {
			return false, fault.New(fault.NoResources, "put aside", dir, err)
		}
		anew, cfg.first = true, nil
		why := "its journal is brought from the others: " + err.Error()
		r.outside.Store(&why)
		r.journal, err = openRaft(cfg)
	}
	if err != nil {
		return false, err
	}
	if err := r.sameAddress(); err != nil {
		return false, err
	}
	if r.self.Address != "" && !hasFile(founded) {
		err = errors.Join(trust.WritePrivate(founded, nil), disk.SyncDir(filepath.Dir(founded)))
	}
	return anew, err
}

func hasFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func contains(all []Peer, id string) bool {
	for _, p := range all {
		if p.ID == id {
			return true
		}
	}
	return false
}

// jobRemoved removes the copies of a job that the journal has forgotten; the driver that leads does so itself.
func (r *Replica) jobRemoved(job plan.JobID) {
	if r.present.Load() != nil || r.self.Address == "" {
		return
	}
	if err := disk.RemoveAll(filepath.Join(r.cfg.DataDir, jobDir(string(job)))); err != nil {
		r.log.Warn("cannot remove the copies of a job's files", "job", job, "error", err)
	}
}

// raftLog returns where the journal's library says what it does: of interest to who looks for its faults.
func (r *Replica) raftLog() hclog.Logger {
	log := r.cfg.Logger.Named("raft")
	if !log.IsDebug() && r.self.Address != "" {
		log = hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	}
	return log
}

// sameAddress refuses an address other than that by which the others know this driver, unless it was given: a file
// that was damaged says another.
func (r *Replica) sameAddress() error {
	for _, p := range r.journal.Peers() {
		if p.ID == r.self.ID && p.Address != r.self.Address && !r.cfg.moved {
			return fault.Newf(fault.BadInput, "use", filepath.Join(TrustDir(r.cfg.DataDir), addressFile),
				"it says %s, and the others know this driver at %s", r.self.Address, p.Address).
				WithHint("mend the file, or, where it is reached otherwise now, give --advertise HOST:PORT")
		}
	}
	return nil
}
