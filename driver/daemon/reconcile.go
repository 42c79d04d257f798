package daemon

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// reconcileEvery is the time between two looks at whether other drivers have copies of all jobs' files, and
// reconcileAgain that after one that has failed.
const (
	reconcileEvery = 5 * time.Minute
	reconcileAgain = 2 * time.Second
)

// reconcile sees to it that every driver has copies of the files of all jobs: one that was lost, was down or is new has
// not been sent what others have. What is missing here is brought from others first.
func (d *Daemon) reconcile() {
	if d.self.Address == "" {
		return
	}
	next := time.NewTimer(reconcileAgain)
	defer next.Stop()
	due := map[string]time.Time{} // by the others' processes
	for {
		select {
		case <-next.C:
			next.Reset(reconcileAgain)
		case <-d.ctx.Done():
			return
		}
		for _, p := range d.others() {
			ask, cancel := context.WithTimeout(d.ctx, standingWait)
			s, err := wire.AskStanding(ask, p.Address, d.admission.self)
			cancel()
			if err != nil || time.Now().Before(due[s.Run]) {
				continue
			}
			if why := d.behind(s.Wire); why != "" {
				d.log.Warn("a driver is of an earlier version than the journal", "driver", p.ID, "why", why)
			}
			missing, err := d.bringUp(p)
			d.lacks.Store(p.ID, missing)
			if err == nil {
				due[s.Run] = time.Now().Add(reconcileEvery)
			} else {
				d.log.Debug("a driver has not all copies yet", "driver", p.ID, "why", err)
			}
		}
	}
}

// lacking returns what a driver lacks, for who lists the drivers; empty is nothing.
func (d *Daemon) lacking(id string) string {
	n, known := d.lacks.Load(id)
	if !known || n.(int) == 0 {
		return ""
	}
	return fmt.Sprintf("copies of the files of %d jobs are on their way", n)
}

// bringUp sends a driver what it lacks of jobs' files, and returns of how many jobs that still is.
func (d *Daemon) bringUp(p Peer) (missing int, err error) {
	client, err := d.copier.client(p.Address)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(d.ctx, time.Minute)
	defer cancel()
	reply, err := client.Have(ctx, &wire.HaveRequest{Dir: "jobs", Brief: true})
	if err != nil {
		return 0, err
	}
	theirs := map[string]int64{}
	for _, f := range reply.Files {
		theirs[f.Path] = int64(f.Size)
	}
	var jobs []*wire.JobInfo
	for _, w := range d.jobs.all() {
		info, _ := w.snapshot()
		d.fetchMissing(w)
		if d.lacksFiles(info, theirs) {
			jobs = append(jobs, info)
		}
	}
	for n, info := range jobs {
		d.lacks.Store(p.ID, len(jobs)-n)
		if failed := d.copier.copyTo(d.ctx, jobDir(info.Id), Over(info.State), p); failed != nil {
			return len(jobs) - n, failed
		}
	}
	return 0, nil
}

// lacksFiles reports whether a driver lacks files of a job that has ended, or of one that has not but has checkpoints:
// of those the newest are sent with its steps.
func (d *Daemon) lacksFiles(info *wire.JobInfo, theirs map[string]int64) bool {
	over := Over(info.State)
	for _, f := range filesOf(d.cfg.DataDir, jobDir(info.Id), over) {
		size, has := theirs[f.Path]
		here, err := os.Stat(filepath.Join(d.cfg.DataDir, f.Path))
		if err != nil {
			continue
		}
		if !has && (over || path.Base(path.Dir(f.Path)) != checkpointsDir) || over && size != here.Size() {
			return true
		}
	}
	return false
}

// fetchMissing brings files of a job that has ended which are not here, as the journal has them.
func (d *Daemon) fetchMissing(w *jobHandle) {
	for _, f := range w.made() {
		info, err := os.Stat(filepath.Join(w.dir, f.Path))
		if err == nil && info.Size() == f.Size {
			continue
		}
		if err := w.heal(d.ctx, f.Path, []MadeFile{f}); err != nil {
			d.log.Warn("a file of a job is on no driver that answers", "job", w.info.Id, "file", f.Path, "error", err)
			return
		}
	}
	s, _ := d.journal.fsm.job(plan.JobID(w.info.Id))
	info, _ := w.snapshot()
	if !Over(info.State) || s.Place == nil || info.State == JobDone || len(checkpointsIn(w.dir)) > 0 {
		return
	}
	if err := d.gather(d.ctx, info.Id); err != nil {
		d.log.Warn("a job's checkpoint is on no driver that answers", "job", info.Id, "error", err)
	}
}
