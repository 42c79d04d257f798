package daemon

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/copies"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// serveFiles serves the copies that this driver keeps, to other drivers only.
func (r *Replica) serveFiles() *grpc.Server {
	admit := func(ctx context.Context, _ string) error {
		c := wire.CallerOf(ctx)
		if c.Peer.Name.Role != trust.Driver {
			return status.Error(codes.PermissionDenied, "the caller is no driver of this cluster")
		}
		return r.admission.inForce(c.Peer)
	}
	s := r.admission.self.NewServer(wire.Gate{Knows: r.admission.knows, Admit: admit, Refused: r.refusedConnection})
	wire.RegisterFilesServer(s, sharing{&copies.Store{Root: r.cfg.DataDir, Within: []string{"jobs", "programs"},
		Skip: []string{"cache"}, Takes: func(led uint64) bool {
			return TakesCopies(r.journal.Term(), led)
		}}, r})
	r.tasks.Go(func() { _ = s.Serve(r.door.Room(wire.OfFiles(r.founding))) })
	return s
}

// copier has files copied to the other drivers, while this one leads.
type copier struct {
	d     *Daemon
	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by address
	dirs  map[string]*copied          // by directory under the data directory
}

// copied is a directory of which the others are to have copies.
type copied struct {
	mu      sync.Mutex
	asked   uint64 // how often it was to be copied
	whole   bool   // with what the job has made
	anew    int    // how often files were changed otherwise than by growing
	by      map[string]*copyOf
	changed chan struct{} // closed when a peer has come further, or failed
}

// copyOf is another driver's copy.
type copyOf struct {
	has    uint64 // as of which request
	busy   bool
	failed error // the last time
	peer   *copies.Peer
	anew   int
}

func newCopier(d *Daemon) *copier {
	return &copier{d: d, conns: map[string]*grpc.ClientConn{}, dirs: map[string]*copied{}}
}

// close ends the connections.
func (c *copier) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

// client returns the store of another driver.
func (c *copier) client(addr string) (wire.FilesClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.conns[addr]
	if conn == nil {
		var err error
		if conn, err = wire.DialFiles(addr, c.d.admission.self, c.d.founding); err != nil {
			return nil, err
		}
		c.conns[addr] = conn
	}
	return wire.NewFilesClient(conn), nil
}

func (c *copier) dir(name string) *copied {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[name]
	if d == nil {
		d = &copied{by: map[string]*copyOf{}, changed: make(chan struct{})}
		c.dirs[name] = d
	}
	return d
}

// forget drops what is known of the copies of a directory that is gone.
func (c *copier) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.dirs, name)
}

// others returns the other drivers.
func (r *Replica) others() []Peer {
	return slices.DeleteFunc(r.journal.Peers(), func(p Peer) bool { return p.ID == r.self.ID })
}

// copyTo returns once one driver has a directory's files as they are now.
func (c *copier) copyTo(ctx context.Context, name string, whole bool, p Peer) error {
	at := c.dir(name)
	at.mu.Lock()
	at.asked++
	at.anew++ // what it had may be gone
	want := at.asked
	at.whole = at.whole || whole
	at.mu.Unlock()
	c.work(at, name, p)
	for {
		at.mu.Lock()
		o, changed := at.by[p.ID], at.changed
		has, failed := o != nil && o.has >= want, error(nil)
		if o != nil {
			failed = o.failed
		}
		at.mu.Unlock()
		switch {
		case has:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// copyWait is how long a copy is waited for that fails again and again.
const copyWait = 10 * time.Second

// copy returns once a majority of the drivers has a directory's files as they are now.
func (c *copier) copy(ctx context.Context, name string, whole bool) error {
	others := c.d.others()
	if len(others) == 0 {
		return nil
	}
	at := c.dir(name)
	at.mu.Lock()
	at.asked++
	want := at.asked
	at.whole = at.whole || whole
	at.mu.Unlock()
	for _, p := range others {
		c.work(at, name, p)
	}
	return at.await(ctx, want, others)
}

// await waits until a majority has what was asked for; others are the drivers beside this one.
func (at *copied) await(ctx context.Context, want uint64, others []Peer) error {
	late := time.NewTimer(copyWait)
	defer late.Stop()
	over := false
	for {
		have, failed := 0, []string{}
		at.mu.Lock()
		for _, p := range others {
			if c := at.by[p.ID]; c == nil {
			} else if c.has >= want {
				have++
			} else if c.failed != nil {
				failed = append(failed, fmt.Sprintf("driver %s: %s", p.ID, status.Convert(c.failed).Message()))
			}
		}
		changed := at.changed
		at.mu.Unlock()
		switch {
		case CopiesSuffice(have, len(others)):
			return nil
		case over && have+len(failed) == len(others):
			slices.Sort(failed)
			return fault.Newf(fault.NoResources, "copy", "the job's files to other drivers", "%s",
				strings.Join(failed, "; "))
		}
		select {
		case <-changed:
		case <-late.C:
			over = true
		case <-ctx.Done():
			return fault.New(fault.Cancelled, "copy", "the job's files to other drivers", ctx.Err())
		}
	}
}

// work has a driver's copy come to be what was asked for, if that is not under way.
func (c *copier) work(at *copied, name string, p Peer) {
	at.mu.Lock()
	defer at.mu.Unlock()
	o := at.by[p.ID]
	if o == nil {
		o = &copyOf{}
		at.by[p.ID] = o
	}
	if o.busy || c.d.ctx.Err() != nil {
		return
	}
	o.busy = true
	c.d.wg.Go(func() { c.keepUp(at, o, name, p) })
}

// copyAgain is the time between two attempts at a copy.
const copyAgain = 300 * time.Millisecond

// keepUp copies until a driver has what was asked for.
func (c *copier) keepUp(at *copied, o *copyOf, name string, p Peer) {
	for {
		at.mu.Lock()
		want, whole, changes := at.asked, at.whole, at.anew
		if o.has >= want || c.d.ctx.Err() != nil {
			o.busy = false
			at.mu.Unlock()
			return
		}
		at.mu.Unlock()
		client, err := c.client(p.Address)
		if err == nil && (o.peer == nil || o.anew != changes) {
			o.peer, o.anew = copies.NewPeer(client, c.d.cfg.DataDir, name, c.d.term), changes
		}
		if err == nil {
			err = o.peer.Sync(c.d.ctx, filesOf(c.d.cfg.DataDir, name, whole), dropped)
		}
		at.mu.Lock()
		if o.failed = err; err == nil {
			o.has = want
		}
		close(at.changed)
		at.changed = make(chan struct{})
		at.mu.Unlock()
		if err != nil {
			select {
			case <-time.After(copyAgain):
			case <-c.d.ctx.Done():
			}
		}
	}
}

// checkpointsDir is where a job's process keeps its checkpoints, in its directory.
const checkpointsDir = "checkpoints"

// dropped reports whether a copy is of no use once the file is gone here.
func dropped(file string) bool { return path.Base(path.Dir(file)) == checkpointsDir }

// filesOf returns the files of a directory that are copied, with what a job has made where they are to be whole: a
// checkpoint after the log up to it.
func filesOf(root, name string, whole bool) (out []copies.File) {
	var last []copies.File
	for _, f := range checkpointsIn(filepath.Join(root, name)) {
		last = append(last, copies.File{Path: path.Join(name, checkpointsDir, f)})
	}
	if first, _, deeper := strings.Cut(name, "/"); !deeper || first != "jobs" { // a program
		return []copies.File{{Path: name}}
	}
	entries, _ := os.ReadDir(filepath.Join(root, name)) // without it there are none
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), ".part") && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, copies.File{Path: path.Join(name, e.Name()), Grows: e.Name() != resultName})
		}
	}
	if whole {
		_ = filepath.WalkDir(filepath.Join(root, name, "out"), func(file string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				rel, _ := filepath.Rel(root, file)
				out = append(out, copies.File{Path: rel})
			}
			return nil // what is gone is not copied
		})
	}
	return append(out, last...)
}

// checkpointsIn returns the names of the checkpoints in a job's directory, the oldest first.
func checkpointsIn(dir string) (out []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, checkpointsDir)) // before the first there are none
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "checkpoint-") && !strings.HasSuffix(e.Name(), ".part") {
			out = append(out, e.Name())
		}
	}
	return out
}

// jobDir returns a job's directory under the data directory.
func jobDir(job string) string { return path.Join("jobs", job) }

// beforeJournal has what an entry is about on the disks of a majority, before the entry is: a step counts only where
// it can be gone on from.
func (d *Daemon) beforeJournal(ctx context.Context, c *LifeWrite) error {
	if len(d.others()) == 0 {
		return nil
	}
	for n, r := range c.Records {
		switch {
		case r.Kind == JobSubmitted && r.Spec.Program != "":
			if err := d.copier.copy(ctx, path.Join("programs", r.Spec.Program), false); err != nil {
				return err
			}
		case r.Kind == StepCommitted:
			all := checkpointsIn(filepath.Join(d.cfg.DataDir, jobDir(c.Job)))
			if err := d.copier.copy(ctx, jobDir(c.Job), false); err != nil {
				return err
			}
			if len(all) > 0 {
				c.Records[n].Place = &Place{Process: d.processOf(c.Job), Checkpoint: all[len(all)-1]}
			}
		case r.Kind == JobEnded && c.Result:
			made := slices.DeleteFunc(slices.Clone(r.Files), func(f MadeFile) bool { return ofDriver(f.Path) })
			c.Records[n].Files = append(made, printedFiles(filepath.Join(d.cfg.DataDir, jobDir(c.Job)))...)
			fallthrough
		case r.Kind == JobEnded:
			if err := d.copier.copy(ctx, jobDir(c.Job), true); err != nil {
				return err
			}
		}
	}
	return nil
}

// processOf returns the number of a job's present process.
func (d *Daemon) processOf(job string) uint32 {
	w, err := d.jobs.find(job)
	if err != nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present
}

// filesChanged notes that a process of a job may change its files otherwise than by growing.
func (c *copier) filesChanged(job string) {
	at := c.dir(jobDir(job))
	at.mu.Lock()
	defer at.mu.Unlock()
	at.anew++
}
