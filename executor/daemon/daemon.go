package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
	"github.com/volley-engine/volley/internal/programs"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/scheduler"
)

// Config configures an executor daemon. The zero value of a field takes its
// default.
type Config struct {
	Driver      string     // address; default wire.DefaultDriver
	Party       wire.Party // what this executor shows to the driver; over a socket nothing
	Name        string     // default: host and process
	DataDir     string
	Slots       int
	Labels      map[string]string
	Memory      string // soft limit of each runner, as runners' --memory
	MemoryBytes int64  // the same as a number
	Disk        string // budget of packs, as runners' --disk
	Pace        string // emulated speed of the slots; empty is none
	PaceRate    float64
	Program     string // the executable that runners run; default: this one
	// Host is where runners are reached, over the network; default: this machine's address towards the driver.
	Host string
	// HTTP is where health and metrics are served, over the network by TLS; empty is nowhere.
	HTTP string
	// Flight is where datasets are served to Arrow clients: unix:PATH, or HOST:PORT with a certificate; empty is
	// nowhere.
	Flight      string
	Unreachable bool          // other executors cannot reach this one: blocks go through the driver
	MaxWait     time.Duration // how long to redial a driver that cannot be reached; default 10 min
	Drain       time.Duration // how long a shutdown waits until jobs have moved off; default 5 s
	Ready       func(driver string)
	Logger      hclog.Logger
}

// EnsureDefaults fills in the fields left zero.
func (c Config) EnsureDefaults() Config {
	if c.Driver == "" {
		c.Driver = wire.DefaultDriver()
	}
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.MaxWait == 0 {
		c.MaxWait = 10 * time.Minute
	}
	if c.Drain == 0 {
		c.Drain = 5 * time.Second
	}
	if c.Ready == nil {
		c.Ready = func(string) {}
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// Daemon is an executor of a cluster: it keeps one connection to the driver,
// starts a runner for each job, and carries messages between the two.
type Daemon struct {
	cfg         Config
	log         hclog.Logger
	programs    *programs.Store
	incarnation string // distinguishes this process from another of its name
	term        uint64 // of the journal, in which the last driver led; the connection's

	mu      sync.Mutex
	runners map[string]*runnerProcess // by job
	opening map[string]*wire.OpenJob  // whose programs are being fetched
	client  wire.ClusterClient        // of the present connection

	began     time.Time
	connected atomic.Bool            // to a driver, which has said Welcome
	spoken    atomic.Pointer[string] // in which version of the protocol; empty is the oldest
	started   atomic.Int64
	readers   *readers
	groups    *memory.Groups // in which runners are limited; nil where the system has delegated none
	web       string         // where health and metrics are served
	location  string         // where datasets are, as Arrow clients have it
	ticketKey atomic.Pointer[[]byte]
	disk      atomic.Uint64 // bytes of packs, as of the last look
	unfit     atomic.Value  // why no runner can be started here, a string, as of the last look
	share     struct {      // of the slots
		sync.Mutex
		by  *scheduler.Shares
		of  map[string]*runnerProcess
		due bool // a check is scheduled
	}
}

// New prepares an executor. (What killed runners left in its data
// directory is cleared away by the next one that opens it.)
func New(cfg Config) (*Daemon, error) {
	cfg = cfg.EnsureDefaults()
	if err := wire.CheckDrivers(cfg.Driver); err != nil {
		return nil, err
	}
	if _, socket := wire.SocketPath(cfg.Driver); !socket && cfg.Party.ID == nil {
		return nil, wire.NoCertificate("use the driver at", cfg.Driver)
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
	if err := os.MkdirAll(filepath.Join(dir, "runners"), 0o700); err != nil {
		return nil, fault.New(fault.NoResources, "open the data directory", cfg.DataDir, err)
	}
	d := &Daemon{cfg: cfg, log: cfg.Logger, incarnation: uuid.NewString(), runners: map[string]*runnerProcess{},
		opening: map[string]*wire.OpenJob{}, began: time.Now()}
	if d.programs, err = programs.Open(filepath.Join(dir, "programs")); err != nil {
		return nil, err
	}
	d.readers = &readers{ask: d.mayRead, now: time.Now, could: map[[sha256.Size]byte]time.Time{}}
	d.share.by, d.share.of = scheduler.NewShares(cfg.Slots), map[string]*runnerProcess{}
	d.groups = memory.Divide(cfg.Logger)
	return d, nil
}

// redial is how long to wait between two attempts to reach the driver.
const redial = 200 * time.Millisecond

// Run serves the driver until the driver ends the connection: because it shuts
// down, or because the context has ended and this executor has nothing left.
// Where the driver cannot be reached, Run redials for MaxWait.
func (d *Daemon) Run(ctx context.Context) error {
	stop, err := d.serveHTTP()
	if err != nil {
		return err
	}
	defer stop()
	stopFlight, err := d.serveFlight()
	if err != nil {
		return err
	}
	defer stopFlight()
	began := d.began
	lastSeen, told, joined := began, "", false
	for {
		bye, err := d.connect(ctx, &lastSeen)
		joined = joined || lastSeen.After(began)
		if bye || ctx.Err() != nil || refused(err) || !d.outlives() || time.Since(lastSeen) > runnersWait {
			d.stopAll()
		}
		switch {
		case ctx.Err() != nil || bye:
			return nil
		case joined && wire.Gone(d.cfg.Driver):
			d.log.Info("the driver has shut down, so this executor stops")
			return nil
		case refused(err):
			return wire.CallError("join the driver at", d.cfg.Driver, err)
		case time.Since(lastSeen) > d.cfg.MaxWait:
			return wire.CallError("reach the driver at", d.cfg.Driver, err)
		}
		if text := err.Error(); text != told { // once for each reason
			told = text
			d.log.Warn("cannot join the driver; trying again", "driver", d.cfg.Driver, "for", d.cfg.MaxWait, "error",
				err)
		}
		timer := time.NewTimer(redial)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// refused reports whether a retry cannot succeed.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.InvalidArgument, codes.Unauthenticated, codes.AlreadyExists,
		codes.PermissionDenied:
		return true
	}
	return wire.Untrusted(err)
}

// connect serves one connection; bye reports that the driver ended it for good.
func (d *Daemon) connect(ctx context.Context, lastSeen *time.Time) (bye bool, err error) {
	conn, err := wire.DialDriver(d.cfg.Driver, d.cfg.Party)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	told := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // on shutdown, it first moves its splits to others
	defer cancel()
	joined := false
	defer func() {
		d.connected.Store(false)
		if joined {
			*lastSeen = time.Now()
		}
	}()
	client := wire.NewClusterClient(conn)
	d.mu.Lock()
	d.client = client
	d.mu.Unlock()
	go wire.KeepRenewed(ctx, d.cfg.Party, func() wire.ClusterClient { return client }, d.notRenewed)
	stream, err := client.Serve(ctx)
	if err != nil {
		return false, err
	}
	out := wire.NewOutbox(stream.Send, func(error) { cancel() })
	defer out.Stop()
	l := &link{ctx: ctx, out: out, began: d.now(), again: !lastSeen.Equal(d.began)}
	defer d.orphan()
	hello := wire.Greeting()
	hello.Name, hello.Incarnation, hello.Term = d.cfg.Name, d.incarnation, d.term
	hello.Slots, hello.Labels, hello.Flight = uint32(d.cfg.Slots), d.cfg.Labels, d.location
	if err := out.Put(&wire.FromExecutor{Body: &wire.FromExecutor_Hello{Hello: hello}}); err != nil {
		return false, err
	}
	defer context.AfterFunc(told, func() { d.leave(ctx, out, cancel) })()
	for {
		m, err := stream.Recv()
		if err != nil {
			return false, err
		}
		switch b := m.Body.(type) {
		case *wire.ForExecutor_Welcome:
			if !driver.Follows(d.term, b.Welcome.Term) {
				return false, fmt.Errorf("the driver led in term %d, and another has since term %d", b.Welcome.Term,
					d.term)
			}
			joined, d.term = true, b.Welcome.Term
			d.welcomed(ctx, b.Welcome, client)
			d.cfg.Ready(d.cfg.Driver)
			d.log.Info("registered", "driver", d.cfg.Driver, "name", d.cfg.Name, "term", d.term)
			l.silence = time.Duration(b.Welcome.LeaseNs)
			l.beat = max(time.Duration(b.Welcome.BeatNs), 10*time.Millisecond)
			go d.beat(l)
			go d.watch(l, cancel)
			go d.watchDisk(ctx)
			go d.watchFitness(ctx)
		case *wire.ForExecutor_Open:
			d.open(b.Open, l)
		case *wire.ForExecutor_Relay:
			if r := d.runner(b.Relay.Peer); r != nil {
				r.send(b.Relay.Data)
			}
		case *wire.ForExecutor_Beat:
			l.heard.Store(int64(d.now()))
		case *wire.ForExecutor_Renew:
			go d.renew(ctx, client)
		case *wire.ForExecutor_Ask:
			d.ask(b.Ask)
		case *wire.ForExecutor_Close:
			d.closeJob(b.Close.Job)
		case *wire.ForExecutor_Goodbye:
			if told.Err() == nil {
				d.log.Info("the driver has shut down, so this executor stops")
			}
			return true, nil
		}
	}
}

// welcomed notes that a driver has let this executor in.
func (d *Daemon) welcomed(ctx context.Context, w *wire.Welcome, client wire.ClusterClient) {
	d.spoken.Store(&w.Version)
	d.ticketKey.Store(&w.FlightKey)
	d.connected.Store(true)
	d.renewToServe(ctx, client)
}

// host returns where this executor's runners are reached: its address towards the driver, or as it was told.
func (d *Daemon) host() string {
	if d.cfg.Host != "" || d.cfg.Party.ID == nil {
		return d.cfg.Host
	}
	for _, addr := range wire.Drivers(d.cfg.Driver) {
		if conn, err := net.Dial("udp", addr); err == nil { // which sends nothing
			defer conn.Close()
			host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
			return host
		}
	}
	return ""
}

// ask hands a request for stacks or a profile to a job's runner, which answers the driver itself.
func (d *Daemon) ask(a *wire.AskRunner) {
	r := d.runner(a.Job)
	raw, err := proto.Marshal(&wire.ToExecutor{Body: &wire.ToExecutor_Ask{Ask: a.Ask}})
	if r != nil && err == nil {
		r.send(raw)
	}
}

// renew has the driver sign this executor's certificate anew.
func (d *Daemon) renew(ctx context.Context, client wire.ClusterClient) {
	if err := wire.Renew(ctx, client, d.cfg.Party.ID); err != nil {
		d.notRenewed(err)
	}
}

func (d *Daemon) notRenewed(err error) {
	d.log.Error("the certificate was not renewed; it is tried again", "error", err)
}

// leave asks the driver to drain this executor, and ends the connection where
// that takes too long.
func (d *Daemon) leave(ctx context.Context, out *wire.Outbox[*wire.FromExecutor], end func()) {
	d.mu.Lock()
	busy := len(d.runners) > 0
	d.mu.Unlock()
	if !busy || out.Put(&wire.FromExecutor{Body: &wire.FromExecutor_Leaving{Leaving: &wire.Leaving{}}}) != nil {
		end()
		return
	}
	d.log.Info("draining", "for at most", d.cfg.Drain)
	timer := time.NewTimer(d.cfg.Drain)
	defer timer.Stop()
	select {
	case <-timer.C:
		d.log.Warn("not drained in time, stopping")
		end()
	case <-ctx.Done():
	}
}

// beat sends heartbeats.
func (d *Daemon) beat(l *link) {
	ticker := time.NewTicker(l.beat)
	defer ticker.Stop()
	for {
		if err := l.out.Put(&wire.FromExecutor{Body: &wire.FromExecutor_Beat{Beat: d.state()}}); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-l.ctx.Done():
			return
		}
	}
}

// watch kills runners whose heartbeats fail to arrive, and ends the connection to a driver whose do.
func (d *Daemon) watch(l *link, end func()) {
	detector := wire.NewFailureDetector(l.beat)
	ticker := time.NewTicker(detector.Tick())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			detector.Look(time.Now())
			d.killSilent(detector, l)
			d.killOrphans(l)
			d.endIfSilent(l, detector, end)
		case <-l.ctx.Done():
			return
		}
	}
}

// killSilent does not wait for the processes that it kills: they may stay in
// the kernel for as long as a disk hangs.
func (d *Daemon) killSilent(v *wire.FailureDetector, l *link) {
	var dead []*runnerProcess
	d.mu.Lock()
	for job, r := range d.runners {
		if !r.held.Load() && v.Dead(d.began.Add(time.Duration(r.heard.Load()))) {
			dead = append(dead, r)
			delete(d.runners, job)
		}
	}
	d.mu.Unlock()
	for _, r := range dead {
		d.log.Warn("runner hangs; it is killed", "job", r.job, "silent for", v.Silence())
		r.quiet.Store(true)
		r.kill()
		d.takeDown(r)
		_ = l.out.Put(closed(r.job, r.id.Load(), "its runner gave no heartbeat and was killed"))
	}
}

// watchDisk measures the packs' size at intervals: not in the heartbeat, which
// must not wait for a disk.
func (d *Daemon) watchDisk(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		d.disk.Store(diskUsed(d.cfg.DataDir))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// state returns what a heartbeat carries.
func (d *Daemon) state() *wire.Beat {
	b := &wire.Beat{Disk: d.disk.Load(), Memory: memory.Resident(os.Getpid())}
	b.Unfit, _ = d.unfit.Load().(string)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.runners {
		splits, rate := r.progress()
		b.Splits += uint64(splits)
		b.RowsPerSecond += rate
		b.Memory += memory.Resident(r.pid())
	}
	return b
}

func (d *Daemon) runner(job string) *runnerProcess {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runners[job]
}

// open starts a runner of a job.
func (d *Daemon) open(o *wire.OpenJob, l *link) {
	if d.adopt(o, l) {
		return
	}
	d.closeJob(o.Job)
	if o.Program == nil && (len(o.Args) == 0 || o.Args[0] != "run") {
		_ = l.out.Put(closed(o.Job, o.Runner, "it is no job that an executor runs"))
		return
	}
	d.mu.Lock()
	d.opening[o.Job] = o
	d.mu.Unlock()
	if o.Program == nil {
		d.begin(o, d.cfg.Program, o.Args, beginWait, l)
		return
	}
	go func() { // which may take a while
		path, err := d.program(l.ctx, o.Program)
		if err != nil {
			if d.wanted(o) {
				_ = l.out.Put(closed(o.Job, o.Runner, "its program did not arrive: "+err.Error()))
			}
			return
		}
		args := append(append(slices.Clone(o.Args), "--"), o.Program.Args...)
		d.begin(o, path, args, beginWait, l)
	}()
}

// wanted reports whether a runner that was requested is still needed.
func (d *Daemon) wanted(o *wire.OpenJob) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opening[o.Job] == o
}

// begin starts a runner, unless it is no longer needed; where it cannot be started for now it
// waits before it tries again.
func (d *Daemon) begin(o *wire.OpenJob, program string, args []string, wait time.Duration, l *link) {
	if !d.wanted(o) {
		return
	}
	r, err := d.startRunner(o, program, args, l)
	if err != nil {
		d.cannotBegin(l.ctx, o, err, wait, func() { d.begin(o, program, args, min(2*wait, beginWaitMost), l) }, l)
		return
	}
	d.mu.Lock()
	wanted := d.opening[o.Job] == o
	if wanted {
		d.runners[o.Job] = r
		delete(d.opening, o.Job)
	}
	d.mu.Unlock()
	if !wanted { // the job has ended, or requested another, while it began
		r.stop()
		return
	}
	d.setUp(r)
	go func() { // an ended process is not killed later, when its pid may be another's
		<-r.ended
		d.mu.Lock()
		if d.runners[o.Job] == r {
			delete(d.runners, o.Job)
		}
		d.mu.Unlock()
		d.takeDown(r)
	}()
}

func closed(job string, runner uint64, why string) *wire.FromExecutor {
	return &wire.FromExecutor{Body: &wire.FromExecutor_Closed{Closed: &wire.CloseJob{Job: job, Runner: runner,
		Why: why}}}
}

// closeJob ends the runner of a job, if there is one.
func (d *Daemon) closeJob(job string) {
	d.mu.Lock()
	r := d.runners[job]
	delete(d.runners, job)
	delete(d.opening, job)
	d.mu.Unlock()
	if r != nil {
		r.stop()
		d.takeDown(r)
	}
}

// stopAll ends all runners.
func (d *Daemon) stopAll() {
	d.mu.Lock()
	jobs := make([]string, 0, len(d.runners))
	for job := range d.runners {
		jobs = append(jobs, job)
	}
	d.mu.Unlock()
	for _, job := range jobs {
		d.closeJob(job)
	}
}
