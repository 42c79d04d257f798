package linear

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// ascent describes the problem to dual ascent: penalties on the scale of the data, of which
// dense rows are taken about the means where there is an intercept.
func (p *problem) ascent(m fold.Moments, about []float64) (d solver.DualProblem) {
	features := len(p.scale)
	for j := range features {
		square := m.Variance[j]
		if about == nil {
			square = math.FMA(m.Mean[j], m.Mean[j], square)
		}
		l2, lasso := float64(float64(p.reg*p.penalty[j])*float64(p.scale[j]*p.scale[j])), 0.0
		if p.lasso != nil {
			lasso = float64(p.lasso[j] * p.scale[j])
		}
		d.L2, d.Lasso, d.Size = append(d.L2, l2), append(d.Lasso, lasso), append(d.Size, float64(features)*square)
	}
	if p.intercept {
		d.L2, d.Lasso, d.Size = append(d.L2, 0), append(d.Lasso, 0), append(d.Size, float64(features))
	}
	return d
}

// startAscent begins with dual variables of zero.
func (t *trainer) startAscent(m fold.Moments) {
	if t.prob.intercept && t.meta.Layout == pack.DenseLayout {
		t.about = m.Mean
	}
	d := t.prob.ascent(m, t.about)
	d.Weight, d.Rows, d.Splits = float64(m.Weight*t.prob.counted), float64(t.meta.Rows), len(t.meta.Splits)
	d.Variable, d.Cut = t.variable, t.cfg.Cut && t.led == nil
	if t.dual, _ = t.st.Solver.(*solver.Ascent); t.led != nil {
		t.dual = t.led.Ascent
	}
	t.dual.Begin(d, &t.st.Point)
}

// variable takes a model on the scale of the data, the intercept last, to the variables.
func (t *trainer) variable(w []float64) []float64 {
	features, bias := w, 0.0
	if t.prob.intercept {
		features, bias = w[:len(w)-1], w[len(w)-1]
		for j, m := range t.about {
			bias = math.FMA(-features[j], m, bias)
		}
	}
	return t.prob.variables(features, bias)
}

// dualParam returns the parameter of a step at a model.
func (t *trainer) dualParam(w []float64, check bool) dualParam {
	return dualParam{W: w, Shift: t.about, Inverse: t.dual.Inverse(), Sigma: float64(len(t.meta.Splits)),
		Rows: t.dual.Weight(), Positive: t.prob.positive,
		Weights: t.prob.weights, Intercept: t.prob.intercept, Check: check}
}

// looks is how many steps lie between two passes that find the duality gap.
const looks = 2

// ascend takes one step of dual ascent, and now and then finds the duality gap.
func (t *trainer) ascend(ctx context.Context, it *rdd.Iteration) error {
	if t.st.Guard.Point == nil { // no result is to be worse than the beginning
		f, err := t.evaluate(ctx, it.Number-1)
		if err != nil {
			return err
		}
		t.st.Guard.Note(t.st.Y, f, true)
	}
	step := t.plan.Ascent
	if t.led != nil && t.cfg.Cut {
		step = step.Uncut()
	}
	s, err := step.Run(ctx, t.Session, t.dualParam(t.dual.Model(), false))
	if err != nil {
		return err
	}
	t.out.Iterations = it.Number
	t.dual.Step(&t.st.Point, &solver.Seen{F: s.Conj, G: s.Move})
	value := t.dual.Value()
	if !num.Finite(value) {
		return fault.Newf(fault.UserCode, "train", t.cfg.job(), "the dual is not finite at iteration %d", it.Number)
	}
	it.Report("dual", value)
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	o := t.Observed(it.Number, math.NaN(), 0)
	if it.Number%looks != 0 && it.Number > 1 {
		if v := t.stop.Check(train.Observation{Iteration: it.Number, Objective: math.Inf(1),
			Now: o.Now}); v.Stop == "max-time" {
			t.End(it, v.Stop)
		}
		return nil
	}
	return t.lookAtGap(ctx, it, o, value)
}

// lookAtGap finds the objective by a pass over all rows, and stops where the dual
// is no more than the tolerance below.
func (t *trainer) lookAtGap(ctx context.Context, it *rdd.Iteration, o train.Observation, value float64) (err error) {
	if o.Objective, err = t.evaluate(ctx, it.Number); err != nil {
		return err
	}
	o.Exact = true
	if t.st.Best = o.Objective; o.Objective < t.st.Guard.F {
		t.st.Guard.Note(t.st.Y, o.Objective, true)
	}
	it.Report("objective", o.Objective)
	it.Report("gap", o.Objective-value)
	v := t.stop.Check(o)
	narrow := t.cfg.Stop == train.ByObjective && t.cfg.Tol > 0 &&
		o.Objective-value <= float64(t.cfg.Tol*max(1, math.Abs(o.Objective)))
	switch {
	case v.Stop == "target" || v.Stop == "max-time":
		t.End(it, v.Stop)
	case narrow:
		t.End(it, "duality-gap")
	default:
		t.dual.Look(it.Number, o.Objective, o.Objective-value)
		if t.led != nil && it.Number >= leadingSteps {
			t.lead(o.Objective, o.Objective-value)
		}
	}
	return nil
}

// checkDual sums anew what the dual variables stand for, wherever they have been
// meanwhile, and returns how far u is from it, relative to its length.
func (t *trainer) checkDual(ctx context.Context) error {
	s, err := t.plan.Ascent.Uncut().Run(ctx, t.Session, t.dualParam(t.dual.Last, true))
	if err != nil {
		return err
	}
	t.out.Drift = t.dual.Drift(s.Move)
	return nil
}
