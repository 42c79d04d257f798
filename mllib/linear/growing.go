package linear

import (
	"context"
	"errors"
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// startSamples notes the objective where the run begins, so that it ends nowhere above, and takes the first sample so
// large that it has rows of both labels.
func (t *trainer) startSamples(ctx context.Context, m fold.Moments) (err error) {
	t.sample = t.st.Solver.(*solver.Growing)
	rarer := min(m.Labels, m.Weight-m.Labels) / t.Each
	*t.sample = *solver.NewGrowing(2*rarer, float64(len(t.st.Y)))
	start := t.prob.objective(t.st.Y, t.constantLoss(m), m.Weight)
	if t.cfg.Init != nil {
		if start, err = t.evaluate(ctx, 0); err != nil {
			return err
		}
	}
	t.st.Guard.Note(t.st.Y, start, true)
	return nil
}

// constantLoss returns the loss of all rows at the best model without features.
func (t *trainer) constantLoss(m fold.Moments) float64 {
	f := kernel.Loss{Kind: t.cfg.Loss.kind(), Weights: t.prob.weights}
	var coef, loss [2]float64
	f.Derive(coef[:], loss[:], make([]float64, 2), t.prob.param(t.st.Y).Bias, []float64{0, 1})
	return math.FMA(loss[1], m.Labels, float64(loss[0]*(m.Weight-m.Labels)))
}

// grow takes one step of Newton's method on a sample of the rows, which may be cut, or on all of them.
func (t *trainer) grow(ctx context.Context, it *rdd.Iteration) error {
	if init := t.cfg.Init; it.Number == 1 && init != nil && init.Ended.is(&t.cfg, t.meta, t.st.Guard.F) {
		t.out.Iterations, t.st.Best = it.Number, t.st.Guard.F
		t.End(it, "tolerance")
		return nil
	}
	c, err := t.sampled(ctx)
	if errors.Is(err, rdd.ErrNoWeight) && t.sample.Share < 1 {
		t.sample.All()
		return nil
	}
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	objective := t.prob.objective(t.st.Y, c.Loss, info.Weight)
	unsure := t.StandardError(c.Loss, c.LossSq) / t.prob.counted
	o := t.Observed(it.Number, objective, unsure)
	if o.Exact {
		t.st.Guard.Lowest(t.st.Y, objective)
	}
	if done, err := t.judgeSample(ctx, it, o); done || err != nil {
		return err
	}
	if !o.Exact {
		t.growTo(c, o, info, unsure)
		return nil
	}
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	if point, better := t.st.Guard.Better(objective); better && t.sample.Whole == 0 { // samples have led astray
		copy(t.st.Y, point)
		t.sample.Restart()
		return nil
	}
	moved := t.growTo(c, o, info, unsure)
	if moved.Unsure || !moved.Over && !(moved.Falls <= float64(t.cfg.Tol*max(1, math.Abs(objective)))) {
		return nil
	}
	t.st.Ahead = !moved.Over
	if on, err := t.goesOn(ctx); on || err != nil {
		return err
	}
	t.End(it, "tolerance")
	return nil
}

// judgeSample applies the stop rules where they can be held against all rows; of samples, the limit of time alone.
func (t *trainer) judgeSample(ctx context.Context, it *rdd.Iteration, o train.Observation) (done bool, err error) {
	if !o.Exact {
		return t.JudgeSample(it, t.cfg.job(), &t.stop, o)
	}
	if err := train.FiniteAtFirst(t.cfg.job(), o.Objective); it.Number == 1 && err != nil {
		return true, err
	}
	it.Report("objective", o.Objective)
	return t.judge(ctx, it, o)
}

// sampled makes the pass at Y.
func (t *trainer) sampled(ctx context.Context) (curvature, error) {
	p, step := t.prob.param(t.st.Y), t.plan.Curvature
	p.Shift = t.center
	if t.sample.Share >= 1 {
		return step.Uncut().Run(ctx, t.Session, p)
	}
	t.Session.Sample(t.sample.Share)
	defer t.Session.Sample(0)
	return step.Run(ctx, t.Session, p)
}

// growTo takes what a pass has found out to the next point.
func (t *trainer) growTo(c curvature, o train.Observation, info rdd.StepInfo, unsure float64) solver.Moved {
	t.prob.gradient(t.grad, t.st.Y, c.Gradient, info.Weight)
	seen := &solver.Seen{F: o.Objective, G: t.grad, H: t.prob.hessian(c, t.center, info.Weight), Lasso: t.prob.lasso,
		Share: info.Share, Err: unsure, Hidden: t.hidden(c, info)}
	if o.Exact {
		seen.Share = 1
	}
	moved := t.st.Solver.Step(&t.st.Point, seen)
	if moved.Accepted {
		if t.st.Best = math.NaN(); o.Exact {
			t.st.Best = o.Objective
		}
	}
	return moved
}

// hidden returns by how much what is least for the rows of a pass lies above the least of all: half the trace of the
// covariance of their mean gradient in the metric of second derivatives. Both are sums of rows' squares, times squares
// of derivatives and second derivatives, so that the trace is about the ratio of these, for each variable.
func (t *trainer) hidden(c curvature, info rdd.StepInfo) float64 {
	total := c.H[len(c.H)-1]
	switch {
	case info.Merged == info.Rows:
		return 0
	case !(total > 0):
		return math.Inf(1)
	}
	return float64(float64(len(t.grad))*c.Spread) / float64(2*total*info.NEff) * (1 - info.Share) /
		float64(t.Each*t.prob.counted)
}
