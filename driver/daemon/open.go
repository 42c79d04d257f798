package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// Files beside a driver's certificate.
const (
	// foundedFile says that the driver has kept a journal: one that is gone is not begun anew.
	foundedFile = "founded"
	// incompleteFile says that its journal lacks what it once had, or has not come yet: it votes for none.
	incompleteFile = "incomplete"
	// foundingFile distinguishes the cluster from what it was before it was restored.
	foundingFile = "founding"
)

func (r *Replica) trustFile(name string) string { return filepath.Join(TrustDir(r.cfg.DataDir), name) }

// foundingOf returns by what the drivers of one founding of a cluster know each other.
func foundingOf(dataDir string) string {
	raw, err := os.ReadFile(filepath.Join(TrustDir(dataDir), foundingFile))
	if err != nil {
		return "0"
	}
	return strings.TrimSpace(string(raw))
}

// openJournal opens the journal. One that is damaged or gone is brought from the other drivers, if there are any, and
// anew says that it is to be; this driver votes for none until it is there, however often it is started.
func (r *Replica) openJournal(ctx context.Context) (anew bool, err error) {
	first, err := r.first()
	if err != nil {
		return false, err
	}
	cfg := raftConfig{dir: filepath.Join(r.cfg.DataDir, "journal"), self: r.self, first: first, log: r.raftLog(),
		removed: r.jobRemoved, streams: r.streams()}
	if others := r.self.Address != "" && len(first) > 1; !others {
		if err := journalOfJobs(r.cfg.DataDir); err != nil {
			return false, err
		}
		if r.journal, err = openRaft(cfg); err != nil {
			return false, err
		}
		return false, r.noteFounded()
	}
	if err := r.beginsOrGoesOn(ctx, cfg.dir, first); err != nil {
		return false, err
	}
	if cfg.incomplete = hasFile(r.trustFile(incompleteFile)); cfg.incomplete {
		cfg.first = nil
	}
	r.journal, err = openRaft(cfg)
	if fault.Is(err, fault.Corrupt) {
		if err := r.putAside(cfg.dir, err); err != nil {
			return false, err
		}
		cfg.incomplete, cfg.first = true, nil
		r.journal, err = openRaft(cfg)
	}
	if err == nil {
		err = r.sameAddress()
	}
	if err == nil {
		err = r.noteFounded()
	}
	return cfg.incomplete, err
}

// beginsOrGoesOn finds out whether a driver without a journal is one of a new cluster, all of whose drivers must be
// there, or was one of it before, and marks the latter.
func (r *Replica) beginsOrGoesOn(ctx context.Context, dir string, first []Peer) error {
	journal, founded := hasFile(dir), hasFile(r.trustFile(foundedFile))
	incomplete := hasFile(r.trustFile(incompleteFile))
	for told := ""; ; {
		there, silent := false, []string(nil)
		if !journal && !founded && !incomplete {
			there, silent = r.askOthers(ctx, first)
		}
		switch Begins(journal, founded, incomplete, there, len(silent)) {
		case OpenJournal, BeginJournal:
			return nil
		case BringJournal:
			return r.mark(incompleteFile)
		}
		if text := strings.Join(silent, "; "); text != told {
			told = text
			r.log.Info("this driver begins the cluster when all its drivers are there", "missing", text)
		}
		select {
		case <-time.After(enrolAgain / 4):
		case <-ctx.Done():
			return fault.Newf(fault.Cancelled, "wait for", "the other drivers", "%s", told)
		}
	}
}

// askOthers asks all other drivers whether there is a cluster already, and returns those that do not answer.
func (r *Replica) askOthers(ctx context.Context, first []Peer) (there bool, silent []string) {
	type answer struct {
		id string
		wire.Standing
		err error
	}
	answers := make(chan answer, len(first))
	asked := 0
	for _, p := range first {
		if p.ID == r.self.ID {
			continue
		}
		asked++
		go func() {
			ask, cancel := context.WithTimeout(ctx, standingWait)
			defer cancel()
			s, err := wire.AskStanding(ask, p.Address, r.admission.self)
			answers <- answer{p.ID, s, err}
		}()
	}
	for range asked {
		a := <-answers
		there = there || a.err == nil && a.Entries > 1
		if a.err != nil {
			silent = append(silent, fmt.Sprintf("driver %s: %v", a.id, a.err))
		}
	}
	slices.Sort(silent)
	return there, silent
}

// mark makes a file beside the certificate that says something by being there.
func (r *Replica) mark(name string) error {
	return errors.Join(trust.WritePrivate(r.trustFile(name), nil), disk.SyncDir(TrustDir(r.cfg.DataDir)))
}

// putAside puts a damaged journal aside, and marks first that there is none.
func (r *Replica) putAside(dir string, damage error) error {
	if err := r.mark(incompleteFile); err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.damaged-%d", dir, time.Now().UnixNano())
	r.log.Error("the journal is damaged: it is brought from the other drivers", "kept as", aside, "error", damage)
	why := "its journal is brought from the others: " + damage.Error()
	r.outside.Store(&why)
	if err := os.Rename(dir, aside); err != nil {
		return fault.New(fault.NoResources, "put aside", dir, err)
	}
	return nil
}

// noteFounded notes that this driver has a journal.
func (r *Replica) noteFounded() error {
	if r.self.Address == "" || hasFile(r.trustFile(foundedFile)) {
		return nil
	}
	return r.mark(foundedFile)
}

// complete notes that this driver's journal has all that the others' have.
func (r *Replica) complete() error {
	err := disk.Remove(r.trustFile(incompleteFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, disk.SyncDir(TrustDir(r.cfg.DataDir)))
}

func hasFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
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
	if at, other := r.knownAt(); other && !r.cfg.moved {
		return fault.Newf(fault.BadInput, "use", r.trustFile(addressFile),
			"it says %s, and the others know this driver at %s", r.self.Address, at).
			WithHint("mend the file, or, where it is reached otherwise now, give --advertise HOST:PORT")
	}
	return nil
}

// knownAt returns where the others know this driver, and reports whether it is reached otherwise.
func (r *Replica) knownAt() (address string, other bool) {
	for _, p := range r.journal.Peers() {
		if p.ID == r.self.ID {
			return p.Address, p.Address != r.self.Address
		}
	}
	return "", false
}

// moved reports whether the others have to be told where this driver is reached now.
func (r *Replica) moved() bool {
	_, other := r.knownAt()
	return other && r.cfg.moved
}

// lookOutside finds out, where no driver leads as far as this one knows, whether one does for the others: this one was
// removed, or is not of their founding.
func (r *Replica) lookOutside() {
	if r.self.Address == "" || r.journal.Leader().ID != "" {
		return
	}
	first, err := r.first()
	if err != nil {
		return
	}
	for _, p := range first {
		if p.ID == r.self.ID {
			continue
		}
		ask, cancel := context.WithTimeout(r.ctx, standingWait)
		s, err := wire.AskStanding(ask, p.Address, r.admission.self)
		cancel()
		if err != nil || !s.Leads {
			continue
		}
		why := ""
		switch {
		case s.Founding != r.founding:
			why = fmt.Sprintf("driver %s leads a cluster of another founding: it was restored since, or %s is damaged",
				p.ID, r.trustFile(foundingFile))
		case !slices.Contains(s.Drivers, r.self.Address):
			why = "it was removed from the cluster, in which driver " + p.ID + " leads"
		}
		if was := r.outside.Load(); why != "" && (was == nil || *was != why) {
			r.outside.Store(&why)
			r.log.Error("this driver is none of the cluster's", "why", why)
		}
	}
}

// keepDrivers keeps the list of drivers as the journal has it.
func (r *Replica) keepDrivers() {
	now := r.journal.Peers()
	if r.self.Address == "" || len(now) == 0 || slices.Equal(now, r.listed) {
		return
	}
	if err := writeDrivers(TrustDir(r.cfg.DataDir), now); err != nil {
		r.log.Error("cannot note the drivers of the cluster", "error", err)
		return
	}
	r.listed = now
}
