// Package volley is what a user's program calls: Main runs a plan and its
// loop, embedded in this process: a driver and executors that speak the real
// protocol with each other over in-memory pipes.
//
// It owns the joining of the parts (cluster, session, event log, checkpoints)
// and no decision of theirs.
package volley

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// Version is the version of this module.
const Version = "0.1.0"

// Config says how a program runs embedded. The zero value of a field takes
// its default.
type Config struct {
	Executors      int    // default: one a core
	Slots          int    // default 1
	Memory         int64  // soft limit of the process in bytes; 0 is none
	TaskMemory     int64  // bytes that a task sorts in memory; 0 is 256 MiB, or a part of Memory
	DataDir        string // default $XDG_CACHE_HOME/volley
	DiskBudget     int64  // bytes of packs kept; 0 chooses from the free space
	Job            driver.JobConfig
	Pace           *pace.Law // emulated speeds; nil is none
	Virtual        bool      // virtual time; needs a Pace
	EventLog       string
	Checkpoints    string // directory; empty keeps none
	CheckpointEach int    // iterations between checkpoints; default 10
	Resume         bool
	Identity       string // what a checkpoint must agree on to be resumed; default: the arguments
	OutDir         string
	Program        string // identity of user code; default: the digest of this executable
	Progress       func(rdd.Progress)
	Observer       func(*driver.StepReport)
	Logger         hclog.Logger
}

// Outcome is what the engine knows of a finished run.
type Outcome struct {
	Load       time.Duration // on the wall clock
	Train      time.Duration // on the job's clock, evaluation left out
	Evaluation time.Duration
	Counters   driver.Counters
	Splits     int
	Executors  int
	StoppedBy  string
	LogDigest  string // SHA-256 of the event log; empty where none was written
}

// ensureDefaults fills in the fields left zero.
func (c Config) ensureDefaults() Config {
	if c.Executors == 0 {
		c.Executors = runtime.GOMAXPROCS(0)
	}
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.CheckpointEach == 0 {
		c.CheckpointEach = 10
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.DataDir == "" {
		c.DataDir = DefaultDataDir()
	}
	return c
}

// DefaultDataDir is where packs are kept unless told otherwise.
func DefaultDataDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "volley")
	}
	return filepath.Join(os.TempDir(), "volley")
}

// Run builds a plan and runs its loop on an embedded cluster. build must
// depend on args only. run gets a session whose steps the cluster runs; what
// it returns as stoppedBy goes to the event log.
func Run[A, P any](ctx context.Context, cfg Config, name string, args A,
	build func(*rdd.Graph, A) P, run func(ctx context.Context, s *rdd.Session, args A, p P) (stoppedBy string, err error)) (*Outcome, error) {
	cfg = cfg.ensureDefaults()
	if cfg.Memory > 0 {
		storage.LimitMemory(cfg.Memory, leastLimit) // below that, there is garbage to collect all the time
	} else {
		defer collectSeldom()()
	}
	g, p, err := buildPlan(args, build)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fault.New(fault.UserCode, "encode", "the program's arguments", err)
	}
	again := func() (executor.Program, error) {
		g, _, err := buildPlan(args, build)
		return g, err
	}
	if process.Role == wire.RunnerRole {
		os.Exit(runnerMain(ctx, cfg, raw, g))
	}
	e, err := newEmbedded(ctx, cfg, name, raw, g, again)
	if err != nil {
		return nil, err
	}
	defer e.close()
	s := rdd.NewSession(g, e, rdd.Config{OutDir: cfg.OutDir, Owner: ownerOf(process), Progress: cfg.Progress, Scalable: e.scalable, Slots: e.back.Slots,
		TaskMemory: cfg.heldByTask(), Copies: process.Role == wire.JobRole, Warn: func(text string) { cfg.Logger.Warn(text) }})
	stoppedBy, err := run(ctx, s, args, p)
	if err == nil {
		err = s.Err() // of a loop, whether or not the program has asked
	}
	if err != nil {
		e.log.Close()
		return nil, err
	}
	e.flush()
	if err := e.log.Finish(ctx, stoppedBy); err != nil {
		return nil, err
	}
	out := e.outcome(s, stoppedBy)
	out.LogDigest = e.log.Digest()
	return out, nil
}

// collectSeldom sets how much garbage is worth collecting, unless the environment
// says; what it returns takes that back.
func collectSeldom() func() {
	ballastOnce.Do(func() { ballastHeld = make([]byte, ballast) })
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	runtime.KeepAlive(ballastHeld)
	before := debug.SetGCPercent(garbagePercent)
	return func() { debug.SetGCPercent(before) }
}

var (
	ballastOnce sync.Once
	ballastHeld []byte // for as long as the process lives
)

// leastLimit is the least limit on memory that a process can live within.
const leastLimit = 32 << 20

// ballast is memory that is reserved and never touched, so that no page of it is
// ever there: a process whose rows take little memory would otherwise collect
// its garbage many times a second.
const ballast = 192 << 20

// garbagePercent is how much garbage, as a part of what is alive, makes a process
// collect it: rows have few pointers and are cheap to look through.
const garbagePercent = 50

// sortedShare is the part of a memory limit that tasks may sort in, all of them
// together.
const sortedShare = 4

// taskMemory is how much each of a number of tasks at a time may sort in
// memory; 0 leaves it to the executor.
func (c Config) taskMemory(tasks int) int {
	if c.TaskMemory == 0 && c.Memory > 0 {
		return int(c.Memory / int64(sortedShare*max(1, tasks)))
	}
	return int(c.TaskMemory)
}

// taskHeld is how much each of a number of tasks at a time may hold of what cannot be
// written down and read again piece by piece; 0 where there is no limit.
func (c Config) taskHeld(tasks int) int {
	return int(c.Memory / int64(sortedShare*max(1, tasks)))
}

// sharedRoom is how many bytes of rows and tables the tasks of a process keep in common: a
// quarter of what it may take, so that tasks have room beside them; 0 where nobody has said how
// much that is.
func (c Config) sharedRoom() int64 { return c.Memory / 4 }

// heldByTask is how many bytes of rows a task holds at the most.
func (c Config) heldByTask() int {
	if n := c.taskMemory(c.Executors * c.Slots); n > 0 {
		return n
	}
	return executor.DefaultTaskMemory
}

// ownerOf tells one job of a cluster from all others; empty where there is no
// cluster to start it again.
func ownerOf(p wire.Process) string {
	if p.Role != wire.JobRole {
		return ""
	}
	return p.Job + " " + plan.DigestOf([]byte(p.Token)).Short()
}

func buildPlan[A, P any](args A, build func(*rdd.Graph, A) P) (g *rdd.Graph, p P, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Newf(fault.UserCode, "build", "the plan", "panic: %v", r)
		}
	}()
	g = rdd.NewGraph()
	p = build(g, args)
	return g, p, g.Err()
}

// backend is a cluster: in virtual time, or for real.
type backend interface {
	Start(ctx context.Context) error
	OpenPack(ctx context.Context, info *driver.PackInfo) (int, error)
	RunStep(ctx context.Context, req *driver.StepRequest) (*driver.StepReport, error)
	RunCall(ctx context.Context, req *driver.CallRequest) (*driver.CallOutcome, error)
	Slots() int
	Restore(*driver.Restored)
	Signal(driver.Signal)
	Ledger(pack int) *driver.Restored
	Now() time.Duration
	Close() error
}

var (
	_ backend     = (*sim.Virtual)(nil)
	_ backend     = (*driver.Driver)(nil)
	_ rdd.Cluster = (*embedded)(nil)
)

// embedded joins a backend to a session: it keeps the catalog of packs, the
// event log and the checkpoints.
type embedded struct {
	cfg       Config
	name      string
	job       driver.JobConfig
	args      json.RawMessage
	plan      plan.Digest
	cache     *storage.Cache
	dir       string
	cleanup   []func()
	back      backend
	log       *driver.EventLog
	mu        sync.Mutex // guards packs: executors look them up
	packs     map[int]*storage.Pack
	maker     *rdd.Maker
	metas     map[int]*storage.PackMeta // by node
	makers    map[int]plan.ExecutorID   // of packs, by node
	madeWith  func(node int) []int      // packs that are made at the same time
	nodes     []int                     // of packs, by number
	header    bool
	pending   *driver.LogStep
	stepEnd   time.Duration
	passes    []*driver.LogEvaluation
	unlogged  driver.LogReports // of passes that have no line
	report    *driver.StepReport
	began     time.Duration
	evaluated time.Duration // uncut passes since the first training step
	resumed   *checkpoint
	executors []*executor.Engine
	ctx       context.Context
	remote    *remote // the cluster of this job process; nil where the cluster is embedded
	kept      time.Time
	keeping   time.Duration // how long the last checkpoint took
	life      uint32
	loops     []loopMark      // as the last checkpoint has them
	sequence  int             // of the last checkpoint
	unsaid    []*wire.Commit  // steps that no checkpoint has yet
	trouble   string          // why no checkpoint has them
	goesOn    bool            // the event log is that of the run resumed, whose first passes it has
	stepped   bool            // a training step has run
	shared    executor.Shared // what tasks of all executors here have in common
}

func newEmbedded(ctx context.Context, cfg Config, name string, args []byte, g *rdd.Graph, again func() (executor.Program, error)) (*embedded, error) {
	if cfg.Identity == "" {
		cfg.Identity = string(args)
	}
	e := &embedded{ctx: ctx, cfg: cfg, name: name, args: args, plan: g.Fingerprint(), packs: map[int]*storage.Pack{}, metas: map[int]*storage.PackMeta{}, makers: map[int]plan.ExecutorID{}, madeWith: g.MadeWith}
	if err := e.open(ctx, g, again); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *embedded) open(ctx context.Context, g *rdd.Graph, again func() (executor.Program, error)) error {
	sources, err := g.Resolve()
	if err != nil {
		return err
	}
	if err := e.openCache(g); err != nil {
		return err
	}
	if e.cfg.Resume {
		if e.resumed, err = latestCheckpoint(e.cfg.Checkpoints, e.plan, e.cfg.Identity); err != nil {
			return err
		}
		if e.resumed != nil {
			e.log, e.goesOn = driver.ContinueEventLog(e.cfg.EventLog, e.resumed.Log)
		}
		if !e.goesOn {
			keepOldLog(e.cfg.EventLog)
		}
	} else if files := checkpointFiles(e.cfg.Checkpoints); len(files) > 0 {
		return fault.Newf(fault.Usage, "keep checkpoints in", e.cfg.Checkpoints, "it holds those of another run").
			WithHint("add --resume to go on from them, or remove the directory")
	}
	if e.header = e.goesOn; !e.goesOn {
		if e.log, err = driver.CreateEventLog(e.cfg.EventLog); err != nil {
			return err
		}
	}
	e.life = process.Term
	if e.resumed != nil {
		e.life = max(e.life, e.resumed.Life+1)
		e.loops, e.sequence = slices.Clone(e.resumed.Loops), e.resumed.Sequence
	}
	job := e.cfg.Job
	job.Life, job.Again = e.life, e.resumed != nil || process.Term > 1
	job.ID, job.Fingerprint, job.Sources, job.Executors = plan.JobID(e.name), e.plan, sources, e.cfg.Executors
	job.Record = e.log != nil
	e.job = job
	if e.back, err = e.newBackend(job, again); err != nil {
		return err
	}
	return e.back.Start(ctx)
}

// openCache falls back to a temporary directory, with a warning, where the
// data directory cannot be used.
func (e *embedded) openCache(g *rdd.Graph) error {
	cache, err := storage.OpenCache(e.cfg.DataDir, e.cfg.DiskBudget)
	if err != nil {
		tmp, terr := os.MkdirTemp("", "volley-*")
		if terr != nil {
			return err
		}
		e.cfg.Logger.Warn("packs go to a temporary directory and are not kept", "reason", err)
		e.cleanup = append(e.cleanup, func() { os.RemoveAll(tmp) })
		if cache, err = storage.OpenCache(tmp, e.cfg.DiskBudget); err != nil {
			return err
		}
	}
	e.cache = cache
	dir, done, err := cache.TempDir("run")
	if err != nil {
		return err
	}
	e.dir = dir
	e.cleanup = append(e.cleanup, done)
	e.maker = &rdd.Maker{Graph: g, Cache: cache, Workers: runtime.GOMAXPROCS(0), Program: e.programID(), Progress: e.loaded}
	e.cleanup = append(e.cleanup, e.maker.Close)
	return nil
}

func (e *embedded) newBackend(job driver.JobConfig, again func() (executor.Program, error)) (backend, error) {
	engine := func(i int) (*executor.Engine, error) {
		program, err := again()
		if err != nil {
			return nil, err
		}
		store, err := storage.NewStore(filepath.Join(e.dir, fmt.Sprintf("executor-%d", i)))
		if err != nil {
			return nil, err
		}
		e.cleanup = append(e.cleanup, func() { store.Close() })
		en := executor.NewEngine(executorID(i), program, store, e, linked(e, e.realLaw()))
		en.TaskMemory = e.cfg.taskMemory(e.cfg.Executors * e.cfg.Slots)
		en.TaskHeld = e.cfg.taskHeld(e.cfg.Executors * e.cfg.Slots)
		e.shared.Room = e.cfg.sharedRoom()
		en.Shared = &e.shared
		e.executors = append(e.executors, en)
		return en, nil
	}
	if process.Role == wire.JobRole {
		had := 0
		if e.resumed != nil {
			had = e.resumed.Executors
		}
		r, err := connect(e.ctx, process, job, had, e.cfg.Logger)
		if err != nil {
			return nil, err
		}
		e.remote, e.cfg.Executors = r, r.executors
		e.job.Executors, e.job.Gather = r.executors, r.gather
		return r, nil
	}
	if e.cfg.Virtual {
		return sim.NewVirtual(sim.VirtualConfig{Job: job, Executors: e.cfg.Executors, Slots: e.cfg.Slots, Law: e.cfg.Pace, Engine: engine})
	}
	return newLocal(job, e.cfg, engine)
}

func (e *embedded) close() {
	if e.back != nil {
		e.back.Close()
	}
	for i := len(e.cleanup) - 1; i >= 0; i-- {
		e.cleanup[i]()
	}
}

func (e *embedded) loaded(rows int) {
	if e.cfg.Progress != nil {
		e.cfg.Progress(rdd.Progress{LoadedRows: rows})
	}
}

// programID identifies user code, whose functions decide the rows of packs.
func (e *embedded) programID() string {
	return programID(e.cfg, e.args)
}

func programID(cfg Config, args []byte) string {
	if cfg.Program != "" {
		return cfg.Program
	}
	return string(args) + executableDigest()
}

// scalable says why steps without Scale cannot be cut under this
// configuration.
func (e *embedded) scalable() error {
	partial := !e.cfg.Job.Sync.Policy.Whole() || e.cfg.Job.BatchFraction > 0 && e.cfg.Job.BatchFraction < 1
	if e.cfg.Job.ByRows || !partial {
		return nil
	}
	return fault.Newf(fault.Usage, "run", "a step without Scale", "it cannot be cut under weighting=split").
		WithHint("give the Aggregator a Scale, or run with --weighting rows")
}

func (e *embedded) machine() driver.LogMachine {
	return driver.LogMachine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Kernels: kernel.Path()}
}
