package daemon

import (
	"time"

	"github.com/volley-engine/volley/internal/wire"
)

// A job's process goes on for leaseLasts after it has asked, where its driver led since then: a majority of the drivers
// has said so. Who leads next waits until the leases of the one before are over: it was elected electionLeast after
// any of that majority last heard of the other, or later. Clocks may run apart by a tenth, each way; where they do by
// more, the journal still takes nothing of the process before, nor do runners that the next one has taken over.
const (
	leaseLasts = 1200 * time.Millisecond
	leaseBeat  = 200 * time.Millisecond // between two questions
	drift      = 10                     // parts: clocks may run apart by one of them
	// silenceMost is the silence of a driver after which an executor looks for another that leads: its runners stay.
	silenceMost = 1500 * time.Millisecond
)

// leasesOver is how long a driver that has been elected waits for the processes of the one before to be over.
const leasesOver = leaseLasts + leaseLasts/drift - (electionLeast - electionLeast/drift)

// welcome returns what a job's process is told first.
func (d *Daemon) welcome(executors int) *wire.Welcome {
	w := &wire.Welcome{Executors: uint32(executors), BeatNs: uint64(d.cfg.beat()), Term: d.term}
	if d.self.Address != "" { // there may be other drivers one day
		w.BeatNs, w.LeaseNs = uint64(min(d.cfg.beat(), leaseBeat)), uint64(leaseLasts)
	}
	return w
}

// extend extends the lease of a job's process, counted from when it asked, once a majority of the drivers has said
// that this one leads.
func (d *Daemon) extend(w *jobHandle, asked uint64) {
	if d.self.Address == "" {
		return
	}
	f := d.journal.raft.VerifyLeader()
	go func() {
		if f.Error() == nil {
			more := &wire.JobLease{SentNs: asked, LastsNs: uint64(leaseLasts)}
			w.tell(&wire.ForJob{Body: &wire.ForJob_Lease{Lease: more}})
		}
	}()
}

// beat says to executors that this driver leads, until the context ends: one that does not hear of it looks for
// another.
func (d *Daemon) beat() {
	ticker := time.NewTicker(min(d.cfg.beat(), leaseBeat))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, m := range d.members.all() {
				_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Beat{Beat: &wire.Beat{}}})
			}
		case <-d.ctx.Done():
			return
		}
	}
}
