package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

const (
	// fitnessEvery is how often an executor checks whether it is fit.
	fitnessEvery = time.Second
	// How long to wait before a failed start for want of resources is retried: longer
	// each time, up to a bound.
	beginWait     = 100 * time.Millisecond
	beginWaitMost = 5 * time.Second
)

// watchFitness checks at intervals whether the executor is fit: not in the heartbeat,
// which must not wait for a disk.
func (d *Daemon) watchFitness(ctx context.Context) {
	ticker := time.NewTicker(fitnessEvery)
	defer ticker.Stop()
	for {
		d.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look checks whether runners can be started here, and returns why not.
func (d *Daemon) look() string {
	why, dir := "", filepath.Join(d.cfg.DataDir, "runners")
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil && !fault.Passing(err) {
		why = fmt.Sprintf("its data directory cannot be used: %s: %v", dir, err)
	}
	if before, _ := d.unfit.Swap(why).(string); before != why {
		d.log.Warn("fitness changed", "unfit", why)
	}
	return why
}

// cannotBegin retries the start of a runner where the system was out of resources; otherwise
// it reports the failure to the driver, after the executor's unfitness where that is the
// cause.
func (d *Daemon) cannotBegin(ctx context.Context, o *wire.OpenJob, err error, wait time.Duration, again func(),
	l *link) {
	if fault.Passing(err) && d.wanted(o) {
		d.log.Warn("cannot start a runner; trying again", "job", o.Job, "error", err, "after", wait)
		timer := time.AfterFunc(wait, func() {
			if ctx.Err() == nil {
				again()
			}
		})
		context.AfterFunc(ctx, func() { timer.Stop() })
		return
	}
	d.log.Error("cannot start a runner", "job", o.Job, "error", err)
	if d.look() != "" {
		_ = l.out.Put(&wire.FromExecutor{Body: &wire.FromExecutor_Beat{Beat: d.state()}})
	}
	if d.wanted(o) {
		_ = l.out.Put(closed(o.Job, o.Runner, err.Error()))
	}
}
