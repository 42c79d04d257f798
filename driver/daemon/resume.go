package daemon

import (
	"context"
	"os"

	"github.com/volley-engine/volley/internal/wire"
)

// Resume continues a job that has failed or was cancelled from its last checkpoint: under its
// id, in its directory, in its next term.
func (d *Daemon) Resume(ctx context.Context, req *wire.ResumeRequest) (*wire.ResumeReply, error) {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return nil, err
	}
	if err := d.mayChange(ctx, w); err != nil {
		return nil, err
	}
	gone := ""
	if _, err := os.Stat(w.dir); err != nil {
		gone = err.Error()
	}
	_, err = d.jobs.ask(ctx, func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from, Resume: req.Id, Gone: gone}}
	})
	if err != nil {
		return nil, err
	}
	return &wire.ResumeReply{}, nil
}
