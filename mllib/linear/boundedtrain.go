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
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/tables"
)

// boundedRun is a training on tables. It has a run of workers, or several: one whose steps lead nowhere is followed by
// one that begins at the best point, with smaller steps.
type boundedRun struct {
	*train.Training
	job   boundedJob
	cfg   *Config
	plan  *boundedPlan
	rows  int64 // of a clock
	stop  *train.Stopper
	param boundedParam
	y     []float64 // where passes are made
	at    boundedState
}

// boundedState is what a training hands from tick to tick, beside tables and workers.
type boundedState struct {
	Ticks      int // of the run of workers in hand
	Over       bool
	Iterations int
	Start      []float64 // where the next workers begin, and their steps
	Step, Part float64
	Best, Last []float64 // variables: of the lowest objective, and at the tick before
	Least      float64   // objective at the best
	First      float64   // objective where the run began
	Idle       int       // ticks since the best
	Halves     int       // how often steps were made smaller
	Took       time.Duration
	Rules      []float64 // what the stop rules remember
	Ending     train.Ending
}

// boundedJob is what a run of workers needs of the one who trains, where passes are over all rows at Y.
type boundedJob interface {
	// whole returns the objective, and the gradient of the mean loss in the variables.
	whole(ctx context.Context) (objective float64, slope []float64, err error)
	// evaluate returns the objective alone, as an evaluation.
	evaluate(ctx context.Context, iteration int) (float64, error)
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
	r := &boundedRun{Training: t, job: job, cfg: c, plan: plan, rows: c.Bounded.Rows(meta), stop: stop, y: at.Y}
	b := c.Bounded
	r.param = boundedParam{Scale: prob.scale, Mean: prob.mean, Penalty: prob.penalty, Lasso: prob.lasso,
		Reg: prob.reg, Positive: prob.positive, Counted: prob.counted,
		Weights: prob.weights, Weight: m.Weight, Passes: b.Passes, Batch: b.Batch}
	all := 1 / at.Step                                        // curvature of the objective, at the most
	row := prob.steepestBy(1+num.Sum(prob.squares(m)), false) // of the mean row's loss
	if c.Loss == Hinge {                                      // which is smoothed over little, where few rows are
		all, row = all*steadyWidth, row*steadyWidth
	}
	if r.param.Batch == 0 {
		r.param.Batch = batchOf(meta, prob.size(), row/all)
	}
	r.at = boundedState{Start: slices.Clone(at.Y), Step: at.Step, Part: 1, Last: slices.Clone(at.Y), Least: math.Inf(1)}
	if c.StepSize == 0 {
		r.at.Step = boundedStep(c.Loss) / (all + row/float64(r.param.Batch))
	}
	plan.moves.Resize(len(at.Y))
	plan.slopes.Resize(len(at.Y))
	return r
}

// train runs workers until the run ends, and leaves it at the best point.
func (r *boundedRun) train(ctx context.Context, at *solver.Point) (err error) {
	r.Under(r.cfg.rules())
	r.Summary.MeanShare = min(1, float64(r.rows)/float64(r.Summary.Rows))
	r.Summary.MeanNEff = float64(r.Summary.MeanShare * float64(r.Summary.Rows))
	for again := true; again; {
		if again, err = r.run(ctx); err != nil {
			return err
		}
	}
	r.Summary.Iterations = r.at.Iterations
	copy(at.Y, r.at.Best)
	if len(r.param.Lasso) > 0 && r.Ending.StoppedBy != "interrupted" {
		if err := r.sparsify(context.WithoutCancel(ctx), at.Step); err != nil {
			return err
		}
	}
	copy(at.X, at.Y)
	return r.SameRules()
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
	left, took := r.cfg.MaxIterations-r.at.Iterations, time.Duration(0)
	r.Session.ReopenIf(r.reopens)
	for tick, err := range r.plan.workers.Clocks(ctx, r.Session, r.param, left, 1, tables.Keep(&r.at)) {
		if err != nil {
			return false, r.ended(ctx, err)
		}
		r.Summary.Waited, r.Summary.Helped = tick.WaitedShare(), tick.Helped
		r.recall()
		if tick.Clock <= r.at.Ticks { // it is that of a job which goes on, and had been looked at
			continue
		}
		r.at.Took += tick.Took - took
		took = tick.Took
		r.at.Ticks++
		r.at.Iterations++
		r.Summary.Processed += r.rows
		if err := r.look(work, tick); err != nil {
			return false, err
		}
		r.at.Rules, r.at.Ending = r.stop.State.Floats(), *r.Ending
		if r.at.Over {
			tick.Stop()
		}
	}
	return r.at.Over && r.Ending.StoppedBy == "" && r.at.Iterations < r.cfg.MaxIterations, nil
}

// reopens has a run of workers go on that its limit of time had ended, where there is a longer one now, or none.
func (r *boundedRun) reopens() bool {
	if r.recall(); !r.Reopen() {
		return false
	}
	r.at.Over, r.at.Ending = false, *r.Ending
	return true
}

// recall takes up what was kept at the tick before, by another process where the job goes on.
func (r *boundedRun) recall() {
	if len(r.at.Rules) > 0 {
		_ = r.stop.State.SetFloats(r.at.Rules) // it was laid out by Floats
		*r.Ending = r.at.Ending
	}
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
	r.at.Ticks, r.at.Over = 0, false
	r.param.Start, r.param.Step, r.param.Part = r.at.Start, r.at.Step, r.at.Part
	copy(r.y, r.param.Start)
	began := r.Session.Now()
	f, slope, err := r.job.whole(ctx)
	if err != nil {
		return err
	}
	r.at.Took += r.Session.Now() - began
	r.Summary.Processed += r.Summary.Rows
	if r.param.Slope = slope; r.at.Best == nil {
		r.at.First = f
	}
	if f < r.at.Least {
		r.notes(f)
	}
	return train.FiniteAtFirst(r.cfg.job(), r.at.First)
}

// notes takes the point in hand for the best.
func (r *boundedRun) notes(f float64) {
	r.at.Best, r.at.Least, r.at.Idle = append(r.at.Best[:0], r.y...), f, 0
}

// look finds the objective at a tick, by a pass over all rows at what the tables are after exactly its clocks, and
// whether that ends the run, or this run of workers.
func (r *boundedRun) look(ctx context.Context, tick *tables.Tick) (err error) {
	copy(r.y, r.param.Start)
	r.plan.moves.AddAt(tick, r.y)
	f := math.Inf(1)
	if !slices.ContainsFunc(r.y, func(v float64) bool { return !num.Finite(v) }) {
		if f, err = r.job.evaluate(ctx, r.at.Iterations); err != nil {
			return err
		}
		tick.Report("objective", f)
	}
	if r.at.Idle++; f < r.at.Least {
		r.notes(f)
	}
	o := train.Observation{Iteration: r.at.Iterations, Objective: f, Exact: true, Now: r.at.Took, HasMoved: true,
		Moved: num.Distance(r.at.Last, r.y), Norm: math.Sqrt(kernel.Dot(r.y, r.y))}
	copy(r.at.Last, r.y)
	if why := r.stop.Check(o).Stop; why != "" {
		r.Ends(why)
		r.at.Over = true
		return nil
	}
	if r.at.Over = r.astray(f); r.at.Over {
		return r.smaller(f, tick)
	}
	return nil
}

// astray reports whether workers lead nowhere, by the objective at a tick.
func (r *boundedRun) astray(f float64) bool {
	above := f - r.at.Least
	switch {
	case above <= float64(r.cfg.Tol*max(1, math.Abs(r.at.Least))):
		return false
	case !num.Finite(f) || f > r.at.First || float64(r.at.Idle) >= mostIdle/min(1, r.param.Passes):
		return true
	}
	return r.at.Idle >= fewIdle && above > float64(grownShare*(r.at.First-r.at.Least))
}

// smaller has the next workers begin at the best point, and each add a smaller part of its moves: it may be what they
// do not see of each other that leads astray. Where the objective is above that of the beginning, or the part is small
// already, steps may be too long in themselves.
func (r *boundedRun) smaller(f float64, tick *tables.Tick) error {
	if r.at.Halves++; r.at.Halves > mostHalves {
		return fault.Newf(fault.BadInput, "train", r.cfg.job(),
			"the objective grows, however small the steps of workers").
			WithHint("scale columns: --scale standard, or --standardize; or give a smaller --step-size")
	}
	above := !(f < r.at.First)
	if above || r.at.Part <= leastPart {
		r.at.Step /= 2
		tick.Report("step", r.at.Step)
	}
	if r.at.Part > leastPart {
		r.at.Part /= 2
		tick.Report("part", r.at.Part)
	}
	r.at.Start = slices.Clone(r.at.Best)
	r.at.Idle = 0
	return nil
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
			g = math.FMA(float64(r.param.Reg*r.param.Penalty[j]), r.y[i], g)
		}
		r.y[i] = num.Soft(r.y[i]-float64(step*g), float64(step*r.param.Lasso[j]))
	}
	return nil
}
