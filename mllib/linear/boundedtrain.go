package linear

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/mllib/internal/workers"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/tables"
)

// boundedRun is a training on tables.
type boundedRun struct {
	workers.Run
	job   boundedJob
	plan  *boundedPlan
	param boundedParam
}

// boundedJob makes passes over all rows at Y.
type boundedJob interface {
	// whole returns the objective, and the gradient of the mean loss in the variables.
	whole(ctx context.Context) (objective float64, slope []float64, err error)
	// evaluate returns the objective alone, as an evaluation.
	evaluate(ctx context.Context, iteration int) (float64, error)
}

// Begin finds the gradient where workers begin.
func (r *boundedRun) Begin(ctx context.Context, step, part float64) (f float64, err error) {
	r.param.Start, r.param.Step, r.param.Part = slices.Clone(r.Y), step, part
	f, r.param.Slope, err = r.job.whole(ctx)
	return f, err
}

// Clocks runs workers.
func (r *boundedRun) Clocks(ctx context.Context, clocks int, kept tables.Kept) iter.Seq2[*tables.Tick, error] {
	return r.plan.workers.Clocks(ctx, r.Session, r.param, clocks, 1, kept)
}

// Evaluate finds the objective.
func (r *boundedRun) Evaluate(ctx context.Context, iteration int) (float64, error) {
	return r.job.evaluate(ctx, iteration)
}

// trainBounded trains on tables.
func (t *trainer) trainBounded(ctx context.Context) error {
	r := t.cfg.boundedRun(&t.Training, t, t.plan.bounded, t.meta, t.prob, &t.st.Point, &t.stop, t.moments)
	r.param.Width = t.st.Width
	t.st.Best = math.NaN()
	return r.train(ctx, &t.st.Point)
}

// whole makes a pass over all rows at Y.
func (t *trainer) whole(ctx context.Context) (f float64, slope []float64, err error) {
	p := t.prob.param(t.st.Y)
	p.Width = t.st.Width
	g, err := t.plan.Gradient.Uncut().Run(ctx, t.Session, p)
	if err != nil {
		return 0, nil, err
	}
	info := t.Session.LastInfo()
	slope = make([]float64, t.prob.size())
	t.prob.slopes(slope, g.Sum, g.Coef, info.Weight)
	return t.prob.objective(t.st.Y, g.Loss, info.Weight), slope, nil
}

// trainBounded trains on tables.
func (t *softmax) trainBounded(ctx context.Context) error {
	r := t.cfg.boundedRun(&t.Training, t, t.plan.bounded, t.meta, t.prob, &t.st.Point, &t.stop, t.moments)
	r.param.Labels, r.param.Counts = t.label, t.weights
	if err := t.cfg.holds(t.meta, len(t.label)); err != nil {
		return err
	}
	return r.train(ctx, &t.st.Point)
}

// mostKept is how much memory what workers keep of all rows may take.
const mostKept = 4 << 30

// holds refuses to keep a number for each row and class where that is too much.
func (c *Config) holds(meta *pack.Meta, classes int) error {
	if kept := 8 * float64(meta.Rows) * float64(classes); kept > mostKept {
		return fault.Newf(fault.Usage, "train", c.job(),
			"workers keep a number for each of %d rows and %d classes: %.1f GiB, and at most %d", meta.Rows,
			classes, kept/(1<<30), mostKept>>30).
			WithHint("--sync auto, steal or absp train without")
	}
	return nil
}

// whole makes a pass over all rows at Y.
func (t *softmax) whole(ctx context.Context) (f float64, slope []float64, err error) {
	s, err := t.plan.Gradient.Uncut().Run(ctx, t.Session, t.param(t.st.Y))
	if err != nil {
		return 0, nil, err
	}
	info := t.Session.LastInfo()
	slope = make([]float64, len(t.grad))
	t.slopes(slope, s, info.Weight)
	return t.objective(t.st.Y, s.Loss, info.Weight), slope, nil
}

// boundedRun prepares a run of workers.
func (c *Config) boundedRun(t *train.Training, job boundedJob, plan *boundedPlan, meta *pack.Meta, prob *problem,
	at *solver.Point, stop *train.Stopper, m fold.Moments) *boundedRun {
	b := c.Bounded
	r := &boundedRun{job: job, plan: plan, Run: workers.Run{Training: t, Name: c.job(), Rules: c.rules(), Stop: stop,
		By: b, Moves: plan.moves, Y: at.Y, Step: at.Step, Rows: b.Rows(meta), Limit: c.MaxIterations}}
	r.Job = r
	r.param = boundedParam{Scale: prob.scale, Mean: prob.mean, Penalty: prob.penalty, Lasso: prob.lasso,
		Reg: prob.reg, Positive: prob.positive, Counted: prob.counted,
		Weights: prob.weights, Weight: m.Weight, Passes: b.Passes, Batch: b.Batch}
	all := 1 / at.Step                                        // curvature of the objective, at the most
	row := prob.steepestBy(1+num.Sum(prob.squares(m)), false) // of the mean row's loss
	if c.Loss == Hinge {                                      // which is smoothed over little, where few rows are
		all, row = all*steadyWidth, row*steadyWidth
	}
	if r.param.Batch == 0 {
		r.param.Batch = b.Items(meta, batchOf(meta, prob.size(), row/all))
	}
	if c.StepSize == 0 {
		steps := float64(b.Rows(meta)) / float64(len(meta.Splits)*r.param.Batch)
		r.Step = boundedStep(c.Loss, steps) / (all + row/float64(r.param.Batch))
	}
	plan.slopes.Resize(len(at.Y))
	return r
}

// train runs workers until the run ends, and leaves it at the best point.
func (r *boundedRun) train(ctx context.Context, at *solver.Point) error {
	if err := r.Train(ctx); err != nil {
		return err
	}
	if len(r.param.Lasso) > 0 && r.Ending.StoppedBy != "interrupted" {
		if err := r.sparsify(context.WithoutCancel(ctx), at.Step); err != nil {
			return err
		}
	}
	copy(at.X, at.Y)
	return nil
}

// boundedStep returns what a step is of the one that the steepest curvature of a batch allows. Where a clock has only
// some steps it is twice as long for losses that curve little, or not at all, on the right side: with more of them what
// batches differ by would add up.
func boundedStep(l Loss, steps float64) float64 {
	switch {
	case l == Squared:
		return 0.5
	case l == SquaredHinge || steps >= manySteps:
		return 1
	}
	return 2
}

// manySteps are those of a clock in which a step has forgotten the first.
const manySteps = 4

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

// sparsify takes one step along the gradient of all rows, after which variables that the L1 penalty holds at zero are
// zero: sums of many workers' moves only come close to it.
func (r *boundedRun) sparsify(ctx context.Context, step float64) error {
	_, slope, err := r.job.whole(ctx)
	if err != nil {
		return err
	}
	for i, g := range slope {
		j := i % len(r.param.Lasso)
		if j < len(r.param.Penalty) {
			g = math.FMA(float64(r.param.Reg*r.param.Penalty[j]), r.Y[i], g)
		}
		r.Y[i] = num.Soft(r.Y[i]-float64(step*g), float64(step*r.param.Lasso[j]))
	}
	return nil
}
