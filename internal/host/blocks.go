package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// serveBlocks serves splits to the other runners of the job.
func (r *localRunner) serveBlocks(dir string) (addr string, stop func(), err error) {
	if r.process.Unreachable {
		return "", func() {}, nil
	}
	return r.self.serve(dir, "blocks.sock", func(s *grpc.Server) {
		wire.RegisterBlocksServer(s, r)
		wire.RegisterGangsServer(s, r)
	})
}

// Fetch sends a split that this runner holds, after the description of its pack.
func (r *localRunner) Fetch(req *wire.BlockRequest, stream wire.Blocks_FetchServer) error {
	if req.Shuffled {
		b, err := r.outputOf(req.Node, req.Map, req.Attempt,
			shuffle.Span{From: int(req.Split), Through: int(req.Through)})
		if err != nil {
			return status.Error(codes.NotFound, err.Error())
		}
		defer b.Close()
		if err := stream.Send(&wire.BlockPart{}); err != nil {
			return err
		}
		_, err = wire.RawWriter{Stream: stream}.ReadFrom(b)
		return err
	}
	meta, err := r.describe(int(req.Node))
	if err != nil {
		return status.Error(codes.NotFound, err.Error())
	}
	if err := stream.Send(&wire.BlockPart{Meta: meta}); err != nil || req.Describe {
		return err
	}
	return r.store.Splits.Send(pack.SplitKey{Node: int(req.Node), Split: int(req.Split)},
		wire.RawWriter{Stream: stream})
}

// outputOf opens partitions of a map task's output.
func (r *localRunner) outputOf(node, mapTask uint32, attempt uint64, span shuffle.Span) (io.ReadCloser, error) {
	return r.store.Outputs.Open(shuffle.Key{Node: int(node), Map: int(mapTask), Attempt: attempt}, span)
}

// OpenMapOutput fetches shuffled rows from the runner that keeps them.
func (r *localRunner) OpenMapOutput(ctx context.Context, from executor.Peer, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	ctx, alive, done := whileAlive(ctx)
	defer done()
	req := &wire.BlockRequest{Node: uint32(key.Node), Split: uint32(span.From), Through: uint32(span.Through),
		Job: r.process.Job, From: string(from.ID),
		Shuffled: true, Map: uint32(key.Map), Attempt: key.Attempt}
	stream, _, err := r.reach(ctx, from, req)
	if err != nil {
		return nil, lostInput(from, key, err)
	}
	return r.store.Outputs.Spool(func(w io.Writer) error {
		return receive(stream, w, alive, func(err error) error { return lostInput(from, key, err) })
	})
}

// blockIdle is how long a peer may send nothing of a block before it is given up.
const blockIdle = 30 * time.Second

// whileAlive returns a context that ends when alive has not been called for blockIdle.
func whileAlive(ctx context.Context) (_ context.Context, alive, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(blockIdle, func() {
		cancel(fault.Newf(fault.Timeout, "receive", "a block", "nothing has come for %v", blockIdle))
	})
	return ctx, func() { idle.Reset(blockIdle) }, func() { idle.Stop(); cancel(nil) }
}

// receive writes what a peer sends, calling alive for each piece; peers reports
// whether an error is the peer's.
func receive(stream wire.RawStream, w io.Writer, alive func(), peers func(error) error) error {
	var failed error // of writing
	err := wire.CopyRaw(stream, func(raw *wire.Raw) error {
		defer alive()
		defer raw.Free()
		_, failed = raw.WriteTo(w)
		return failed
	})
	if err != nil && failed == nil {
		err = peers(err)
	}
	return err
}

// lostInput returns the error that names what is to be made again: one output,
// or, where its holder cannot be reached, all that it held.
func lostInput(from executor.Peer, key shuffle.Key, err error) error {
	kind, op := fault.LostInput, "read"
	if status.Code(err) == codes.Unavailable {
		kind, op = fault.HolderLost, "reach"
	}
	return fault.New(kind, op, string(from.ID), fmt.Errorf("the output of map task %d: %w", key.Map, err))
}

// describe returns the description of the pack of a node that splits are held of.
func (r *localRunner) describe(node int) ([]byte, error) {
	meta := r.engine.Load().Meta(node)
	if meta == nil {
		return nil, fault.Newf(fault.FetchFailed, "send", fmt.Sprintf("the pack of node %d", node),
			"no split of it is held here")
	}
	return json.Marshal(meta)
}

// hand sends the driver a block that it has requested.
func (r *localRunner) hand(ctx context.Context, h *wire.Hand) error {
	c, err := r.peer(r.process.Driver)
	if err != nil {
		return err
	}
	stream, err := c.Give(ctx, wire.RawCodec())
	if err != nil {
		return err
	}
	first := &wire.BlockPart{Ticket: h.Ticket}
	var b io.ReadCloser
	if h.Shuffled {
		b, err = r.outputOf(h.Node, h.Map, h.Attempt, shuffle.Span{From: int(h.Split), Through: int(h.Through)})
	} else {
		first.Meta, err = r.describe(int(h.Node))
	}
	if err != nil {
		first.Failure = err.Error()
	}
	if b != nil {
		defer b.Close()
	}
	if err := stream.Send(first); err != nil {
		return err
	}
	switch {
	case first.Failure != "" || h.Describe:
	case b != nil:
		if _, err := (wire.RawWriter{Stream: stream}).ReadFrom(b); err != nil {
			return err
		}
	default:
		if err := r.store.Splits.Send(pack.SplitKey{Node: int(h.Node), Split: int(h.Split)},
			wire.RawWriter{Stream: stream}); err != nil {
			return err // the stream breaks off with the context
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// peer returns the blocks of another runner, or of the driver.
func (r *localRunner) peer(addr string) (wire.BlocksClient, error) {
	c, err := r.reached(addr)
	if err != nil {
		return nil, err
	}
	return wire.NewBlocksClient(c), nil
}

// reached returns a connection to another runner, or to the driver.
func (r *localRunner) reached(addr string) (*grpc.ClientConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.peers[addr]; c != nil {
		return c, nil
	}
	dial := func() (*grpc.ClientConn, error) { return r.self.dial(addr) }
	if addr == r.process.Driver {
		dial = r.self.driver
	}
	c, err := dial()
	if err != nil {
		return nil, err
	}
	if r.peers == nil {
		r.peers = map[string]*grpc.ClientConn{}
	}
	r.peers[addr] = c
	return c, nil
}

// open starts receiving a split from another runner, or only its pack's
// description: through the driver where it cannot be reached.
func (r *localRunner) open(ctx context.Context, from executor.Peer, key pack.SplitKey,
	describe bool) (wire.Blocks_FetchClient, *pack.Meta, error) {
	req := &wire.BlockRequest{Node: uint32(key.Node), Split: uint32(key.Split), Describe: describe, Job: r.process.Job,
		From: string(from.ID)}
	stream, meta, err := r.reach(ctx, from, req)
	if err != nil {
		return nil, nil, fetchFailed(key, from, err)
	}
	return stream, meta, nil
}

// reach requests a block from a runner, through the driver where the runner
// cannot be reached.
func (r *localRunner) reach(ctx context.Context, from executor.Peer, req *wire.BlockRequest) (wire.Blocks_FetchClient,
	*pack.Meta, error) {
	err := status.Error(codes.Unavailable, "it cannot be reached")
	if from.Address != "" && !r.process.Unreachable {
		var stream wire.Blocks_FetchClient
		var meta *pack.Meta
		if stream, meta, err = r.begin(ctx, from.Address, req); err == nil {
			return stream, meta, nil
		}
	}
	if status.Code(err) == codes.Unavailable {
		var stream wire.Blocks_FetchClient
		var meta *pack.Meta
		if stream, meta, err = r.begin(ctx, r.process.Driver, req); err == nil {
			return stream, meta, nil
		}
	}
	return nil, nil, err
}

func fetchFailed(key pack.SplitKey, from executor.Peer, err error) error {
	return fault.New(fault.FetchFailed, fmt.Sprintf("fetch split %d from", key.Split), string(from.ID), err)
}

// begin requests a block at an address and reads the first message.
func (r *localRunner) begin(ctx context.Context, addr string, req *wire.BlockRequest) (wire.Blocks_FetchClient,
	*pack.Meta, error) {
	c, err := r.peer(addr)
	if err != nil {
		return nil, nil, err
	}
	stream, err := c.Fetch(ctx, req, wire.RawCodec())
	if err != nil {
		return nil, nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if req.Shuffled {
		return stream, nil, nil
	}
	meta := &pack.Meta{}
	return stream, meta, json.Unmarshal(first.Meta, meta)
}

// Meta describes a pack that a peer holds splits of.
func (r *localRunner) Meta(ctx context.Context, from executor.Peer, node int) (*pack.Meta, error) {
	if meta := r.engine.Load().Meta(node); meta != nil {
		return meta, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, meta, err := r.open(ctx, from, pack.SplitKey{Node: node}, true)
	return meta, err
}

// FetchSplit writes the bytes of a split that a peer holds.
func (r *localRunner) FetchSplit(ctx context.Context, from executor.Peer, key pack.SplitKey, w io.Writer) error {
	ctx, alive, done := whileAlive(ctx)
	defer done()
	stream, _, err := r.open(ctx, from, key, false)
	if err != nil {
		return err
	}
	return receive(stream, w, alive, func(err error) error { return fetchFailed(key, from, err) })
}
