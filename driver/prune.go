package driver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

const (
	// pruneGrace is how long a job stays after its end whatever is to be kept: whoever has
	// submitted it brings what it has made.
	pruneGrace = 10 * time.Minute
	// pruneEvery is how often a driver looks for jobs that it need not keep.
	pruneEvery = time.Minute
	// pruneAtOnce is how many jobs go by one entry of the journal.
	pruneAtOnce = 100
)

// pruneNowAndThen removes the jobs beyond what is to be kept, until the driver ends.
func (t *jobTable) pruneNowAndThen(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if _, _, err := t.prune(*t.d.cfg.Keep, pruneGrace); err != nil && ctx.Err() == nil {
			t.d.log.Error("cannot remove finished jobs", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// prune removes jobs that have ended, and returns their ids and how many bytes they had. The
// journal forgets them first: what is on the disk of a job that it has not forgotten is whole.
func (t *jobTable) prune(k Keep, grace time.Duration) (ids []string, bytes int64, err error) {
	t.pruning.Lock()
	defer t.pruning.Unlock()
	ended := t.ended()
	for some := range slices.Chunk(k.beyond(finished(ended, k.Bytes >= 0), time.Now(), grace), pruneAtOnce) {
		gone, err := t.forget(ended, some)
		if err != nil {
			return ids, bytes, err
		}
		for _, w := range gone {
			ids, bytes = append(ids, w.info.Id), bytes+w.size()
			if err := disk.RemoveAll(w.dir); err != nil { // it is tried again when the driver starts
				t.d.log.Error("cannot remove a job's directory", "job", w.info.Id, "error", err)
			}
		}
		t.dropPrograms(gone)
	}
	if len(ids) > 0 {
		t.d.log.Info("finished jobs removed", "jobs", len(ids), "first", ids[0], "bytes", bytes)
	}
	return ids, bytes, nil
}

// forget has the journal, and then the table, forget some of the jobs that have ended; those
// that somebody has begun to read, or to resume, stay.
func (t *jobTable) forget(ended map[string]*work, ids []string) (gone []*work, err error) {
	var records []Record
	for _, id := range ids {
		if w := ended[id]; w.leave() {
			gone = append(gone, w)
			records = append(records, w.removal()...)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	if err := t.d.journal.Append(t.d.ctx, records...); err != nil {
		if k := fault.KindOf(err); k != fault.Timeout && k != fault.Cancelled { // it may be written down yet: the next start knows
			for _, w := range gone {
				w.stay()
			}
		}
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range gone {
		delete(t.list, w.info.Id)
	}
	return gone, nil
}

// dropPrograms drops the programs of jobs that were removed which no other job has.
func (t *jobTable) dropPrograms(gone []*work) {
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

// removal are the records that have the journal forget a job. Its end comes first: it may be
// that it could not be written down when it came, and a job that has not ended stays.
func (w *work) removal() []Record {
	info, _ := w.snapshot()
	end := Record{Kind: JobEnded, Job: plan.JobID(info.Id), State: info.State, Reason: info.Why, At: info.EndedUnixNs}
	return []Record{end, {Kind: JobRemoved, Job: end.Job, At: time.Now().UnixNano()}}
}

// finished are jobs that have ended, with the sizes of their directories where these count.
func finished(ended map[string]*work, sizes bool) (out []finishedJob) {
	for id, w := range ended {
		j := finishedJob{id: id}
		if sizes {
			j.bytes = w.size()
		}
		w.mu.Lock()
		j.ended, j.held = time.Unix(0, w.info.EndedUnixNs), w.readers > 0
		w.mu.Unlock()
		out = append(out, j)
	}
	return out
}

// size is how many bytes the directory of a job that has ended has. It is looked at once, under
// the lock of pruning.
func (w *work) size() int64 {
	if !w.sized {
		w.bytes, w.sized = directorySize(w.dir), true
	}
	return w.bytes
}

func directorySize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read takes no room that is known of
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// leave begins a job's removal and reports whether it could: not while its files are read, or
// when it goes on.
func (w *work) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaving = w.readers == 0 && !w.resuming && Over(w.info.State)
	return w.leaving
}

// stay takes a removal back.
func (w *work) stay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaving = false
}

// read keeps a job from being removed until done is called.
func (w *work) read() (done func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving {
		return nil, notKept(w.info.Id)
	}
	w.readers++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.readers--
	}, nil
}

// notKept says that a job was removed.
func notKept(id string) error {
	return status.Errorf(codes.NotFound, "job %s is no longer kept: see --keep of volley driver", id)
}

// removeLeftOver removes the directories of jobs that the journal has forgotten, which the
// driver before this one could not.
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

// Prune removes jobs that have ended: beyond what is asked for, at once, or else beyond what
// the driver keeps, those that have ended long enough ago.
func (d *Daemon) Prune(_ context.Context, req *wire.PruneRequest) (*wire.PruneReply, error) {
	k, grace := *d.cfg.Keep, pruneGrace
	if own := req.Keep; own != nil {
		k, grace = Keep{Count: int(own.Count), Age: time.Duration(own.AgeNs), Bytes: own.Bytes}, 0
	}
	ids, bytes, err := d.jobs.prune(k, grace)
	if err != nil {
		return nil, status.Errorf(codes.ResourceExhausted, "after %d jobs: %v", len(ids), err)
	}
	return &wire.PruneReply{Jobs: ids, Bytes: uint64(bytes)}, nil
}
