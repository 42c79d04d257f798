package daemon

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/copies"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/arrowstream"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/saved"
)

// What Arrow clients may read: which jobs and executors there are, who may read; datasets that were saved, and the
// events and output files of jobs, who may submit, or change the job.

// flightDoor returns the door for Arrow clients.
func (d *Daemon) flightDoor() *flight.Door {
	return &flight.Door{Catalog: catalog{d}, Key: func() []byte { return d.flightKey }, Ends: d.endsOf,
		Who: func(ctx context.Context) (string, error) {
			c := wire.CallerOf(ctx)
			if err := d.allowed(c, flight.DoGet); err != nil || c.Local {
				return flight.ThisUser, err
			}
			return c.Peer.Name.String(), nil
		}}
}

// locationIn returns where an executor serves datasets, if it is a location that clients can dial.
func locationIn(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > 512 || u.Scheme != "grpc+unix" && (u.Scheme != "grpc+tls" || u.Port() == "") {
		return ""
	}
	return text
}

// endsOf returns where a file is read: at the executor that is its own among those that serve datasets, for as long as
// these are the same, or at this driver.
func (d *Daemon) endsOf(f files.File) (ends flight.Ends) {
	best, at := uint64(0), ""
	for _, m := range d.members.all() {
		if m.flight == "" || m.unfit() != "" {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(f.Path + "\x00" + m.name)) // which never fails
		if s := sum.Sum64(); at == "" || s > best {
			best, at = s, m.flight
			if d.self.Address != "" {
				ends.Name = executorHost(m.name, d.admission.authorities.Cluster())
			}
		}
	}
	if at != "" { // else where it was asked for
		ends.At = []string{at, d.flightLocation()}
	}
	return ends
}

// flightLocation returns where clients reach this driver, as their locations are written.
func (d *Daemon) flightLocation() string {
	if path, ok := wire.SocketPath(d.Addr()); ok {
		return "grpc+unix://" + path
	}
	return "grpc+tls://" + cmp.Or(d.self.Address, d.Addr())
}

// catalog is what a driver lets Arrow clients read.
type catalog struct{ d *Daemon }

// Paths of what there is beside datasets.
const (
	jobsPath      = "jobs"
	executorsPath = "executors"
	eventsPath    = "events" // of a job
	filesPath     = "files"  // of a job, before the path of one
)

// List yields what a caller may read below a path.
func (c catalog) List(ctx context.Context, below []string, yield func(flight.Flight) error) error {
	show := func(f flight.Flight) error {
		if len(f.Path) < len(below) || !slices.Equal(f.Path[:len(below)], below) {
			return nil
		}
		return yield(f)
	}
	err := cmp.Or(show(c.jobs()), show(c.executors()))
	if err != nil || c.maySubmit(ctx) != nil {
		return err
	}
	for _, w := range c.d.jobs.shown() {
		if err := c.listJob(ctx, w, show); err != nil {
			return err
		}
	}
	if len(below) > 0 && below[0] != flight.Datasets {
		return nil
	}
	for _, dir := range c.datasets() {
		if f, err := c.dataset(dir, ""); err == nil { // it may be gone, or damaged, which who reads it finds out
			if err := show(f); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// listJob yields what a job has, to who may change it.
func (c catalog) listJob(ctx context.Context, w *jobHandle, show func(flight.Flight) error) error {
	if c.d.mayChange(ctx, w) != nil {
		return nil
	}
	if err := show(c.events(w)); err != nil {
		return err
	}
	for _, f := range w.made() {
		if f.Path == driver.EventsName || ofDriver(f.Path) {
			continue
		}
		if err := show(c.file(w, f)); err != nil {
			return err
		}
	}
	return nil
}

// maySubmit returns why a caller may not read rows.
func (c catalog) maySubmit(ctx context.Context) error {
	who := c.d.admission.who(wire.CallerOf(ctx))
	if !slices.Contains(submitters, who.Role) {
		return status.Errorf(codes.PermissionDenied, "the role %s may read which jobs and executors there are, not "+
			"rows",
			who.Role)
	}
	return nil
}

// Find returns what a path names.
func (c catalog) Find(ctx context.Context, path []string) (flight.Flight, error) {
	switch {
	case slices.Equal(path, []string{jobsPath}):
		return c.jobs(), nil
	case slices.Equal(path, []string{executorsPath}):
		return c.executors(), nil
	}
	if err := c.maySubmit(ctx); err != nil {
		return flight.Flight{}, err
	}
	switch {
	case path[0] == flight.Datasets && (len(path) == 2 || len(path) == 3):
		return c.dataset(path[1], arrowstream.Format(strings.Join(path[2:], "")))
	case path[0] == jobsPath && len(path) > 2:
		w, err := c.d.jobs.find(path[1])
		if err == nil {
			err = c.d.mayChange(ctx, w)
		}
		if err != nil {
			return flight.Flight{}, err
		}
		return c.ofJob(w, path[2:])
	}
	return flight.Flight{}, notThere(path)
}

func notThere(path []string) error {
	return status.Errorf(codes.NotFound, "there is no %s: there are jobs, executors, jobs/ID/events, "+
		"jobs/ID/files/PATH and datasets/DIR, of a directory that was saved", strings.Join(path, "/"))
}

// ofJob returns what a path below a job names.
func (c catalog) ofJob(w *jobHandle, path []string) (flight.Flight, error) {
	if len(path) == 1 && path[0] == eventsPath {
		return c.events(w), nil
	}
	name := strings.Join(path[1:], "/")
	if path[0] == filesPath {
		for _, f := range w.made() {
			if f.Path == name && f.Path != driver.EventsName && !ofDriver(f.Path) {
				return c.file(w, f), nil
			}
		}
	}
	return flight.Flight{}, notThere(append([]string{jobsPath, w.info.Id}, path...))
}

// file returns an output file of a job as a table. It is as the job has made it, or refused.
func (c catalog) file(w *jobHandle, f MadeFile) flight.Flight {
	path := append([]string{jobsPath, w.info.Id, filesPath}, strings.Split(f.Path, "/")...)
	return flight.Flight{Path: path, Rows: -1, Bytes: f.Size,
		Make: func(ctx context.Context, moved func(), yield func(arrowstream.Message) error) error {
			done, err := w.read()
			if err != nil {
				return err
			}
			defer done()
			at := filepath.Join(w.dir, f.Path)
			if arrowstream.Slow(moved, func() { err = w.whole(ctx, f) }); err != nil {
				return err
			}
			found, err := files.Resolve(at)
			if err != nil {
				return err
			}
			as, err := arrowstream.FormatOf(found[0])
			if err != nil {
				return err
			}
			return arrowstream.Read(ctx, found[0], as, yield)
		}}
}

// whole returns why an output file is not what the job has made, once it was brought from another driver if need be.
func (w *jobHandle) whole(ctx context.Context, f MadeFile) error {
	if err := w.heal(ctx, f.Path, w.made()); err != nil {
		return err
	}
	sum, _, err := copies.SumOf(filepath.Join(w.dir, f.Path), -1)
	if err == nil && plan.DigestFromBytes(sum) != f.SHA256 {
		err = fault.Newf(fault.Corrupt, "read", f.Path, "it is not what the job has made: it has changed since the "+
			"job ended")
	}
	return err
}

// datasets returns where datasets lie that jobs have saved, and those that clients have.
func (c catalog) datasets() (dirs []string) {
	for _, w := range c.d.jobs.shown() {
		w.mu.Lock()
		for _, s := range w.saved {
			dirs = append(dirs, s.Dir)
		}
		w.mu.Unlock()
	}
	dirs = append(dirs, c.named()...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// named returns the names of the datasets that clients have saved.
func (c catalog) named() (names []string) {
	root := c.d.cfg.Datasets
	if !objects.Is(root) {
		entries, _ := os.ReadDir(root) // there may be none yet
		for _, e := range entries {
			if e.IsDir() && validDataset(e.Name()) {
				names = append(names, e.Name())
			}
		}
		return names
	}
	_ = objects.List(c.d.ctx, objects.Join(root)+"/", func(i objects.Info) bool {
		rel := strings.TrimPrefix(i.Name, objects.Join(root)+"/")
		if dir, ok := strings.CutSuffix(rel, "/"+files.MarkerName); ok && validDataset(dir) {
			names = append(names, dir)
		}
		return c.d.ctx.Err() == nil
	}) // of a store that does not answer nothing is listed
	return names
}

// validDataset reports whether a text is a name of datasets that clients save: one directory.
func validDataset(name string) bool { return validName(name) && name[0] != '_' && name[0] != '-' }

// placeOf returns where a dataset lies: a name is below the directory of those that clients save.
func (c catalog) placeOf(name string) (string, error) {
	switch {
	case objects.Is(name) || filepath.IsAbs(name):
		return name, nil
	case !validDataset(name):
		return "", status.Errorf(codes.InvalidArgument, "%.100q is neither the path of a directory nor a name: "+
			"letters, digits, '.', '_' and '-', at most 128, a letter or digit first", name)
	case c.d.cfg.Datasets == "":
		return "", status.Errorf(codes.FailedPrecondition, "the driver has no place for datasets by name, such as %q: "+
			"start it with --datasets, a directory or a name of objects that all executors and drivers see", name)
	}
	return files.Join(c.d.cfg.Datasets, name), nil
}

// dataset returns a dataset that was saved.
func (c catalog) dataset(name string, as arrowstream.Format) (flight.Flight, error) {
	if as != "" && as != arrowstream.CSV && as != arrowstream.Text {
		return flight.Flight{}, status.Errorf(codes.InvalidArgument, "the format %q is neither csv nor text: the "+
			"others are found by looking", as)
	}
	dir, err := c.placeOf(name)
	if err != nil {
		return flight.Flight{}, err
	}
	m, err := files.ReadMarker(dir)
	if err == nil && m == nil {
		err = status.Errorf(codes.NotFound, "%s is no dataset that was saved: it has no %s of this engine's", dir,
			files.MarkerName)
	}
	if err != nil {
		return flight.Flight{}, err
	}
	f := flight.Flight{Path: []string{flight.Datasets, name}, Rows: m.Rows, As: as}
	if as != "" {
		f.Path = append(f.Path, string(as))
	}
	if f.Files, err = files.Resolve(dir); errors.Is(err, fs.ErrNotExist) && len(m.Files) == 0 {
		err = nil
	}
	f.Bytes = files.TotalSize(f.Files)
	return f, err
}

// Headers of a save: whether it may replace the dataset that is there, and how many rows are to come. A client that
// fails in the middle may end its stream as if it had sent all.
const (
	overwriteHeader = "volley-overwrite"
	rowsHeader      = "volley-rows"
)

// saving are the datasets that clients save, each by one at a time.
type saving struct {
	mu sync.Mutex
	at map[string]chan struct{} // by place, until it is over
}

// saveWait is how long a save waits for another of the same dataset, as that of a client that is gone ends.
const saveWait = 10 * time.Second

// take waits until no other save goes on in a place.
func (s *saving) take(ctx context.Context, dir string) (release func(), err error) {
	late := time.NewTimer(saveWait)
	defer late.Stop()
	for {
		s.mu.Lock()
		other, busy := s.at[dir]
		if !busy {
			own := make(chan struct{})
			if s.at == nil {
				s.at = map[string]chan struct{}{}
			}
			s.at[dir] = own
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.at, dir)
				close(own)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-late.C:
			return nil, status.Errorf(codes.Aborted, "another client saves %s: try again, or choose another name", dir)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// announced returns how many rows a caller has said that it sends; −1 where it has not.
func announced(md metadata.MD) (int64, error) {
	text := strings.Join(md.Get(rowsHeader), "")
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %q is no number of rows", rowsHeader, text)
	}
	return n, nil
}

// Save saves a dataset.
func (c catalog) Save(ctx context.Context, path []string, next func() (arrowstream.Message, error),
	moved func()) (rows int64, err error) {
	subject := strings.Join(path, "/")
	defer func() { c.d.did(ctx, shortMethod(flight.DoPut), subject, err) }()
	if err := c.d.allowed(wire.CallerOf(ctx), flight.DoPut); err != nil {
		return 0, err
	}
	if len(path) != 2 || path[0] != flight.Datasets {
		return 0, status.Error(codes.InvalidArgument, "what is saved is a dataset: its path is datasets, and a name")
	}
	if objects.Is(path[1]) || filepath.IsAbs(path[1]) {
		return 0, status.Errorf(codes.InvalidArgument, "%q is where a dataset lies: give a name, below where the "+
			"driver keeps datasets (--datasets)", path[1])
	}
	dir, err := c.placeOf(path[1])
	if err != nil {
		return 0, err
	}
	md, _ := metadata.FromIncomingContext(ctx)
	o := saved.Options{Overwrite: strings.Join(md.Get(overwriteHeader), "") == "true"}
	rowsToCome, err := announced(md)
	if err != nil {
		return 0, err
	}
	release, err := c.d.saving.take(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer release()
	if m, err := files.ReadMarker(dir); err == nil && m != nil && !o.Overwrite {
		return 0, status.Errorf(codes.AlreadyExists, "the dataset %s is there: choose another name, or send the "+
			"header %s: true to replace it", path[1], overwriteHeader)
	}
	return arrowstream.Save(ctx, dir, o, rowsToCome, next, moved)
}
