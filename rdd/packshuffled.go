package rdd

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/scheduler"
)

// A pack of rows that come from shuffles is made by a task, which is told where the outputs of map tasks lie, as every
// task is. Other executors cannot make it again by themselves: where the last holder of a split is lost, what asked for
// the pack fails with ErrPackGone, and the session has it made once more, and runs that again.

// PackMaker has an executor make the pack of a node, which reads shuffles.
type PackMaker func(ctx context.Context, node int) (*MadePack, error)

// ErrPackGone says that rows of a pack are lost, and no executor can make them alone.
var ErrPackGone = errors.New("its rows are lost, and have to be made again")

// MadeByTask reports whether what a node is computed from is known to tasks only: where shuffled rows lie, what was
// decided, such as the numbers of rows before each partition.
func (g *Graph) MadeByTask(node int) bool {
	seen := map[int]bool{}
	var walk func(id int) bool
	walk = func(id int) bool {
		seen[id] = true
		for _, list := range g.node(id).alternatives() {
			for _, in := range list {
				n := g.node(in)
				if n.shuffle != nil || n.settle != nil || n.choice != nil || !seen[in] && walk(in) {
					return true
				}
			}
		}
		return false
	}
	return walk(node)
}

// InTask reports whether a context is that of a task, which can read shuffles.
func InTask(ctx context.Context) bool {
	_, err := envOf(ctx)
	return err == nil
}

// makePack runs what a pack's rows come from, and then the task that makes the pack.
func (s *Session) makePack(ctx context.Context, node int) (*MadePack, error) {
	if err := s.settleAction(ctx, node); err != nil {
		return nil, err
	}
	raws, err := s.call(ctx, node, plan.NoPack, make([][]byte, 1))
	if err != nil {
		return nil, err
	}
	made := &MadePack{}
	if err := json.Unmarshal(raws[0], made); err != nil {
		return nil, fault.New(fault.Corrupt, "read", "the description of a pack", err)
	}
	return made, nil
}

// whilePacked runs what reads a pack; where the pack's rows are lost meanwhile, once more after they have been made.
func whilePacked[R any](ctx context.Context, s *Session, node int, run func() (R, error)) (R, error) {
	r, err := run()
	for again := 0; errors.Is(err, ErrPackGone) && again < scheduler.MaxRounds; again++ {
		delete(s.packs, node)
		if _, err = s.open(ctx, node); err == nil {
			r, err = run()
		}
	}
	return r, err
}

// mayPack notes as mistakes of the plan what a pack, which is made once and found again, cannot follow: rows that
// change while the plan runs, and counting where it is made.
func (g *Graph) mayPack(id int) {
	type seen struct {
		id     int
		narrow bool
	}
	done := map[seen]bool{}
	var walk func(id int, narrow bool)
	walk = func(id int, narrow bool) {
		n := g.node(id)
		narrow = narrow && n.shuffle == nil
		if done[seen{id, narrow}] {
			return
		}
		done[seen{id, narrow}] = true
		switch {
		case len(n.params) > 0:
			g.fail("pack: its rows depend on %s, which may be set anew; a pack is made once",
				Param[any]{g, n.params[0]}.name())
		case n.kind == "loop":
			g.fail("pack: its rows are those of a Loop's present round; a pack is made once")
		case narrow && (n.kind == "tally" || n.kind == "accumulate"):
			g.fail("pack: its rows are counted on the way, and one that is found again is not made; count in an action")
		}
		for _, list := range n.alternatives() {
			for _, in := range list {
				walk(in, narrow)
			}
		}
	}
	walk(id, true)
}

// alternatives returns the inputs of each way of computing a node.
func (n *node) alternatives() [][]int {
	if n.choice != nil {
		return n.choice.inputs
	}
	return [][]int{n.inputs}
}
