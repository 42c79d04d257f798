package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/wire"
)

// link is a connection to the driver that leads.
type link struct {
	ctx   context.Context // while it lasts
	out   *wire.Outbox[*wire.FromExecutor]
	beat  time.Duration
	began time.Duration // since the daemon
	again bool          // there was one before it
	// silence is how long a driver that is not alone may be silent; 0 is as long as an executor may.
	silence time.Duration
	heard   atomic.Int64 // the driver's last heartbeat, since the daemon began
}

// over reports whether the connection has ended.
func (l *link) over() bool { return l.ctx.Err() != nil }

const (
	// runnersWait is how long runners are kept without a driver: the next takes them over.
	runnersWait = 30 * time.Second
	// adoptWait is how long a runner whose job's process has gone waits for the next one, and settleWait how long it
	// does at least once there is a driver again: that starts the job's process first.
	adoptWait  = time.Second
	settleWait = 15 * time.Second
)

// now returns the time since the daemon began.
func (d *Daemon) now() time.Duration { return time.Since(d.began) }

// endIfSilent ends the connection to a driver that has given heartbeats and does no longer.
func (d *Daemon) endIfSilent(l *link, v *wire.FailureDetector, end func()) {
	heard := time.Duration(l.heard.Load())
	if heard == 0 {
		return
	}
	if silent := d.now() - heard; v.Dead(d.began.Add(heard)) || l.silence > 0 && silent > l.silence {
		d.log.Warn("the driver gives no heartbeat", "silent for", silent)
		end()
	}
}

// outlives reports whether runners outlive the connection to a driver: over the network others may lead, and one that
// serves a socket ends with its user's session.
func (d *Daemon) outlives() bool { return d.cfg.Party.ID != nil }

// orphan notes that the connection to the driver has ended, and with it, as far as is known, those of all runners to
// their jobs' processes.
func (d *Daemon) orphan() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.runners {
		r.alone.CompareAndSwap(0, int64(d.now()))
	}
}

// whatOf returns what distinguishes runners of a job that do the same from others.
func whatOf(o *wire.OpenJob) string {
	raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&wire.OpenJob{Args: o.Args, Slots: o.Slots,
		Weight: o.Weight, Token: o.Token,
		Program: &wire.UserProgram{Digest: o.Program.GetDigest(), Args: o.Program.GetArgs(), Dir: o.Program.GetDir()}})
	return string(raw)
}

// adopt has a runner that waits for it taken over by the job's next process, and reports whether there is one.
func (d *Daemon) adopt(o *wire.OpenJob, l *link) bool {
	raw, err := proto.Marshal(&wire.ToExecutor{Body: &wire.ToExecutor_Adopt{Adopt: &wire.Adopt{Direct: o.Direct,
		Incarnation: o.Incarnation}}})
	if err != nil {
		return false
	}
	r := d.claim(o, l)
	if r == nil {
		return false
	}
	d.log.Info("a runner goes on with the job's next process", "job", o.Job, "process", o.Incarnation)
	d.takeDown(r) // what it did is no more
	r.pause(false)
	d.setUp(r)
	if r.over() { // meanwhile
		d.takeDown(r)
	}
	r.send(raw)
	return true
}

// claim makes the runner that waits for it that of a request; nil where there is none, or it has ended. Its end is that
// of the request from then on, and only then.
func (d *Daemon) claim(o *wire.OpenJob, l *link) *runnerProcess {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runners[o.Job]
	delete(d.opening, o.Job)
	if r == nil || r.alone.Load() == 0 || r.what != whatOf(o) || r.quiet.Load() || r.over() {
		return nil
	}
	r.id.Store(o.Runner)
	r.link.Store(l)
	r.waits.Store(false)
	r.alone.Store(0)
	return r
}

// over reports whether the process has ended.
func (r *runnerProcess) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// killOrphans ends runners that wait for a process of their job in vain.
func (d *Daemon) killOrphans(l *link) {
	settled := time.Duration(0)
	if l.again {
		settled = l.began + settleWait
	}
	var dead []*runnerProcess
	d.mu.Lock()
	for job, r := range d.runners {
		since := time.Duration(r.alone.Load())
		if since != 0 && d.now() > max(since+adoptWait, settled) {
			dead = append(dead, r)
			delete(d.runners, job)
		}
	}
	d.mu.Unlock()
	for _, r := range dead {
		r.quiet.Store(true)
		r.kill()
		d.takeDown(r)
		_ = l.out.Put(closed(r.job, r.id.Load(), "its connection to the job's process has ended"))
	}
}
