package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/volley-engine/volley/internal/console"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/programs"
	"github.com/volley-engine/volley/internal/traces"
	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/web"
	"github.com/volley-engine/volley/internal/wire"
)

// Replica is a driver: one of one, three or five. It keeps the journal with the others, and the files of jobs; while it
// leads, it is a Daemon, too.
type Replica struct {
	cfg       Config
	self      Peer // over a network
	founding  string
	runID     string      // of this process
	opened    atomic.Bool // the journal is
	listed    []Peer      // as the file of drivers has them; rule's
	looks     int         // so far; rule's
	admission *admission
	audit     *auditLog
	log       hclog.Logger
	door      *wire.Door
	web       *web.Server // nil where there is none
	webAddr   string
	sessions  *web.Sessions // of browsers
	console   *console.Console
	metrics   *metrics
	traces    *traces.Tracer
	journal   *Raft
	programs  *programs.Store
	groups    *memory.Groups // in which jobs' processes are limited; nil where the system has delegated none
	files     *grpc.Server   // copies, for other drivers; nil where there can be none
	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup

	present atomic.Pointer[Daemon] // while this driver leads
	led     chan error             // whether it could, the first time
	outside atomic.Pointer[string] // why it is not one of the cluster's drivers; nil where it is
	unable  atomic.Pointer[string] // why it could not lead when it was elected last; nil where it could, or never was
	failed  int                    // how often in a row; rule's
	ruled   chan struct{}          // no more terms begin
}

// Start opens a driver's data directory and listens. A driver that is alone leads once Start returns; the drivers of a
// cluster that is new wait for each other, as long as the context lasts.
func Start(ctx context.Context, cfg Config) (*Replica, error) {
	r, err := newReplica(cfg)
	if err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.shut())
	}
	if !r.isAlone() {
		return r, nil
	}
	select {
	case err = <-r.led:
	case <-time.After(raftWait):
		err = fault.Newf(fault.Timeout, "open the journal in", r.cfg.DataDir, "no leader was elected")
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// newReplica checks a configuration, and opens certificates and the address.
func newReplica(cfg Config) (*Replica, error) {
	cfg = cfg.EnsureDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fault.New(fault.Internal, "find", "this executable", err)
		}
		cfg.Program = self
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return nil, fault.New(fault.NoResources, "open the data directory", cfg.DataDir, err)
	}
	cfg.DataDir = dir
	if err := os.MkdirAll(filepath.Join(dir, "jobs"), 0o700); err != nil {
		return nil, fault.New(fault.NoResources, "open the data directory", cfg.DataDir, err)
	}
	if err := cfg.whereInit(dir); err != nil {
		return nil, err
	}
	cfg.whereDatasets()
	r := &Replica{cfg: cfg, admission: &admission{}, audit: newAuditLog(dir, cfg.Logger), log: cfg.Logger,
		led: make(chan error, 1), ruled: make(chan struct{}), groups: memory.Divide(cfg.Logger)}
	if err := r.admission.openTrust(dir, cfg.Listen); err != nil {
		return nil, err
	}
	l, err := wire.Listen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	r.founding, r.runID = foundingOf(dir), trust.NewSecret()[:16]
	r.door = r.admission.self.NewDoor(l, wire.Gate{Knows: r.admission.knows, Refused: r.refusedConnection},
		r.founding)
	if r.self, err = r.who(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if cfg.Traces != "" {
		if r.traces, err = traces.Open(cfg.Traces, "driver/"+cmp.Or(r.self.ID, "1"), cfg.Logger); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	r.metrics = newMetrics(present{r})
	r.audit.onRefused = r.metrics.refused.Inc
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// open opens the journal, and begins to serve.
func (r *Replica) open(ctx context.Context) (err error) {
	dir := r.cfg.DataDir
	if r.programs, err = programs.Open(filepath.Join(dir, "programs")); err != nil {
		return err
	}
	r.programs.InUse = func(digest string) bool {
		d := r.present.Load()
		return d == nil || d.jobs.uses(digest)
	}
	r.admission.serve(r)
	if r.self.Address != "" {
		r.tasks.Go(func() { wire.ServeStanding(r.door.Room(wire.WhoLeads), r.standing) })
	}
	r.tasks.Go(r.door.Serve)
	anew, err := r.openJournal(ctx)
	if err != nil {
		return err
	}
	if err := r.serveHTTP(); err != nil {
		return err
	}
	r.opened.Store(true) // from here on who reads what is above need not wait
	if anew || r.moved() {
		r.tasks.Go(func() { r.enrol(anew) })
	}
	r.tasks.Go(r.rule)
	r.tasks.Go(r.observe)
	r.tasks.Go(r.keepRenewed)
	if r.self.Address != "" {
		r.files = r.serveFiles()
	}
	return nil
}

// rule leads whenever the journal says that this driver does, and until it no longer does.
func (r *Replica) rule() {
	defer close(r.ruled)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case leads := <-r.journal.raft.LeaderCh():
			if r.hasPeers() {
				r.depose()
			}
			if leads && r.present.Load() == nil { // one that is alone says by itself that its disk takes nothing
				r.ascend()
			}
		case <-r.journal.again:
			if r.journal.Leads() && r.present.Load() == nil {
				r.ascend()
			}
		case <-look.C:
			r.look()
		case <-r.ctx.Done():
			return
		}
	}
}

// lookEvery is the time between two looks at what raft does not say.
const lookEvery = time.Second

// look ends what a driver does that leads where another does, as it finds out late that was alone, and keeps the list
// of drivers by which this one finds the others when it is started again.
func (r *Replica) look() {
	if d := r.present.Load(); d != nil && !r.journal.Leads() && (r.hasPeers() || r.journal.Leader().ID != "") {
		r.depose()
	}
	r.keepDrivers()
	if r.looks++; r.looks%outsideEvery == 0 {
		r.lookOutside()
	}
}

// outsideEvery is how many looks there are between two at whether this driver is outside of the cluster.
const outsideEvery = 5

// ascend begins to lead.
func (r *Replica) ascend() {
	term := r.journal.Term()
	err := r.journal.caughtUp()
	if err == nil && r.hasPeers() {
		err = r.awaitLeases(term)
	}
	if err == nil {
		_, err = r.lead(term)
	}
	select {
	case r.led <- err:
	default:
	}
	if err != nil {
		if r.ctx.Err() == nil && r.journal.Leads() && r.journal.Term() == term {
			r.log.Error("this driver cannot lead", "term", term, "error", err)
			r.cannotLead(err)
		}
		return
	}
	r.failed = 0
	r.unable.Store(nil)
	r.log.Info("this driver leads", "term", term)
}

// cannotLead hands over to another driver, the later the more often this one was elected and could not lead: others may
// be no better, and would hand over to this one again.
func (r *Replica) cannotLead(err error) {
	why := err.Error()
	r.unable.Store(&why)
	wait := ascendWait(r.failed)
	r.failed++
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			return
		}
	}
	r.journal.abdicate()
}

// awaitLeases waits until the processes of the driver that led before are over.
func (r *Replica) awaitLeases(term uint64) error {
	over := time.NewTimer(LeasesOver())
	defer over.Stop()
	look := time.NewTicker(leaseBeat / 4)
	defer look.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-look.C:
			if !r.journal.Leads() || r.journal.Term() != term {
				return errors.New("another driver has been elected")
			}
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
}

// depose ends what this driver does while it leads.
func (r *Replica) depose() {
	if d := r.present.Swap(nil); d != nil {
		r.log.Warn("this driver does not lead any more", "term", d.term)
		d.end(false)
	}
}

// Close stops jobs' processes, which continue when a driver leads again, shuts executors down where this is the only
// driver, and ends.
func (r *Replica) Close() error {
	last := !r.hasPeers()
	r.cancel()
	<-r.ruled
	if d := r.present.Swap(nil); d != nil {
		d.end(last)
	}
	if !last {
		r.journal.handOver()
	}
	return r.shut()
}

// shut closes what newReplica and open have opened.
func (r *Replica) shut() error {
	r.cancel()
	err := r.door.Close()
	if r.files != nil {
		r.files.Stop()
	}
	if r.web != nil {
		err = errors.Join(err, r.web.Close())
	}
	r.tasks.Wait()
	_ = r.traces.Close() // what the collector has not taken is lost
	if r.journal != nil {
		err = errors.Join(err, r.journal.Close())
	}
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
