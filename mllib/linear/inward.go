package linear

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// startInterior begins the interior-point method at Y.
func (t *trainer) startInterior() {
	t.inner = t.st.Solver.(*solver.Inner)
	t.inner.Begin()
}

// interiorParam returns the parameter of a pass.
func (t *trainer) interiorParam(l look) interiorParam {
	step := func(v []float64) []float64 {
		if v == nil {
			return nil
		}
		p := t.prob.param(v)
		return append(p.W, p.Bias)
	}
	q := t.inner
	p := interiorParam{linearParam: t.prob.param(t.st.Y), Look: l, Mu: q.Mu, Length: q.Length}
	if p.Shift = t.center; l != beginRows {
		p.Affine = step(q.Affine)
	}
	if l == seeRows || l == alongStep {
		p.Direction = step(q.Direction)
	}
	return p
}

// inward takes one step of the interior-point method.
func (t *trainer) inward(ctx context.Context, it *rdd.Iteration) error {
	l := seeRows
	if t.inner.Direction == nil {
		l = beginRows
	}
	s, err := decides(t, t.plan.Interior).Run(ctx, t.Session, t.interiorParam(l))
	if err != nil {
		return err
	}
	weight := t.Session.LastInfo().Weight
	if done, err := t.lookInside(ctx, it, s, weight); done || err != nil {
		return err
	}
	longest, err := t.chooseStep(ctx, s, weight)
	if err != nil {
		return err
	}
	if t.inner.Move(&t.st.Point, longest) {
		t.End(it, "tolerance") // rounding leaves nothing to gain
	}
	return nil
}

// lookInside takes in what rows have come to, and reports whether the run is over.
func (t *trainer) lookInside(ctx context.Context, it *rdd.Iteration, s interiorSums, weight float64) (bool, error) {
	t.out.Iterations = it.Number
	objective, gap, sure := t.prob.bound(t.st.Y, s.certificate, weight, false, nil)
	if !sure {
		gap = t.assumed(s, weight)
	}
	if err := train.FiniteAtFirst(t.cfg.job(), objective); it.Number == 1 && err != nil {
		return true, err
	}
	t.lowest(objective)
	q := t.inner
	wrong := q.Assumed == 1 && t.st.Best < q.Lower
	if lower := objective - gap; lower > q.Lower || wrong {
		q.Lower, q.Assumed = lower, flag(!sure)
	}
	if init := t.cfg.Init; it.Number == 1 && init != nil && init.Ended.is(&t.cfg, t.meta, objective) {
		q.Lower, q.Assumed = init.Ended.lower(), flag(!init.Ended.Proven)
	}
	gap = max(0, t.st.Best-q.Lower)
	it.Report("objective", objective)
	it.Report("gap", gap)
	o := t.Observed(it.Number, objective, 0)
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return true, err
	}
	v := t.stop.Check(o)
	switch {
	case v.Stop == "target" || v.Stop == "max-time":
		t.End(it, v.Stop)
	case gap <= float64(t.cfg.Tol*max(1, math.Abs(t.st.Best))):
		t.End(it, "duality-gap")
	default:
		return false, nil
	}
	return true, nil
}

// lowest keeps Y where its objective is the least so far.
func (t *trainer) lowest(objective float64) {
	if t.st.Guard.Lowest(t.st.Y, objective); !(objective >= t.st.Best) {
		copy(t.st.X, t.st.Y)
		t.st.Best = objective
	}
}

// assumed bounds how far the objective is above the least without a penalty: by what dual variables leave of it, if no
// variable is further off than by 1 and as much as it is.
func (t *trainer) assumed(s interiorSums, weight float64) float64 {
	t.prob.gradient(t.grad, t.st.Y, s.gradient(len(t.prob.scale)), weight)
	return s.Products[0]/float64(weight*t.prob.counted) + byGradient(t.st.Y, t.grad, nil)
}

// chooseStep finds the step from Y, and how much of it rows can take.
func (t *trainer) chooseStep(ctx context.Context, s interiorSums, weight float64) (longest float64, err error) {
	q, run := t.inner, func(l look) (interiorSums, error) {
		return t.plan.Interior.Uncut().Run(ctx, t.Session, t.interiorParam(l))
	}
	h := t.prob.hessian(curvature{H: s.H}, t.center, weight)
	t.prob.gradient(t.grad, t.st.Y, fold.Gradient{Sum: s.Grad, Coef: s.Coef}, weight)
	q.Predict(t.grad, h)
	ahead, err := run(alongAffine)
	if err != nil {
		return 0, err
	}
	q.Aim(ahead.Longest, ahead.Products, float64(weight*t.prob.counted))
	kernel.Axpy(q.Mu, ahead.GradPerMu, ahead.Grad)
	corrected := math.FMA(q.Mu, ahead.CoefPerMu, ahead.Coef)
	t.prob.gradient(t.grad, t.st.Y, fold.Gradient{Sum: ahead.Grad, Coef: corrected}, weight)
	q.Step(&t.st.Point, &solver.Seen{G: t.grad, H: h})
	along, err := run(alongStep)
	if err != nil {
		return 0, err
	}
	if !num.Finite(along.Products[0]) {
		return 0, fault.Newf(fault.BadInput, "train", t.cfg.job(), "its dual variables or slacks are not finite")
	}
	return along.Longest, nil
}
