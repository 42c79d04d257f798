package daemon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/copies"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// gatherWait bounds how long other drivers may take to say what they have of a job.
const gatherWait = 5 * time.Second

// gather sees to it that what a job goes on from is here: its last committed checkpoint or a later one, with the log up
// to it, and its program. What is missing or damaged is brought from another driver.
func (d *Daemon) gather(ctx context.Context, job string) error {
	if len(d.others()) == 0 {
		return nil
	}
	dir := filepath.Join(d.cfg.DataDir, jobDir(job))
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.NoResources, "make", dir, err)
	}
	s, _ := d.journal.fsm.job(plan.JobID(job))
	if err := d.gatherProgram(ctx, s.Spec.Program); err != nil {
		return err
	}
	if s.Place == nil || goesOnFrom(dir, *s.Place) {
		return nil
	}
	d.log.Info("a job's files are brought from other drivers", "job", job, "checkpoint", s.Place.Checkpoint)
	why := []string{}
	for h := range d.holders(ctx, job) {
		err := h.err
		if err == nil {
			err = d.bringJob(ctx, h, job, *s.Place)
		}
		if err == nil {
			return nil
		}
		why = append(why, fmt.Sprintf("driver %s: %s", h.ID, status.Convert(err).Message()))
	}
	return fault.Newf(fault.HolderLost, "find", s.Place.Checkpoint+" of "+job,
		"no driver that answers has it whole: %s", strings.Join(why, "; "))
}

// goesOnFrom reports whether a job's directory has a checkpoint to go on from, whole, with the event log up to it. The
// job's process takes the newest by its name, so that others that are newer are removed: they are damaged, or of a
// process before. Where there is none nothing is removed: what is whole of it may go with what another driver has.
func goesOnFrom(dir string, committed Place) bool {
	name := newestToGoOn(dir, dir, committed)
	return name != "" && dropNewer(dir, name) == nil
}

// newestToGoOn returns the newest checkpoint in one directory that a job may go on from with the event log of another;
// empty is none.
func newestToGoOn(dir, logDir string, committed Place) string {
	for _, name := range slices.Backward(checkpointsIn(dir)) {
		at, whole := wholeCheckpoint(filepath.Join(dir, checkpointsDir, name), filepath.Join(logDir, driver.EventsName))
		if whole && GoesOn(at, committed) {
			return name
		}
	}
	return ""
}

// dropNewer removes the checkpoints that are newer by their names than one.
func dropNewer(dir, than string) error {
	for _, name := range slices.Backward(checkpointsIn(dir)) {
		if name <= than {
			break
		}
		if err := disk.Remove(filepath.Join(dir, checkpointsDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// wholeCheckpoint returns how far a job had come by a checkpoint, and reports whether it is what was written, and an
// event log up to it.
func wholeCheckpoint(file, log string) (at Place, whole bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return at, false
	}
	text, whole := disk.Unseal(raw)
	var c struct {
		Life uint32         `json:"life"`
		Log  driver.LogMark `json:"log"`
	}
	if !whole || json.Unmarshal(text, &c) != nil {
		return at, false
	}
	at = Place{Process: c.Life, Checkpoint: filepath.Base(file)}
	if c.Log.Bytes == 0 {
		return at, true
	}
	sum, n, err := copies.SumOf(log, c.Log.Bytes)
	return at, err == nil && n == c.Log.Bytes && hex.EncodeToString(sum) == c.Log.SHA256
}

// holder is another driver that has checkpoints of a job, or err says why it is of no use.
type holder struct {
	Peer
	client wire.FilesClient
	files  []*wire.HadFile
	err    error
}

// holders asks all other drivers at once, and yields them as they answer: one that is cut off holds nothing up.
func (d *Daemon) holders(ctx context.Context, job string) iter.Seq[holder] {
	return func(yield func(holder) bool) {
		ask, cancel := context.WithTimeout(ctx, gatherWait)
		defer cancel()
		others := d.others()
		answers := make(chan holder, len(others))
		for _, p := range others {
			go func() { answers <- d.holds(ask, p, job) }()
		}
		for range others {
			if !yield(<-answers) {
				return
			}
		}
	}
}

func (d *Daemon) holds(ctx context.Context, p Peer, job string) holder {
	h := holder{Peer: p}
	if h.client, h.err = d.copier.client(p.Address); h.err != nil {
		return h
	}
	reply, err := h.client.Have(ctx, &wire.HaveRequest{Dir: jobDir(job)})
	if h.err = err; err != nil {
		return h
	}
	h.files = reply.Files
	at := slices.IndexFunc(h.files, func(f *wire.HadFile) bool {
		return path.Base(path.Dir(f.Path)) == checkpointsDir
	})
	if at < 0 {
		h.err = errors.New("it does not have it")
	}
	return h
}

// arrivals is the directory in which files of other drivers arrive, by driver.
const arrivals = "arriving"

// bringJob brings a job's files from another driver, beside those that are here, and puts in place what makes a whole
// checkpoint with its log: damaged files of the other's do not replace what is whole here.
func (d *Daemon) bringJob(ctx context.Context, from holder, job string, committed Place) error {
	root := filepath.Join(d.cfg.DataDir, arrivals, from.ID)
	defer disk.RemoveAll(root)
	here, there := filepath.Join(d.cfg.DataDir, jobDir(job)), filepath.Join(root, jobDir(job))
	for _, f := range from.files {
		if strings.HasSuffix(f.Path, ".part") {
			continue
		}
		if err := copies.Bring(ctx, from.client, root, f.Path); err != nil {
			return err
		}
	}
	return takeWhole(here, there, committed)
}

// takeWhole puts in place what makes a whole checkpoint with its log, of what is here and what has arrived.
func takeWhole(here, there string, committed Place) error {
	for _, log := range []string{there, here} {
		for _, at := range []string{there, here} {
			if name := newestToGoOn(at, log, committed); name != "" {
				return errors.Join(putInPlace(there, here, name, at == there, log == there), dropNewer(here, name))
			}
		}
	}
	return errors.New("its copy is not whole")
}

// putInPlace puts a checkpoint and the log up to it in their places, where they have arrived, and other files that are
// not there yet.
func putInPlace(from, to, checkpoint string, its, log bool) error {
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		place := filepath.Join(to, rel)
		wanted := its && rel == filepath.Join(checkpointsDir, checkpoint) || log && rel == driver.EventsName
		if !wanted && hasFile(place) {
			return nil
		}
		if err := disk.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			return err
		}
		return errors.Join(disk.Rename(file, place), disk.SyncDir(filepath.Dir(place)))
	})
}

// gatherProgram brings a program that is not here, or is damaged.
func (d *Daemon) gatherProgram(ctx context.Context, digest string) error {
	if digest == "" {
		return nil
	}
	return d.bringWhole(ctx, path.Join("programs", digest), digest, 0o700)
}

// bringWhole brings a file of a digest from another driver, unless it is here and whole.
func (r *Replica) bringWhole(ctx context.Context, file, digest string, mode os.FileMode) error {
	here := filepath.Join(r.cfg.DataDir, file)
	is := func() bool {
		sum, _, err := copies.SumOf(here, -1)
		return err == nil && hex.EncodeToString(sum) == digest
	}
	if is() {
		return nil
	}
	why := []string{}
	for _, p := range r.others() {
		if err := r.bringFrom(ctx, p, file); err != nil {
			why = append(why, fmt.Sprintf("driver %s: %s", p.ID, status.Convert(err).Message()))
		} else if is() {
			return os.Chmod(here, mode)
		} else {
			why = append(why, fmt.Sprintf("driver %s: its copy is another", p.ID))
		}
	}
	return fault.Newf(fault.HolderLost, "find", file, "no driver that answers has it whole: %s",
		strings.Join(why, "; "))
}

// bringFrom brings a file from another driver.
func (r *Replica) bringFrom(ctx context.Context, p Peer, file string) error {
	conn, err := wire.DialFiles(p.Address, r.admission.self, r.founding)
	if err != nil {
		return err
	}
	defer conn.Close()
	return copies.Bring(ctx, wire.NewFilesClient(conn), r.cfg.DataDir, file)
}
