package daemon

import (
	"sync"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

const (
	leaseBeat = 200 * time.Millisecond // between two questions of a job's process
	// silenceMost is the silence of a driver after which an executor looks for another that leads: its runners stay.
	silenceMost = 1500 * time.Millisecond
)

// welcome returns what a job's process is told first.
func (d *Daemon) welcome(executors int) *wire.Welcome {
	w := &wire.Welcome{Executors: uint32(executors), BeatNs: uint64(d.cfg.beat()), Term: d.term}
	if d.self.Address != "" { // there may be other drivers one day
		w.BeatNs, w.LeaseNs = uint64(min(d.cfg.beat(), leaseBeat)), uint64(driver.LeaseLasts)
	}
	return w
}

// leases are the questions of jobs' processes whether they may go on, which wait for a majority to say that the driver
// leads. One answer of the majority is for all that were asked before.
type leases struct {
	mu      sync.Mutex
	began   time.Time
	waiting []leaseAsked
	busy    bool
}

// leaseAsked is a question, as the process has dated it, and when it came.
type leaseAsked struct {
	job  *jobHandle
	sent uint64
	at   time.Duration
}

// extend extends the lease of a job's process, counted from when it asked, once a majority of the drivers has said
// that this one leads.
func (d *Daemon) extend(w *jobHandle, sent uint64) {
	switch {
	case d.self.Address == "":
		return
	case !d.hasPeers(): // there is no other that could lead
		w.tell(leaseFrom(sent))
		return
	}
	l := &d.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, leaseAsked{w, sent, time.Since(l.began)})
	if !l.busy {
		l.busy = true
		go d.verify()
	}
}

// leaseFrom returns the extension of a lease, from when a process asked.
func leaseFrom(sent uint64) *wire.ForJob {
	lease := &wire.JobLease{SentNs: sent, LastsNs: uint64(driver.LeaseLasts)}
	return &wire.ForJob{Body: &wire.ForJob_Lease{Lease: lease}}
}

// verify answers the questions that wait, until there are none.
func (d *Daemon) verify() {
	l := &d.leases
	for {
		led := time.Since(l.began)
		err := d.journal.raft.VerifyLeader().Error()
		var now []leaseAsked
		l.mu.Lock()
		later := l.waiting[:0:0]
		for _, a := range l.waiting {
			if Extends(led, a.at) {
				now = append(now, a)
			} else {
				later = append(later, a)
			}
		}
		l.waiting = later
		l.busy = len(later) > 0 && err == nil
		more := l.busy
		l.mu.Unlock()
		for _, a := range now {
			if err == nil {
				a.job.tell(leaseFrom(a.sent))
			}
		}
		if !more {
			return
		}
	}
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
