package linear

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/tables"
)

// boundedRun is a training on tables. It has a run of workers, or several: one whose steps lead nowhere is followed by
// one that begins at the best point, with smaller steps.
type boundedRun struct {
	*trainer
	param  boundedParam
	best   []float64 // variables
	last   []float64 // at the tick before
	least  float64   // objective there
	first  float64   // objective where the run began
	idle   int       // ticks since
	halves int       // how often steps were made smaller
	took   time.Duration
}

// When a run of workers leads nowhere: a number of ticks in a row without a lower objective, fewer where it has grown
// by this share of what had been gained; and how often steps may be made smaller.
const (
	mostIdle   = 6
	fewIdle    = 2
	grownShare = 0.05
	mostHalves = 60
	leastPart  = 1.0 / 16
)

// trainBounded trains on tables.
func (t *trainer) trainBounded(ctx context.Context) error {
	r := &boundedRun{trainer: t, least: math.Inf(1), last: slices.Clone(t.st.Y)}
	r.param = t.boundedParam(t.moments)
	p := t.plan.bounded
	p.moves.Resize(t.prob.size())
	p.slopes.Resize(t.prob.size())
	for again := true; again; {
		var err error
		if again, err = r.run(ctx); err != nil {
			return err
		}
	}
	copy(t.st.Y, r.best)
	if t.prob.lasso != nil && t.st.Ending.StoppedBy != "interrupted" {
		if err := r.sparsify(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	copy(t.st.X, t.st.Y)
	t.st.Best = math.NaN()
	return nil
}

// boundedParam chooses how workers step.
func (t *trainer) boundedParam(m fold.Moments) boundedParam {
	b, n := t.cfg.Bounded, t.prob.size()
	p := boundedParam{Scale: t.prob.scale, Mean: t.prob.mean, Penalty: t.prob.penalty, Lasso: t.prob.lasso,
		Start: slices.Clone(t.st.Y), Reg: t.prob.reg, Positive: t.prob.positive, Counted: t.prob.counted,
		Weights: t.prob.weights, Width: t.st.Width, Weight: m.Weight, Passes: b.Passes, Batch: b.Batch,
		Step: t.st.Step, Part: 1}
	all := 1 / t.st.Step                                          // curvature of the objective, at the most
	row := t.prob.steepestBy(1+num.Sum(t.prob.squares(m)), false) // of the mean row's loss
	if t.cfg.Loss == Hinge {                                      // which is smoothed over little, where few rows are
		all, row = all*p.Width, row*p.Width
	}
	if p.Batch == 0 {
		p.Batch = batchOf(t.meta, n, row/all)
	}
	if t.cfg.StepSize == 0 {
		p.Step = boundedStep(t.cfg.Loss) / (all + row/float64(p.Batch))
	}
	return p
}

// boundedStep returns what a step is of the one that the steepest curvature of a batch allows: rows on the right side
// curve little, or not at all.
func boundedStep(l Loss) float64 {
	switch l {
	case Squared:
		return 0.5
	case SquaredHinge:
		return 1
	}
	return 2
}

// Rows of a worker's step.
const (
	leastBatch = 16
	mostBatch  = 1024
)

// batchOf returns how many rows a step is of: as many as together curve about as all do, so that a step is as long as
// one along all rows; and enough to be worth looking at all variables.
func batchOf(meta *pack.Meta, variables int, rows float64) int {
	entries := float64(variables)
	if meta.Layout == pack.SparseLayout {
		entries = float64(meta.Nonzeros) / float64(max(1, meta.Rows))
	}
	return int(min(mostBatch, max(leastBatch, rows, float64(variables)/max(1, entries))))
}

// run runs workers from where the run before has come to; again reports whether another is to follow.
func (r *boundedRun) run(ctx context.Context) (again bool, err error) {
	work := context.WithoutCancel(ctx)
	if err := r.begins(work); err != nil {
		return false, err
	}
	left := r.cfg.MaxIterations - r.out.Iterations
	before := r.took
	for tick, err := range r.plan.bounded.workers.Clocks(ctx, r.Session, r.param, left, 1) {
		if err != nil {
			return false, r.ended(ctx, err)
		}
		r.took = before + tick.Took
		r.out.Iterations++
		r.out.Waited = tick.WaitedShare()
		r.out.Processed += int64(math.Round(r.param.Passes * float64(r.meta.Rows)))
		stop, smaller, err := r.look(work, tick)
		if err != nil {
			return false, err
		}
		if stop || smaller {
			tick.Stop()
			again = smaller && r.out.Iterations < r.cfg.MaxIterations
			break
		}
	}
	return again, nil
}

// ended takes the end of workers: an interruption is none of an error.
func (r *boundedRun) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		r.Ends("interrupted")
		return nil
	}
	return err
}

// begins finds the gradient where workers begin.
func (r *boundedRun) begins(ctx context.Context) error {
	copy(r.st.Y, r.param.Start)
	p := r.prob.param(r.st.Y)
	p.Width = r.st.Width
	began := r.Session.Now()
	g, err := r.plan.Gradient.Uncut().Run(ctx, r.Session, p)
	if err != nil {
		return err
	}
	r.took += r.Session.Now() - began
	info := r.Session.LastInfo()
	r.out.Processed += info.Merged
	r.param.Slope = make([]float64, r.prob.size())
	r.prob.slopes(r.param.Slope, g.Sum, g.Coef, info.Weight)
	f := r.prob.objective(r.st.Y, g.Loss, info.Weight)
	if r.best == nil {
		r.first = f
	}
	if f < r.least {
		r.notes(f)
	}
	return train.FiniteAtFirst(r.cfg.job(), r.first)
}

// notes takes the point in hand for the best.
func (r *boundedRun) notes(f float64) {
	r.best, r.least, r.idle = append(r.best[:0], r.st.Y...), f, 0
}

// look finds the objective at a tick, by a pass over all rows at what the tables are after exactly its clocks, and
// whether that ends the run, or this run of workers.
func (r *boundedRun) look(ctx context.Context, tick *tables.Tick) (stop, smaller bool, err error) {
	copy(r.st.Y, r.param.Start)
	r.plan.bounded.moves.AddAt(tick, r.st.Y)
	f := math.Inf(1)
	if !slices.ContainsFunc(r.st.Y, func(v float64) bool { return !num.Finite(v) }) {
		if f, err = r.evaluate(ctx, r.out.Iterations); err != nil {
			return false, false, err
		}
		tick.Report("objective", f)
	}
	if r.idle++; f < r.least {
		r.notes(f)
	}
	o := train.Observation{Iteration: r.out.Iterations, Objective: f, Exact: true, Now: r.took, HasMoved: true,
		Moved: num.Distance(r.last, r.st.Y), Norm: math.Sqrt(kernel.Dot(r.st.Y, r.st.Y))}
	copy(r.last, r.st.Y)
	if why := r.stop.Check(o).Stop; why != "" {
		r.Ends(why)
		return true, false, nil
	}
	if !r.astray(f) {
		return false, false, nil
	}
	return false, true, r.smaller(f, tick)
}

// astray reports whether workers lead nowhere, by the objective at a tick.
func (r *boundedRun) astray(f float64) bool {
	above := f - r.least
	switch {
	case above <= float64(r.cfg.Tol*max(1, math.Abs(r.least))):
		return false
	case !num.Finite(f) || r.idle >= mostIdle:
		return true
	}
	return r.idle >= fewIdle && above > float64(grownShare*(r.first-r.least))
}

// smaller has the next workers begin at the best point. Where the objective is finite and below that of the beginning
// it is what workers do not see of each other that leads astray, and each adds a smaller part of its moves; else steps
// are too long in themselves.
func (r *boundedRun) smaller(f float64, tick *tables.Tick) error {
	if r.halves++; r.halves > mostHalves {
		return fault.Newf(fault.BadInput, "train", r.cfg.job(),
			"the objective grows, however small the steps of workers").
			WithHint("scale columns: --scale standard, or --standardize; or give a smaller --step-size")
	}
	if f < r.first && r.param.Part > leastPart {
		r.param.Part /= 2
		tick.Report("part", r.param.Part)
	} else {
		r.param.Step /= 2
		tick.Report("step", r.param.Step)
	}
	r.param.Start = slices.Clone(r.best)
	r.idle = 0
	return nil
}

// sparsify takes one step along the gradient of all rows, after which variables that the L1 penalty holds at zero are
// zero: sums of many workers' moves only come close to it.
func (r *boundedRun) sparsify(ctx context.Context) error {
	g, err := r.plan.Gradient.Uncut().Run(ctx, r.Session, r.prob.param(r.st.Y))
	if err != nil {
		return err
	}
	r.prob.gradient(r.grad, r.st.Y, g, r.Session.LastInfo().Weight)
	for j, slope := range r.grad {
		r.st.Y[j] = num.Soft(r.st.Y[j]-float64(r.st.Step*slope), float64(r.st.Step*r.prob.lasso[j]))
	}
	return nil
}
