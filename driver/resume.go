package driver

import (
	"context"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// Resume has a job that has failed or was cancelled go on from its last checkpoint: under its
// id, in its directory, in its next term.
func (d *Daemon) Resume(ctx context.Context, req *wire.ResumeRequest) (*wire.ResumeReply, error) {
	if d.ctx.Err() != nil {
		return nil, status.Error(codes.Unavailable, "the driver is going down")
	}
	w, err := d.jobs.find(req.Id)
	if err == nil {
		err = w.beginResuming()
	}
	if err != nil {
		return nil, err
	}
	if err = w.awaitGone(ctx); err == nil {
		err = w.noteResumed(d)
	}
	if err != nil {
		w.change(func() { w.resuming = false })
		return nil, status.Errorf(codes.ResourceExhausted, "the job cannot be resumed: %v", err)
	}
	d.jobs.start(d.jobs.renew(w))
	d.log.Info("job is resumed", "job", req.Id)
	return &wire.ResumeReply{}, nil
}

// awaitGone waits until the connection of the job's last process has ended, which ends the
// runners of that process.
func (w *work) awaitGone(ctx context.Context) error {
	for {
		_, changed := w.snapshot()
		w.mu.Lock()
		gone := w.out == nil
		w.mu.Unlock()
		if gone {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noteResumed has the journal know that the job goes on. Where it may be written down only
// later, so is that it does not, after it.
func (w *work) noteResumed(d *Daemon) error {
	end := w.removal()[0]
	err := d.journal.Append(d.ctx, end, Record{Kind: JobResumed, Job: end.Job, At: time.Now().UnixNano()})
	if k := fault.KindOf(err); k == fault.Timeout || k == fault.Cancelled {
		go func() { _ = d.journal.Append(d.ctx, end) }()
	}
	return err
}

// beginResuming refuses a job that cannot go on, and otherwise keeps it from being removed or
// resumed twice.
func (w *work) beginResuming() error {
	if _, err := os.Stat(w.dir); err != nil {
		return status.Errorf(codes.NotFound, "its directory is gone: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.leaving:
		return notKept(w.info.Id)
	case !Over(w.info.State) || w.resuming:
		return status.Errorf(codes.InvalidArgument, "%s has not ended", w.info.Id)
	case w.info.State == JobDone:
		return status.Errorf(codes.InvalidArgument, "%s is done", w.info.Id)
	}
	w.resuming = true
	return nil
}

// renew puts a job's next life in the place of the one that has ended, which whoever watches it
// has seen end.
func (t *jobTable) renew(old *work) *work {
	info, _ := old.snapshot()
	info.State, info.Why, info.EndedUnixNs, info.Restarts, info.Result = JobWaiting, "", 0, 0, ""
	w := t.newWork(info, old.token)
	t.mu.Lock()
	defer t.mu.Unlock()
	w.term, w.queued = old.term, time.Now().UnixNano()
	t.add(w)
	return w
}
