package host

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

// lease is how long a job's process may go on: a driver that does not lead any more extends none, and another starts
// the job's next process only once those of the one before are over. It is counted from when the process asked, by its
// own clock: however long the answer takes, it does not last longer.
type lease struct {
	began time.Time
	until atomic.Int64 // since then; 0 is for ever
	end   func()
}

func newLease() *lease {
	return &lease{began: time.Now(), end: func() {
		fmt.Fprintln(os.Stderr, "volley: the cluster's driver has not said for too long that it leads: the job goes "+
			"on under another")
		os.Exit(wire.ExitLost)
	}}
}

// now returns the time by which leases are counted.
func (l *lease) now() uint64 { return uint64(time.Since(l.began)) }

// extend takes an extension.
func (l *lease) extend(e *wire.JobLease) {
	end := driver.LeaseEnd(time.Duration(e.SentNs), time.Duration(l.now()), time.Duration(e.LastsNs))
	l.until.Store(max(l.until.Load(), int64(end)))
}

// leaseLook is the time between two looks at whether a lease is over.
const leaseLook = 20 * time.Millisecond

// watch ends the process when its lease is over.
func (l *lease) watch() {
	if l.until.Load() == 0 {
		return
	}
	look := time.NewTicker(leaseLook)
	defer look.Stop()
	for range look.C {
		if l.now() > uint64(l.until.Load()) {
			l.end()
			return
		}
	}
}
