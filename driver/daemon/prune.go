package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/wire"
)

// prune removes jobs that have ended, and returns their ids and how many bytes they had.
func (t *jobTable) prune(k Keep, grace time.Duration) (ids []string, bytes int64, err error) {
	r, err := t.ask(context.Background(), func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from, Prune: &LifePrune{Keep: k, Grace: grace}}}
	})
	return r.Jobs, r.Bytes, err
}

// dropPrograms drops the programs of jobs that were removed which no other job has.
func (t *jobTable) dropPrograms(gone []*jobHandle) {
	needed := map[string]bool{"": true}
	for _, w := range t.all() {
		needed[w.info.Program.GetDigest()] = true
	}
	for _, w := range gone {
		if digest := w.info.Program.GetDigest(); !needed[digest] {
			t.d.programs.Drop(digest)
		}
	}
}

// directorySize returns how many bytes the files of a directory have.
func directorySize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read counts as nothing
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// removeLeftOver removes the directories of removed jobs that an earlier driver could not
// remove.
func removeLeftOver(dir string, s State) error {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range leftOver(names, s) {
		err = errors.Join(err, disk.RemoveAll(filepath.Join(dir, name)))
	}
	return err
}

// Prune removes ended jobs: those beyond the limits requested, at once, or else those beyond
// the driver's retention that ended long enough ago.
func (d *Daemon) Prune(_ context.Context, req *wire.PruneRequest) (*wire.PruneReply, error) {
	k, grace := *d.cfg.Keep, pruneGrace
	if own := req.Keep; own != nil {
		k, grace = Keep{Count: int(own.Count), Age: time.Duration(own.AgeNs), Bytes: own.Bytes}, 0
	}
	ids, bytes, err := d.jobs.prune(k, grace)
	if err != nil {
		return nil, status.Errorf(codes.ResourceExhausted, "after %d jobs: %v", len(ids), status.Convert(err).Message())
	}
	return &wire.PruneReply{Jobs: ids, Bytes: uint64(bytes)}, nil
}

// Remove removes a job that has ended.
func (d *Daemon) Remove(ctx context.Context, req *wire.RemoveRequest) (*wire.PruneReply, error) {
	w, err := d.jobs.find(req.Id)
	if err != nil {
		return nil, err
	}
	if err := d.mayChange(ctx, w); err != nil {
		return nil, err
	}
	r, err := d.jobs.ask(ctx, func(from uint64) LifeEvent {
		return LifeEvent{Ask: &LifeRequest{From: from, Remove: req.Id}}
	})
	if err != nil {
		return nil, err
	}
	if len(r.Jobs) == 0 {
		return nil, status.Errorf(codes.InvalidArgument, "job %s is in use", req.Id)
	}
	return &wire.PruneReply{Jobs: r.Jobs, Bytes: uint64(r.Bytes)}, nil
}
