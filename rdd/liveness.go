package rdd

import (
	"context"

	"github.com/volley-engine/volley/internal/runner"
)

// A task that says for long that nothing moves is given up: whatever hands rows on, or
// calls a function of the user's for each, says so.

// livenessRows is after how many calls of a user's function a task says that it gets on.
const livenessRows = 64

// liveness reports that a task makes progress. While a pack is made it does nothing.
type liveness struct {
	packs runner.TaskContext
	env   *taskEnv
}

func livenessOf(ctx context.Context) liveness {
	env, err := envOf(ctx)
	if err != nil {
		return liveness{}
	}
	return liveness{env.packs, env}
}

func (p liveness) moved(rows int) {
	if p.packs != nil {
		p.packs.Moved(rows)
	}
}

// each hands out the rows of a partition, and says that they pass.
func (ds Dataset[T]) each(ctx context.Context, part int, yield func(rows []T) error) error {
	p := livenessOf(ctx)
	return ds.pull(ctx, part, func(rows []T) error {
		p.moved(len(rows))
		return yield(rows)
	})
}

// pull hands out the rows of a partition to what says itself that they pass.
func (ds Dataset[T]) pull(ctx context.Context, part int, yield func(rows []T) error) error {
	if env, err := envOf(ctx); err == nil {
		if done, err := ds.inPieces(ctx, env, part, yield); done || err != nil {
			return err
		}
	}
	return ds.produce(ctx, part, yield)
}
