package host

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	runners "github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// runnerMain serves an executor with a program's plan until the executor ends
// the connection, and returns the process's exit code.
func runnerMain(ctx context.Context, cfg Config, p wire.Process, program Program) int {
	if err := runRunner(ctx, cfg, p, program); err != nil {
		fmt.Fprintf(os.Stderr, "volley: %v\n", err)
		return ExitFailed
	}
	return 0
}

func runRunner(ctx context.Context, cfg Config, p wire.Process, program Program) error {
	// One processor more than slots: folds never block the goroutine that reads the
	// network.
	runtime.GOMAXPROCS(p.Slots + 1)
	conn, err := net.FileConn(os.NewFile(wire.RunnerFD, "executor"))
	if err != nil {
		return fault.New(fault.Internal, "open", "the connection to the executor", err)
	}
	frames := wire.NewFramed(hangUp{conn})
	go beat(frames, p.Beat)
	cache, err := pack.OpenCache(cfg.DataDir, cfg.DiskBudget)
	if err != nil {
		return err
	}
	dir, done, err := cache.TempDir("runner")
	if err != nil {
		return err
	}
	defer done()
	store, err := executor.OpenStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	defer store.Close()
	self, err := partyOf(p)
	if err != nil {
		return err
	}
	r := &localRunner{process: p, self: self, cache: cache, program: programID(cfg, program.Args), store: store}
	defer r.close()
	law, err := pace.Parse(p.Pace, p.PaceRate)
	if err != nil {
		return err
	}
	number := int(crc32.ChecksumIEEE([]byte(p.Executor))) % mostNumbers // so that executors are not slow at one time
	peers := linked(r, law, number)
	r.newEngine(cfg, program.Graph, peers)
	go self.keepRenewed(ctx)
	addr, stop, err := r.serveBlocks(dir)
	if err != nil {
		return err
	}
	defer stop()
	ec := executor.Config{ID: plan.ExecutorID(p.Executor), Slots: p.Slots, Blocks: addr}
	r.pacer = lawPacer(law, time.Now(), number, p.Slots, &limits{})
	ec.Pacer = r.pacer
	ec.Gate, ec.Beside = runners.NewGate(), &r.gangs.work
	link := newRunnerLink(wire.FramedExecutor(frames), ec.Gate, r)
	session := link.begin(p.Direct, p.Incarnation)
	go link.serve()
	for {
		err = executor.New(ctx, ec, r.engine.Load(), session).Serve()
		if errors.Is(err, executor.ErrNotBack) { // for a process that has gone; what it reads must not be closed
			fmt.Fprintf(os.Stderr, "volley: the runner ends, its job's next process has another: %v\n", err)
			os.Exit(ExitFailed)
		}
		next := link.next()
		if next == nil {
			return err
		}
		again, err := program.Again() // without what the process before has added to its plan
		if err != nil {
			return err
		}
		r.store.Renew()
		r.newEngine(cfg, again.(*rdd.Graph), peers)
		session = link.begin(next.Direct, next.Incarnation)
	}
}

// newEngine makes the engine of the job's next process. The splits that are held stay.
func (r *localRunner) newEngine(cfg Config, graph *rdd.Graph, peers executor.Peers) {
	r.close()
	slots := r.process.Slots
	r.maker = &rdd.Maker{Graph: graph, Cache: r.cache, Workers: slots, Program: r.program}
	e := executor.NewEngine(plan.ExecutorID(r.process.Executor), graph, r.store, r, peers)
	e.TaskMemory = cfg.taskMemory(slots)
	e.TaskHeld, e.OneMachine = cfg.taskHeld(slots), r.process.Identity == nil
	e.Shared.Room = cfg.sharedRoom()
	r.engine.Store(e)
}

func (r *localRunner) close() {
	if r.maker != nil {
		r.maker.Close()
	}
}

// mostNumbers bounds what stands for an executor's number in laws.
const mostNumbers = 1 << 16

// beat sends heartbeats: empty messages.
func beat(frames *wire.Framed, every time.Duration) {
	ticker := time.NewTicker(max(every, time.Millisecond))
	defer ticker.Stop()
	for range ticker.C {
		if frames.Write(nil) != nil {
			return
		}
	}
}

// hangUp ends the process soon after the loss of its executor, whatever the
// program's functions are doing.
type hangUp struct{ net.Conn }

// orphanGrace is how long a runner may outlive its executor.
const orphanGrace = 300 * time.Millisecond

func (h hangUp) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if err != nil {
		time.AfterFunc(orphanGrace, func() { os.Exit(ExitFailed) })
	}
	return n, err
}

// localRunner is a runner's catalog of packs, its connections to peers, and
// what it serves to them.
type localRunner struct {
	wire.UnimplementedBlocksServer
	wire.UnimplementedGangsServer
	process wire.Process
	self    jobParty
	cache   *pack.Cache
	program string // identity of user code
	maker   *rdd.Maker
	store   *executor.Store
	engine  atomic.Pointer[executor.Engine] // of the job's present process
	mu      sync.Mutex
	peers   map[string]*grpc.ClientConn // by address
	gangs   memberships
	pacer   func(slot int) runners.Pacer // nil where slots run at their own speed
}

// Pack builds or finds a pack on this executor.
func (r *localRunner) Pack(ctx context.Context, node int) (string, *pack.Meta, error) {
	p, err := r.maker.Make(ctx, node)
	if fault.InputLost(err) {
		return "", nil, err // which names who held it
	}
	if err != nil {
		return "", nil, fault.New(fault.KindOf(err), "on executor", r.process.Executor, err)
	}
	return p.Dir, p.Meta, nil
}
