package mllib

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// dualState is where dual ascent stands. With u = Σ a·x/n, the model is what
// minimizes Σ (s_j/2)·w_j² + l_j·|w_j| − k_j·c_j·w_j − u_j·w_j over w: s_j = k_j
// plus the L2 penalty, l_j the L1 penalty, and k_j a proximal term about the centre
// c, which makes the dual well conditioned and vanishes as the centre comes to the
// model. The centre runs ahead of the model by Nesterov's momentum, with restarts
// (accelerated proximal SDCA; Shalev-Shwartz and Zhang, 2014). The intercept, which
// has no penalty, and an L1 penalty alone are fitted in the same way. That steps are
// not exact can make the centre run in circles, as about rows with more features than
// there are rows: where the gap stays, the proximal terms of variables that have an L2
// penalty are eased, in the end to none. Without others, that leaves CoCoA+, whose dual
// rises with every step.
type dualState struct {
	U, Center, Last []float64
	Solved          []float64 // the model at which the centre moved last
	Began           float64   // the objective at the first look; 0 before
	Careful         float64   // 1: the centre has run away, and moves only where the model is near enough
	Conj            float64   // Σ ℓ*(−a)
	Momentum        float64   // Nesterov's t
	Share           float64   // of the proximal terms that is left
	Gap             float64   // the least that was seen, when it last fell by a good part
	FellAt          float64   // the iteration of that; 0 before the first look
}

// What is a good part of the gap; in what part of all iterations, but not less than a
// few, it is to fall by as much; and what is done where it does not.
const (
	goodPart  = 0.1
	patience  = 0.7
	fewSteps  = 20
	easedTo   = 0.01
	leastEase = 5e-3
)

// dual is the fixed part: one entry a feature, and the intercept.
type dual struct {
	n                        float64 // rows, by weight
	rows                     float64
	share                    float64 // of whole that prox is
	l2, lasso, prox, inverse []float64
	whole                    []float64 // proximal terms, before any are eased
	splits                   int
	intercept                bool
	shift                    []float64 // that dense rows are taken about, where there is an intercept; the last variable is that at this point
}

// newDual finds the penalties on the scale of the data.
func newDual(p *problem, m moments, rows float64, splits int, dense bool) *dual {
	d := &dual{n: float64(m.weight * p.counted), rows: rows, share: 1, splits: splits, intercept: p.intercept}
	if p.intercept && dense {
		d.shift = m.mean
	}
	features := len(p.scale)
	for j := range features {
		square := m.variance[j]
		if d.shift == nil {
			square = math.FMA(m.mean[j], m.mean[j], square)
		}
		l2, lasso := float64(float64(p.reg*p.penalty[j])*float64(p.scale[j]*p.scale[j])), 0.0
		if p.lasso != nil {
			lasso = float64(p.lasso[j] * p.scale[j])
		}
		d.add(l2, lasso, float64(features)*square)
	}
	if p.intercept {
		d.add(0, 0, float64(features))
	}
	return d
}

// add adds a variable; size is its part in the squared length of rows. Penalties as
// large as those of rows over their number, for each split that moves at the same
// time, make a step of all rows a good one.
func (d *dual) add(l2, lasso, size float64) {
	prox := max(0, max(1e-12, float64(size*float64(d.splits))/d.rows)-l2)
	d.l2, d.lasso, d.prox, d.whole = append(d.l2, l2), append(d.lasso, lasso), append(d.prox, prox), append(d.whole, prox)
	d.inverse = append(d.inverse, 1/(l2+prox))
}

// ease leaves a share of the proximal terms of all variables that have an L2 penalty.
func (d *dual) ease(share float64) {
	d.share = share
	for j, l2 := range d.l2 {
		if l2 > 0 {
			d.prox[j] = float64(share * d.whole[j])
			d.inverse[j] = 1 / (l2 + d.prox[j])
		}
	}
}

// watch takes in what gap an iteration has left, and reports whether proximal terms are
// to be eased.
func (st *dualState) watch(iteration int, gap float64) (ease bool) {
	now := float64(iteration)
	switch {
	case st.FellAt == 0 || gap < float64((1-goodPart)*st.Gap):
		st.Gap, st.FellAt = gap, now
	case st.Share > 0 && now-st.FellAt >= max(fewSteps, float64(patience*now)):
		if st.Share, st.FellAt = float64(easedTo*st.Share), now; st.Share < leastEase {
			st.Share = 0
		}
		return true
	}
	return false
}

// model is what minimizes over w.
func (d *dual) model(st *dualState) []float64 {
	w := make([]float64, len(st.U))
	for j, u := range st.U {
		w[j] = float64(num.Soft(math.FMA(d.prox[j], st.Center[j], u), d.lasso[j]) * d.inverse[j])
	}
	return w
}

// value is that of the dual: nowhere above the least objective, if no variable without
// an L2 penalty is then further off than by 1 and as much as it is now.
func (d *dual) value(st *dualState) float64 {
	value := -st.Conj / d.n
	for j, u := range st.U {
		v := num.Soft(u, d.lasso[j])
		if d.l2[j] > 0 {
			value = math.FMA(-v/2, v/d.l2[j], value)
			continue
		}
		w := st.Last[j]
		value = math.FMA(-v, w, value)
		value = math.FMA(-math.Abs(v), 1+math.Abs(w), value)
	}
	return value
}

// take takes what a step came to: u moves, the model with it, and the centre ahead of
// that.
func (d *dual) take(st *dualState, s dualSums) (w []float64) {
	for j, v := range s.Move {
		st.U[j] += v / d.n
	}
	st.Conj += s.Conj
	st.Last = d.model(st)
	if st.Careful == 0 {
		d.goOn(st)
	}
	return st.Last
}

// goOn moves the centre ahead of the model.
func (d *dual) goOn(st *dualState) {
	w := st.Last
	var back float64
	for j := range w {
		back = math.FMA(float64(d.prox[j]*(st.Center[j]-w[j])), w[j]-st.Solved[j], back)
	}
	t := (1 + math.Sqrt(math.FMA(4*st.Momentum, st.Momentum, 1))) / 2
	ahead := (st.Momentum - 1) / t
	if back > 0 { // the last step was one back
		t, ahead = 1, 0
	}
	st.Momentum = t
	for j := range w {
		st.Center[j] = math.FMA(ahead, w[j]-st.Solved[j], w[j])
	}
	copy(st.Solved, w)
}

// What tells that the centre has run away: an objective this many times that of the
// first look. What part of the proximal terms the rest of the gap of the problem with
// them may be for the centre to move, from then on.
const (
	farAbove   = 2
	nearEnough = 0.25
)

// watchCentre takes in the objective at the model. A centre that has run away moves only
// here, and only where the model is near to what these proximal terms make best: then
// the method converges however far steps are from exact (Lin, Mairal and Harchaoui,
// 2015).
func (d *dual) watchCentre(st *dualState, objective float64) {
	if st.Began == 0 {
		st.Began = objective
	}
	if !(objective <= float64(farAbove*st.Began)) {
		st.Careful = 1
	}
	if st.Careful == 0 {
		return
	}
	if away, least := d.proximal(st); objective+away-least <= float64(nearEnough*away) {
		d.goOn(st)
	}
}

// proximal returns Σ k/2·(w − c)², and the value of the dual of the problem with these
// terms.
func (d *dual) proximal(st *dualState) (away, value float64) {
	value = -st.Conj / d.n
	for j, u := range st.U {
		k, c, w := d.prox[j], st.Center[j], st.Last[j]
		away = math.FMA(float64(k/2*(w-c)), w-c, away)
		m := num.Soft(math.FMA(k, c, u), d.lasso[j])
		value = math.FMA(float64(k/2*c), c, value)
		value = math.FMA(float64(-m/2*m), d.inverse[j], value)
	}
	return away, value
}

// startAscent begins with dual variables of zero.
func (t *trainer) startAscent(m moments) {
	t.dual = newDual(t.prob, m, float64(t.meta.Rows), len(t.meta.Splits), t.meta.Layout == pack.DenseLayout)
	n := len(t.dual.l2)
	t.st.Dual = dualState{U: make([]float64, n), Center: make([]float64, n), Last: make([]float64, n), Solved: make([]float64, n), Momentum: 1, Share: 1}
	t.standAt(make([]float64, n))
}

// standAt makes a model on the scale of the data the point that passes look at.
func (t *trainer) standAt(w []float64) {
	features, bias := w, 0.0
	if t.dual.intercept {
		features, bias = w[:len(w)-1], w[len(w)-1]
		for j, m := range t.dual.shift {
			bias = math.FMA(-features[j], m, bias)
		}
	}
	copy(t.st.Y, t.prob.variables(features, bias))
	copy(t.st.X, t.st.Y)
}

// dualParam is the parameter of a step at a model.
func (t *trainer) dualParam(w []float64, check bool) dualParam {
	return dualParam{W: w, Shift: t.dual.shift, Inverse: t.dual.inverse, Sigma: float64(t.dual.splits), Rows: t.dual.n, Positive: t.prob.positive,
		Weights: t.prob.weights, Intercept: t.dual.intercept, Check: check}
}

// looks is how many steps lie between two passes that find the duality gap.
const looks = 2

// ascend takes one step of dual ascent, and now and then finds the duality gap.
func (t *trainer) ascend(ctx context.Context, it *rdd.Iteration) error {
	st := &t.st.Dual
	if t.st.Guard.Point == nil { // no result is to be worse than the beginning
		f, err := t.evaluate(ctx, it.Number-1)
		if err != nil {
			return err
		}
		t.st.Guard.note(t.st.Y, f, true)
	}
	if t.dual.share != st.Share { // of a run that goes on
		t.dual.ease(st.Share)
	}
	s, err := t.plan.Ascent.Run(ctx, t.s, t.dualParam(t.dual.model(st), false))
	if err != nil {
		return err
	}
	t.out.Iterations = it.Number
	w := t.dual.take(st, s)
	value := t.dual.value(st)
	if !num.Finite(value) {
		return fault.Newf(fault.UserCode, "train", t.cfg.job(), "the dual is not finite at iteration %d", it.Number)
	}
	it.Report("dual", value)
	t.standAt(w)
	if stop, err := t.stopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	o := t.observed(it.Number, math.NaN(), 0)
	if it.Number%looks != 0 && it.Number > 1 {
		if v := t.stop.check(observation{iteration: it.Number, objective: math.Inf(1), now: o.now}); v.stop == "max-time" {
			t.end(it, v.stop)
		}
		return nil
	}
	return t.lookAtGap(ctx, it, o, value)
}

// lookAtGap finds the objective by a pass over all rows, and stops where the dual
// is no more than the tolerance below.
func (t *trainer) lookAtGap(ctx context.Context, it *rdd.Iteration, o observation, value float64) (err error) {
	if o.objective, err = t.evaluate(ctx, it.Number); err != nil {
		return err
	}
	o.exact = true
	if t.best = o.objective; o.objective < t.st.Guard.F {
		t.st.Guard.note(t.st.Y, o.objective, true)
	}
	st := &t.st.Dual
	it.Report("objective", o.objective)
	it.Report("gap", o.objective-value)
	v := t.stop.check(o)
	narrow := t.cfg.Stop == ByObjective && t.cfg.Tol > 0 && o.objective-value <= float64(t.cfg.Tol*max(1, math.Abs(o.objective)))
	switch {
	case v.stop == "target" || v.stop == "max-time":
		t.end(it, v.stop)
	case narrow:
		t.end(it, "duality-gap")
	case st.watch(it.Number, o.objective-value):
		t.dual.ease(st.Share)
		st.Last = t.dual.model(st)
		copy(st.Center, st.Last)
		copy(st.Solved, st.Last)
		st.Momentum = 1
	default:
		t.dual.watchCentre(st, o.objective)
	}
	return nil
}

// checkDual sums anew what the dual variables stand for, wherever they have been
// meanwhile, and says how far u lies from it, relative to its length.
func (t *trainer) checkDual(ctx context.Context) error {
	st := &t.st.Dual
	s, err := t.plan.Ascent.Uncut().Run(ctx, t.s, t.dualParam(st.Last, true))
	if err != nil {
		return err
	}
	var off, length float64
	for j, v := range s.Move {
		u := v / t.dual.n
		off, length = max(off, math.Abs(u-st.U[j])), max(length, math.Abs(u))
	}
	t.out.Drift = off / max(length, 1e-300)
	return nil
}
