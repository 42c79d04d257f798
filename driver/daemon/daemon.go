package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/programs"
	"github.com/volley-engine/volley/internal/wire"
)

// Config configures a driver daemon. The zero value of a field takes its
// default.
type Config struct {
	// Listen is unix:PATH, or HOST:PORT with the certificates of Init; default: as Init was told, or
	// wire.DefaultDriver.
	Listen string
	// Advertise is where the others reach it, over the network; default Listen.
	Advertise string
	HTTP      string // address of REST and metrics; empty serves none
	DataDir   string // jobs, journal and certificates
	Program   string // the executable that job processes run; default: this one
	// Suspicion is the silence after which an executor, a runner or a job's
	// process is taken for lost; default 2 s. Heartbeats come three times as
	// often.
	Suspicion time.Duration
	Drain     time.Duration // how long a shutdown waits for job processes and executors; default 5 s
	// Restarts is how often a job's process is restarted that ended without a report;
	// default DefaultRestarts.
	Restarts *uint32
	MaxJobs  *int  // how many jobs run at a time, the others wait; 0 is no limit; default DefaultMaxJobs
	Keep     *Keep // which of the jobs that have ended are kept; default DefaultKeep
	Logger   hclog.Logger
}

// EnsureDefaults fills in the fields left zero.
func (c Config) EnsureDefaults() Config {
	if c.Suspicion == 0 {
		c.Suspicion = 2 * time.Second
	}
	if c.Drain == 0 {
		c.Drain = 5 * time.Second
	}
	if c.Restarts == nil {
		most := uint32(DefaultRestarts)
		c.Restarts = &most
	}
	if c.MaxJobs == nil {
		most := DefaultMaxJobs
		c.MaxJobs = &most
	}
	if c.Keep == nil {
		c.Keep = &DefaultKeep
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// whereInit serves where volley init was told, if it made the data directory.
func (c *Config) whereInit(dir string) error {
	address, err := addressOf(dir)
	if err != nil {
		return err
	}
	if address != "" && (c.Listen == "" || samePort(c.Listen, address)) {
		c.Listen, c.Advertise = cmp.Or(c.Listen, address), cmp.Or(c.Advertise, address)
	}
	c.Listen = cmp.Or(c.Listen, wire.DefaultDriver())
	return nil
}

// samePort reports whether two addresses have one port: one may be how the other is reached.
func samePort(a, b string) bool {
	_, x, err := net.SplitHostPort(a)
	_, y, err2 := net.SplitHostPort(b)
	return err == nil && err2 == nil && x == y
}

// minSuspicion is the shortest silence that may be configured.
const minSuspicion = 30 * time.Millisecond

// validate refuses what cannot be.
func (c Config) validate() error {
	if c.Suspicion < minSuspicion {
		return fault.Newf(fault.Usage, "use", "--suspicion", "%v is less than %v", c.Suspicion, minSuspicion)
	}
	if *c.MaxJobs < 0 {
		return fault.Newf(fault.Usage, "use", "--max-jobs", "%d is negative", *c.MaxJobs)
	}
	if c.Drain < 0 {
		return fault.Newf(fault.Usage, "use", "--drain", "%v is negative", c.Drain)
	}
	return nil
}

// beat returns the time between two heartbeats.
func (c Config) beat() time.Duration { return c.Suspicion / wire.Missed }

// Daemon is a cluster's driver: it knows executors and jobs, starts a process
// for each job, and carries messages between the two.
type Daemon struct {
	wire.UnimplementedClusterServer
	wire.UnimplementedBlocksServer
	cfg         Config
	admission   *admission
	audit       *auditLog
	log         hclog.Logger
	listener    net.Listener
	server      *grpc.Server
	web         *http.Server // nil where there is none
	webAddr     string
	metrics     *metrics
	journal     *Raft
	programs    *programs.Store
	jobs        *jobTable
	members     *members
	handovers   handovers
	inspections inspections
	ctx         context.Context
	cancel      context.CancelFunc
	stopWatch   context.CancelFunc
	// renewAgain is when the driver tries again to renew its own certificate; watch's.
	renewAgain time.Time
	wg         sync.WaitGroup
}

// Start opens a driver's data directory and listens.
func Start(cfg Config) (*Daemon, error) {
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
	if err := journalOfJobs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "jobs"), 0o700); err != nil {
		return nil, fault.New(fault.NoResources, "open the data directory", cfg.DataDir, err)
	}
	if err := cfg.whereInit(dir); err != nil {
		return nil, err
	}
	admission := &admission{}
	if err := admission.openTrust(dir, cfg.Listen); err != nil {
		return nil, err
	}
	l, err := wire.Listen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	d := &Daemon{cfg: cfg, admission: admission, audit: newAuditLog(dir, cfg.Logger), log: cfg.Logger, listener: l,
		members: newMembers()}
	if admission.drivers, err = d.reachedAt(); err != nil {
		l.Close()
		return nil, err
	}
	d.metrics = newMetrics(present{d})
	d.audit.onRefused = d.metrics.refused.Inc
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if d.journal, err = OpenRaft(filepath.Join(dir, "journal"), cfg.Logger.Named("raft")); err != nil {
		l.Close()
		return nil, err
	}
	if d.programs, err = programs.Open(filepath.Join(dir, "programs")); err != nil {
		l.Close()
		return nil, errors.Join(err, d.journal.Close())
	}
	kept := d.journal.State()
	d.jobs = openJobs(d, kept)
	d.programs.InUse = d.jobs.uses
	admission.journal, admission.access, admission.job, admission.runs = d.journal, kept.Access, d.jobs.byToken,
		d.jobs.runs
	if err := admission.certificatesOfInit(d.ctx, dir); err != nil {
		l.Close()
		return nil, errors.Join(err, d.journal.Close())
	}
	gate := wire.Gate{Knows: admission.knows, Admit: d.admit, Refused: d.refusedConnection}
	d.server = admission.self.NewServer(gate, grpc.UnaryInterceptor(d.noted))
	wire.RegisterClusterServer(d.server, d)
	wire.RegisterBlocksServer(d.server, d)
	d.jobs.step(LifeEvent{Began: true}) // before any submission; until then callers wait
	d.wg.Go(func() { _ = d.server.Serve(l) })
	watched, stopWatch := context.WithCancel(context.Background()) // until executors have been notified
	d.stopWatch = stopWatch
	d.wg.Go(func() { d.watch(watched) })
	d.wg.Go(func() {
		if err := removeLeftOver(filepath.Join(dir, "jobs"), kept); err != nil {
			d.log.Error("cannot remove what jobs have left", "error", err)
		}
	})
	if err := d.serveHTTP(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// journalOfJobs refuses a data directory that has jobs and no journal of them: new jobs would
// get the directories of old ones, and the ends of those would be lost.
func journalOfJobs(dir string) error {
	jobs, _ := os.ReadDir(filepath.Join(dir, "jobs"))
	_, err := os.Stat(filepath.Join(dir, "journal"))
	if len(jobs) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.Newf(fault.Corrupt, "open the data directory", dir,
		"it has jobs (%s and %d more) and no journal of them", jobs[0].Name(), len(jobs)-1).
		WithHint("restore its journal directory, or move jobs away to begin anew")
}

// Addr returns the driver's address.
func (d *Daemon) Addr() string { return d.listener.Addr().String() }

// reachedAt returns where the others reach the driver.
func (d *Daemon) reachedAt() ([]string, error) {
	if at := d.cfg.Advertise; at != "" {
		host, port, err := net.SplitHostPort(at)
		if _, ours, e := net.SplitHostPort(d.Addr()); err == nil && e == nil && port == "0" {
			at = net.JoinHostPort(host, ours)
		}
		return []string{at}, wire.CheckAddress("advertise", at)
	}
	if host, _, err := net.SplitHostPort(d.Addr()); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			return nil, fault.Newf(fault.Usage, "listen on", d.cfg.Listen, "executors cannot be told where that is").
				WithHint("give --advertise HOST:PORT, as executors reach this driver")
		}
	}
	return []string{d.Addr()}, nil
}

// own returns where a process of this machine reaches the driver.
func (d *Daemon) own() string {
	host, port, err := net.SplitHostPort(d.Addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return d.Addr()
}

// host returns the name or address of this machine, as the others reach it; empty where no other machine does.
func (d *Daemon) host() string {
	host, _, _ := net.SplitHostPort(d.admission.drivers[0])
	return host
}

// watch treats executors and job processes without heartbeats as lost.
func (d *Daemon) watch(ctx context.Context) {
	detector := wire.NewFailureDetector(d.cfg.beat())
	ticker := time.NewTicker(detector.Tick())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			detector.Look(time.Now())
			for _, m := range d.members.silent(detector) {
				d.log.Warn("executor suspected", "executor", m.name, "silent for", detector.Silence())
				m.drop("it gave no heartbeat for " + detector.Silence().String())
			}
			d.jobs.killSilent(detector)
			d.dropRevoked()
			d.renewSelf()
		case <-ctx.Done():
			return
		}
	}
}

// Close stops jobs' processes, which continue when the driver is started again,
// shuts executors down, and ends.
func (d *Daemon) Close() error {
	until := time.Now().Add(d.cfg.Drain)
	d.jobs.close(time.Until(until))
	for _, m := range d.members.all() {
		_ = m.out.Put(goodbye)
	}
	d.members.waitGone(time.Until(until))
	d.stopWatch()
	d.cancel()
	d.server.Stop()
	if d.web != nil {
		_ = d.web.Close()
	}
	d.wg.Wait()
	return d.journal.Close()
}
