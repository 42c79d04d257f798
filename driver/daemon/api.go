package daemon

import (
	"context"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

// Submit admits a job.
func (d *Daemon) Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	if req.Restarts != nil {
		if err := d.needs("--max-restarts of a job", "volley/6"); err != nil {
			return nil, err
		}
	}
	if u := req.Program; u != nil {
		if _, ok := d.programs.Path(u.Digest); !ok {
			return nil, status.Error(codes.NotFound, "the program is not here: upload it first")
		}
		if err := d.checkSigned(ctx, u); err != nil {
			return nil, err
		}
	}
	id, err := d.jobs.submit(req, ownerOf(d.admission.who(wire.CallerOf(ctx))))
	if err != nil {
		return nil, err
	}
	return &wire.SubmitReply{Id: id}, nil
}

// Jobs lists jobs, or describes one.
func (d *Daemon) Jobs(_ context.Context, req *wire.JobsRequest) (*wire.JobsReply, error) {
	reply := &wire.JobsReply{}
	if req.Id != "" {
		w, err := d.jobs.find(req.Id)
		if err != nil {
			return nil, err
		}
		reply.Jobs = append(reply.Jobs, w.described())
		return reply, nil
	}
	for _, w := range d.jobs.shown() {
		info, _ := w.snapshot()
		if !req.Brief {
			info = w.described()
		}
		reply.Jobs = append(reply.Jobs, info)
	}
	return reply, nil
}

// logOf returns the path of what a job's process has printed, or its runner on an executor, once it is seen not to be
// damaged.
func (d *Daemon) logOf(ctx context.Context, w *jobHandle, executor string) (path string, err error) {
	name := "log"
	switch info, _ := w.snapshot(); {
	case executor != "" && !d.members.knows(executor):
		return "", status.Errorf(codes.NotFound, "there is no executor %q", executor)
	case executor != "":
		name = "runner-" + filepath.Base(executor) + ".log"
		err = w.checkLog(name)
	case Over(info.State):
		err = w.healLog(ctx)
	}
	if err != nil {
		return "", status.Error(codes.DataLoss, err.Error())
	}
	return filepath.Join(w.dir, name), nil
}

// Watch follows a job's log.
func (d *Daemon) Watch(req *wire.WatchRequest, stream wire.Cluster_WatchServer) error {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return err
	}
	done, err := w.read()
	if err != nil {
		return err
	}
	defer done()
	path, err := d.logOf(stream.Context(), w, req.Task)
	if err != nil {
		return err
	}
	offset := min(int64(req.Offset), logEnd(path)) // a driver that leads anew may have less of it
	for {
		if err := d.allowed(wire.CallerOf(stream.Context()), wire.Cluster_Watch_FullMethodName); err != nil {
			return err // since it began
		}
		info, changed := w.snapshot()
		offset, err = readLog(path, offset, func(p []byte, next int64) error {
			return stream.Send(&wire.WatchReply{Log: p, Next: uint64(next)})
		})
		if err != nil {
			return err
		}
		if Over(info.State) || !req.Follow {
			return stream.Send(&wire.WatchReply{Ended: w.described()})
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-d.ctx.Done():
			return status.Error(codes.Unavailable, "the driver is going down")
		}
	}
}

// Download sends a job's model and event log.
func (d *Daemon) Download(req *wire.DownloadRequest, stream wire.Cluster_DownloadServer) error {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return err
	}
	if err := d.mayChange(stream.Context(), w); err != nil {
		return err
	}
	done, err := w.read()
	if err != nil {
		return err
	}
	defer done()
	files, made, err := w.madeFiles()
	if err != nil {
		return status.Error(codes.DataLoss, err.Error())
	}
	for _, name := range append(files, driver.EventsName) {
		if err := w.sendWhole(name, made, stream); err != nil {
			return status.Error(codes.DataLoss, err.Error())
		}
	}
	return nil
}

// Cancel stops a job.
func (d *Daemon) Cancel(ctx context.Context, req *wire.CancelRequest) (*wire.CancelReply, error) {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return nil, err
	}
	if err := d.mayChange(ctx, w); err != nil {
		return nil, err
	}
	if err := w.cancel(); err != nil {
		return nil, err
	}
	return &wire.CancelReply{}, nil
}

// Drain moves an executor's packs to others and gives it no more work; it is
// readmitted when it registers again.
func (d *Daemon) Drain(ctx context.Context, req *wire.DrainRequest) (*wire.DrainReply, error) {
	_, err := d.jobs.ask(ctx, func(from uint64) LifeEvent {
		return LifeEvent{Member: &MemberEvent{Executor: req.Name, Drain: true, From: from}}
	})
	if err != nil {
		return nil, err
	}
	return &wire.DrainReply{}, nil
}

// Executors lists executors.
func (d *Daemon) Executors(context.Context, *wire.ExecutorsRequest) (*wire.ExecutorsReply, error) {
	reply := &wire.ExecutorsReply{}
	for _, m := range d.members.known() {
		reply.Executors = append(reply.Executors, m.info())
	}
	return reply, nil
}
