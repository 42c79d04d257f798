package volley

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	runners "github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// runnerMain serves an executor with a program's plan until the executor ends
// the connection, and returns the process's exit code.
func runnerMain(ctx context.Context, cfg Config, args []byte, g *rdd.Graph) int {
	if err := runRunner(ctx, cfg, args, g); err != nil {
		fmt.Fprintf(os.Stderr, "volley: %v\n", err)
		return ExitFailed
	}
	return 0
}

func runRunner(ctx context.Context, cfg Config, args []byte, g *rdd.Graph) error {
	// One processor more than slots: whoever reads the network is never kept
	// waiting by folds.
	runtime.GOMAXPROCS(process.Slots + 1)
	conn, err := net.FileConn(os.NewFile(executor.RunnerFD, "executor"))
	if err != nil {
		return fault.New(fault.Internal, "open", "the connection to the executor", err)
	}
	cache, err := storage.OpenCache(cfg.DataDir, cfg.DiskBudget)
	if err != nil {
		return err
	}
	dir, done, err := cache.TempDir("runner")
	if err != nil {
		return err
	}
	defer done()
	store, err := storage.NewStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	defer store.Close()
	r := &localRunner{maker: &rdd.Maker{Graph: g, Cache: cache, Workers: process.Slots, Program: programID(cfg, args)}, store: store}
	defer r.maker.Close()
	r.engine = executor.NewEngine(plan.ExecutorID(process.Executor), g, store, r, r)
	addr, stop, err := r.serveBlocks()
	if err != nil {
		return err
	}
	defer stop()
	ec := executor.Config{ID: plan.ExecutorID(process.Executor), Slots: process.Slots, Blocks: addr}
	if ec.Pacer, err = ownPacer(); err != nil {
		return err
	}
	return executor.New(ctx, ec, r.engine, wire.FramedExecutor(wire.NewFramed(hangUp{conn}))).Serve()
}

// ownPacer is the pace that the executor asked for, if any.
func ownPacer() (func(int) runners.Pacer, error) {
	law, err := pace.Parse(process.Pace, process.PaceRate)
	if err != nil || law == nil {
		return nil, err
	}
	began, l := time.Now(), &limits{}
	return func(slot int) runners.Pacer { return newPacer(law, began, 0, slot, process.Slots, l) }, nil
}

// hangUp ends the process soon after the executor is gone, whatever the
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

// localRunner is a runner's catalog of packs, its way to peers, and what it
// hands out to them.
type localRunner struct {
	wire.UnimplementedBlocksServer
	maker  *rdd.Maker
	store  *storage.Store
	engine *executor.Engine
	mu     sync.Mutex
	peers  map[string]*grpc.ClientConn // by address
}

// Pack makes or finds a pack on this executor.
func (r *localRunner) Pack(ctx context.Context, node int) (string, *storage.PackMeta, error) {
	p, err := r.maker.Make(ctx, node)
	if err != nil {
		return "", nil, onExecutor(err)
	}
	return p.Dir, p.Meta, nil
}

// onExecutor says where an error of reading an input arose.
func onExecutor(err error) error {
	return fault.New(fault.KindOf(err), "on executor", process.Executor, err)
}

// serveBlocks hands out splits to the other runners of the job.
func (r *localRunner) serveBlocks() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fault.New(fault.NoResources, "listen for", "other runners", err)
	}
	admit := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if subtle.ConstantTimeCompare([]byte(wire.CallerToken(ss.Context())), []byte(process.Token)) != 1 {
			return status.Error(codes.Unauthenticated, "the token is not this job's")
		}
		return next(srv, ss)
	}
	s := grpc.NewServer(append(wire.ServerOptions(), grpc.StreamInterceptor(admit))...)
	wire.RegisterBlocksServer(s, r)
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), s.Stop, nil
}

// blockPart is how many bytes of a split travel in one message.
const blockPart = 1 << 20

// Fetch sends a split that this runner holds: first what is in its pack.
func (r *localRunner) Fetch(req *wire.BlockRequest, stream wire.Blocks_FetchServer) error {
	meta := r.engine.Meta(int(req.Node))
	if meta == nil {
		return status.Errorf(codes.NotFound, "no split of node %d is held here", req.Node)
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return status.Errorf(codes.Internal, "%v", err)
	}
	if err := stream.Send(&wire.BlockPart{Meta: raw}); err != nil || req.Describe {
		return err
	}
	return r.store.Send(storage.SplitKey{Node: int(req.Node), Split: int(req.Split)}, partWriter{stream})
}

// partWriter sends what is written to it, a part at a time.
type partWriter struct{ stream wire.Blocks_FetchServer }

func (w partWriter) Write(p []byte) (int, error) {
	for from := 0; from < len(p); from += blockPart {
		if err := w.stream.Send(&wire.BlockPart{Data: p[from:min(from+blockPart, len(p))]}); err != nil {
			return from, err
		}
	}
	return len(p), nil
}

// peer is a connection to another runner.
func (r *localRunner) peer(addr string) (wire.BlocksClient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.peers[addr]; c != nil {
		return wire.NewBlocksClient(c), nil
	}
	c, err := wire.Dial(addr, process.Token)
	if err != nil {
		return nil, err
	}
	if r.peers == nil {
		r.peers = map[string]*grpc.ClientConn{}
	}
	r.peers[addr] = c
	return wire.NewBlocksClient(c), nil
}

// open starts receiving a split from another runner, or only its pack's
// description.
func (r *localRunner) open(ctx context.Context, from executor.Peer, key storage.SplitKey, describe bool) (wire.Blocks_FetchClient, *storage.PackMeta, error) {
	failed := func(err error) error {
		return fault.New(fault.FetchFailed, fmt.Sprintf("fetch split %d from", key.Split), string(from.ID), err)
	}
	c, err := r.peer(from.Address)
	if err != nil {
		return nil, nil, failed(err)
	}
	stream, err := c.Fetch(ctx, &wire.BlockRequest{Node: uint32(key.Node), Split: uint32(key.Split), Describe: describe})
	if err != nil {
		return nil, nil, failed(err)
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, failed(err)
	}
	meta := &storage.PackMeta{}
	if err := json.Unmarshal(first.Meta, meta); err != nil {
		return nil, nil, failed(err)
	}
	return stream, meta, nil
}

// Meta describes a pack that a peer holds splits of.
func (r *localRunner) Meta(ctx context.Context, from executor.Peer, node int) (*storage.PackMeta, error) {
	if meta := r.engine.Meta(node); meta != nil {
		return meta, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, meta, err := r.open(ctx, from, storage.SplitKey{Node: node}, true)
	return meta, err
}

// FetchSplit writes the bytes of a split that a peer holds.
func (r *localRunner) FetchSplit(ctx context.Context, from executor.Peer, key storage.SplitKey, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, _, err := r.open(ctx, from, key, false)
	if err != nil {
		return err
	}
	for {
		part, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fault.New(fault.FetchFailed, fmt.Sprintf("fetch split %d from", key.Split), string(from.ID), err)
		}
		if _, err := w.Write(part.Data); err != nil {
			return err
		}
	}
}
