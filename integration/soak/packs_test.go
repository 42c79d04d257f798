package soak

import (
	"context"
	"fmt"
	"sync"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// packs are the packs of a rack, on a disk that all its executors reach.
type packs struct {
	maker *rdd.Maker
	mu    sync.Mutex
	known map[int]*pack.Pack
}

// Pack is where the pack of a node lies.
func (p *packs) Pack(_ context.Context, node int) (string, *pack.Meta, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pack := p.known[node]; pack != nil {
		return pack.Dir, pack.Meta, nil
	}
	return "", nil, fault.Newf(fault.FetchFailed, "find", fmt.Sprintf("the pack of node %d", node),
		"it has not been made")
}

// Meta describes a pack that any executor holds splits of.
func (p *packs) Meta(ctx context.Context, _ executor.Peer, node int) (*pack.Meta, error) {
	_, meta, err := p.Pack(ctx, node)
	return meta, err
}

// OpenPack makes a pack and places its splits.
func (r *rack) OpenPack(ctx context.Context, node int, _ rdd.PackMaker) (int, *pack.Meta, error) {
	pack, err := r.maker.Make(ctx, node)
	if err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	r.known[node] = pack
	r.mu.Unlock()
	info := &driver.PackInfo{Node: node}
	for _, s := range pack.Meta.Splits {
		info.Rows, info.Bytes, info.SHA256 = append(info.Rows, s.Rows), append(info.Bytes, s.Bytes),
			append(info.SHA256, s.SHA256)
	}
	c, err := r.Driver.Ask(ctx, driver.Event{Pack: info})
	if err != nil {
		return 0, nil, err
	}
	return *c.PackOpen, pack.Meta, nil
}

// RunStep folds a pack.
func (r *rack) RunStep(ctx context.Context, q plan.StepRequest) (*plan.StepOutcome, error) {
	c, err := r.Driver.Ask(ctx, driver.Event{Step: &q})
	if err != nil {
		return nil, err
	}
	return &c.StepDone.Outcome, nil
}

// Extend is not asked for: the soak's plans do not grow.
func (r *rack) Extend(context.Context, plan.Extension) error { return nil }

// RunCall runs an action's tasks.
func (r *rack) RunCall(ctx context.Context, c plan.CallRequest) ([][]byte, []error, error) {
	done, err := r.Driver.Ask(ctx, driver.Event{Call: &c})
	if err != nil {
		return nil, nil, err
	}
	return done.CallDone.Data, done.CallDone.Lost, nil
}

// Shuffled notes nothing.
func (r *rack) Shuffled(plan.Shuffled) {}

// Commit keeps nothing.
func (r *rack) Commit(context.Context, rdd.Commit) error { return nil }

// Evaluated notes nothing.
func (r *rack) Evaluated(rdd.Evaluation) {}

// Signal tells nobody.
func (r *rack) Signal(float64, float64) {}

// Resume has nothing to go on from.
func (r *rack) Resume(int) rdd.LoopMark { return rdd.LoopMark{} }

var (
	_ rdd.Cluster      = (*rack)(nil)
	_ executor.Catalog = (*rack)(nil)
)
