package rdd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/pack"
)

// Gang is the members of work that goes on on all executors at once and sends messages, as the job's process sees
// them. It is for package tables, as is all of this file, and promises nothing to others.
type Gang interface {
	// Slots returns how many slots each member has.
	Slots() []int
	// Names returns those of the members.
	Names() []string
	// Homes returns, of each split of the pack, the member that holds it.
	Homes() []int
	// Send sends a member a message, once there is room. The message is the caller's own again when it returns.
	Send(member int, message []byte) error
	// Recv waits for the next message of a member. Its error is why the gang has ended: of kind fault.ExecutorLost
	// where a member is gone, fault.FetchFailed where one does not reach another, or what the work has returned.
	Recv() (member int, message []byte, err error)
	// Timeout returns how long a worker may give no sign.
	Timeout() time.Duration
	// Grown reports whether there are executors that could take part, and do not yet.
	Grown() bool
	// Close ends the work of all members.
	Close()
}

// ErrDrained says that a member leaves as it was asked to.
var ErrDrained = errors.New("it is drained")

// Leader is the job's process among the members of a gang.
const Leader = -1

// Member is a member of a gang, as its work sees it.
type Member struct {
	Number int
	Slots  int
	// Send sends another member, or the leader, a message, once there is room. The message is the caller's own again
	// when it returns.
	Send func(to int, message []byte) error
	// Recv waits for the next message; the error is fault.Cancelled where the work is to end.
	Recv func() (from int, message []byte, err error)
	// Pause waits while other jobs have the slots, or until the context has ended, and returns for how long.
	Pause func(ctx context.Context) time.Duration
	// Fail tells the job's process that the work has failed here, before all of it has ended; nil in tests.
	Fail func(err error)
	// Pacer returns the pacer of a slot; nil where it runs at its own pace.
	Pacer func(slot int) Pacer
	// Open opens a split of the pack: one that is held here, or is brought from where it is, or made again.
	Open func(ctx context.Context, split int) (*pack.Split, error)
}

// ganging is a cluster whose executors are other processes.
type ganging interface {
	// Gather begins a node's work on all executors that work over a pack may be given to; before is why the last such
	// work has ended, if it was begun.
	Gather(ctx context.Context, work, pack int, before error) (Gang, error)
}

// Gather begins the work of a node on the executors of a pack; before is why the last has ended, if there was one.
func (pk Packed[T]) Gather(ctx context.Context, s *Session, work int, before error) (Gang, error) {
	if _, err := pk.Meta(ctx, s); err != nil {
		return nil, err
	}
	return whilePacked(ctx, s, pk.id, func() (Gang, error) {
		return s.cluster.(ganging).Gather(ctx, work, pk.id, before)
	})
}

// Elsewhere reports whether the executors are other processes, so that work over a pack's splits needs a gang.
func (pk Packed[T]) Elsewhere(s *Session) bool {
	c, ok := s.cluster.(interface{ Elsewhere() bool })
	return ok && c.Elsewhere()
}

// At opens splits of a pack at a member of a gang, which others of its process may have open: they stay so.
func (pk Packed[T]) At(ctx context.Context, m *Member, splits []int) (*Resident[T], error) {
	r := &Resident[T]{codec: rowCodecFor[T](), splits: map[int]*pack.Split{}}
	for _, k := range splits {
		split, err := m.Open(ctx, k)
		if err != nil {
			return nil, err
		}
		r.splits[k] = split
	}
	return r, nil
}

// gangFunc is a member's work.
type gangFunc func(ctx context.Context, m *Member) error

// DeclareGang adds work to the plan that executors do at once, and returns the number of its node.
func DeclareGang(g *Graph, kind, detail string, work func(context.Context, *Member) error, mistakes ...error) int {
	for _, m := range mistakes {
		g.fail("%s: %v", kind, m)
	}
	return g.add(node{kind: kind, typ: "-", detail: detail, gang: work})
}

// RunGang does a member's work of a node.
func (g *Graph) RunGang(ctx context.Context, id int, m *Member) (err error) {
	if id < 0 || id >= g.size() || g.node(id).gang == nil {
		return fault.Newf(fault.PlanMismatch, "run", fmt.Sprintf("node %d", id), "no executors work on it at once")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fault.Newf(fault.UserCode, "run", g.node(id).kind, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return g.node(id).gang(ctx, m)
}
