package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/internal/trust"
	"github.com/volley-engine/volley/internal/wire"
)

// giveWait bounds the wait for a runner that was asked for a block.
const giveWait = 10 * time.Second

// handovers are the blocks in transfer between runners that cannot reach each
// other.
type handovers struct {
	mu   sync.Mutex
	open map[string]*handover // by ticket, until the giver has connected
}

type handover struct {
	to   wire.Blocks_FetchServer
	done chan error
}

func (h *handovers) put(ticket string, o *handover) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[string]*handover{}
	}
	h.open[ticket] = o
}

// claim takes a handover over; nil where another caller has or it was given up.
func (h *handovers) claim(ticket string) *handover {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.open[ticket]
	delete(h.open, ticket)
	return o
}

// Fetch sends a runner a block that it cannot fetch from its holder directly.
func (d *Daemon) Fetch(req *wire.BlockRequest, stream wire.Blocks_FetchServer) error {
	w, err := d.jobs.find(req.Job)
	if err != nil {
		return err
	}
	if err := d.admitJob(stream.Context(), w); err != nil {
		return err
	}
	m := d.members.get(req.From)
	if m == nil {
		return status.Errorf(codes.Unavailable, "executor %q is not connected", req.From)
	}
	ticket, o := trust.NewSecret(), &handover{to: stream, done: make(chan error, 1)}
	d.handovers.put(ticket, o)
	raw, err := proto.Marshal(&wire.ToExecutor{Body: &wire.ToExecutor_Hand{Hand: &wire.Hand{Ticket: ticket,
		Node: req.Node, Split: req.Split, Describe: req.Describe,
		Shuffled: req.Shuffled, Map: req.Map, Attempt: req.Attempt, Through: req.Through}}})
	if err != nil {
		return err
	}
	_ = m.out.Put(&wire.ForExecutor{Body: &wire.ForExecutor_Relay{Relay: &wire.Relay{Peer: req.Job, Data: raw}}})
	ctx, cancel := context.WithTimeout(stream.Context(), giveWait)
	defer cancel()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	case <-m.ended:
	case <-d.ctx.Done():
	}
	if d.handovers.claim(ticket) == nil {
		return <-o.done // the giver is connected: it ends with the block, or with its connection
	}
	return status.Error(codes.Unavailable, fmt.Sprintf("executor %s did not hand its block over within %v", req.From,
		giveWait))
}

// Give serves the stream on which a runner hands over a block.
func (d *Daemon) Give(stream wire.Blocks_GiveServer) (err error) {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	o := d.handovers.claim(first.Ticket)
	if o == nil {
		return status.Error(codes.NotFound, "this block is no longer waited for")
	}
	defer func() { o.done <- err }()
	if first.Failure != "" {
		return status.Error(codes.NotFound, first.Failure)
	}
	if err := o.to.Send(&wire.BlockPart{Meta: first.Meta}); err != nil {
		return err
	}
	if err := wire.CopyRaw(stream, func(raw *wire.Raw) error { return o.to.SendMsg(raw) }); err != nil {
		return err
	}
	return stream.SendAndClose(&wire.GiveReply{})
}
