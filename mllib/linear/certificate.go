package linear

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// certificate is what a pass over all rows finds out to bound how far a model lies
// above the least objective: sums over rows, apart for rows of label 0 and 1 where an
// intercept has to hold them in balance, of the loss, of its convex conjugate at
// minus the derivative by the margin, of the derivative, and of it times the row. The
// hinge's derivative is that of the smoothed one, its loss is not: any derivative
// between 0 and 1 is a point of the dual.
type certificate struct {
	K                int
	Loss, Conj, Coef [2]float64
	Sum              []float64 // of each kind of row, one after the other
}

const certificateHead = 7

// MarshalBinary lays the sums out as floats.
func (c certificate) MarshalBinary() ([]byte, error) {
	head := []float64{float64(c.K), c.Loss[0], c.Loss[1], c.Conj[0], c.Conj[1], c.Coef[0], c.Coef[1]}
	return num.PutFloats(make([]byte, 0, 8*(len(c.Sum)+certificateHead)), head, c.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (c *certificate) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, certificateHead)
	if err != nil {
		return err
	}
	if c.K = int(v[0]); c.K != 1 && c.K != 2 {
		return num.ErrCutShort
	}
	c.Loss, c.Conj, c.Coef = [2]float64{v[1], v[2]}, [2]float64{v[3], v[4]}, [2]float64{v[5], v[6]}
	c.Sum = v[certificateHead:]
	return nil
}

// certificates folds rows into a certificate.
func (r *rowLoss) certificates() rdd.Aggregator[linearParam, rdd.Point, certificate] {
	return rdd.Aggregator[linearParam, rdd.Point, certificate]{
		Zero:     func(p linearParam) certificate { return r.noCertificate(len(p.W)) },
		AddBatch: r.addCertificate,
		Merge:    mergeCertificates,
		Scale:    func(a certificate, _ float64) certificate { return a }, // all rows are seen
		Weighted: true,
	}
}

// noCertificate returns the sums of no rows.
func (r *rowLoss) noCertificate(features int) certificate {
	kinds := 1
	if r.config.Intercept && !r.config.regression() {
		kinds = 2
	}
	return certificate{K: kinds, Sum: make([]float64, kinds*features)}
}

func mergeCertificates(a, b certificate) certificate {
	for k := range a.Loss {
		a.Loss[k] += b.Loss[k]
		a.Conj[k] += b.Conj[k]
		a.Coef[k] += b.Coef[k]
	}
	kernel.Add(b.Sum, a.Sum)
	return a
}

// gradient returns the sums of both kinds of rows together.
func (c certificate) gradient(features int) fold.Gradient {
	g := fold.Gradient{Sum: append([]float64(nil), c.Sum[:features]...), Coef: c.Coef[0] + c.Coef[1]}
	if c.K == 2 {
		kernel.Add(c.Sum[features:], g.Sum)
	}
	return g
}

func (r *rowLoss) addCertificate(c certificate, p linearParam, b *rdd.Batch) certificate {
	n, f := len(b.Rows), r.of(p, b)
	scratch := b.Scratch(5 * n)
	y, z, coef, loss, some := scratch[:n], scratch[n:2*n], scratch[2*n:3*n], scratch[3*n:4*n], scratch[4*n:5*n]
	r.labels(y, p, b)
	fold.Dots(z, p.W, b, b.Rows)
	f.Derive(coef, loss, z, p.Bias, y)
	for k := range c.K {
		for i, a := range coef {
			if some[i] = 0; c.K == 2 && (y[i] == 1) != (k == 1) {
				continue
			}
			some[i] = a
			c.Loss[k] += loss[i]
			c.Coef[k] += a
			c.Conj[k] += conjugateAt(f.Kind, a, loss[i], z[i]+p.Bias)
		}
		fold.Accumulate(c.Sum[k*len(p.W):(k+1)*len(p.W)], some, b)
	}
	return c
}

// conjugateAt returns the conjugate of a row's loss at minus its derivative: what
// Fenchel and Young leave of derivative times margin, or, of a hinge, which its own
// derivative need not be, minus the derivative's size.
func conjugateAt(kind kernel.LossKind, coef, loss, margin float64) float64 {
	if kind == kernel.HingeLoss {
		return -math.Abs(coef)
	}
	return math.FMA(coef, margin, -loss)
}

// bound returns the objective at v and how far it may be above the least one, by the
// dual; ok is false where no penalty bounds it. mean are the features' means.
func (p *problem) bound(v []float64, c certificate, weight float64, squared bool,
	mean []float64) (objective, gap float64, ok bool) {
	objective = p.objective(v, c.Loss[0]+c.Loss[1], weight)
	if p.reg <= 0 && p.lasso == nil {
		return objective, math.Inf(1), false
	}
	var u []float64
	var dual float64
	if squared {
		u, dual = p.squaredDual(v, c, weight, mean)
	} else {
		u, dual = p.balancedDual(v, c, weight)
	}
	return objective, max(0, objective-dual), num.Finite(dual) && u != nil
}

// pull returns minus the derivative of the mean loss by each variable, the intercept
// apart, from the sums of rows of a kind.
func (p *problem) pull(sum []float64, coef, weight float64) []float64 {
	u := make([]float64, len(p.scale))
	for j := range u {
		s := sum[j]
		if p.mean != nil {
			s = math.FMA(-p.mean[j], coef, s)
		}
		u[j] = -s / float64(weight*p.scale[j])
	}
	return u
}

// balancedDual returns the value of the dual at the rows' derivatives, those of one
// label made smaller so that an intercept gains nothing: conjugates of losses that
// are nowhere negative shrink at least as much.
func (p *problem) balancedDual(v []float64, c certificate, weight float64) (u []float64, value float64) {
	weight = float64(weight * p.counted)
	d := len(p.scale)
	if c.K == 1 {
		u = p.pull(c.Sum, c.Coef[0], weight)
		return u, p.dualValue(func(by float64) float64 { return float64(by * -c.Conj[0] / weight) }, u)
	}
	pulls := [2]float64{math.Abs(c.Coef[0]), math.Abs(c.Coef[1])}
	var keep [2]float64
	for k := range keep {
		if most := max(pulls[k], 1e-300); pulls[k] > 0 {
			keep[k] = min(1, pulls[1-k]/most)
		}
	}
	u = p.pull(c.Sum[:d], c.Coef[0], weight)
	kernel.Scale(keep[0], u)
	kernel.Axpy(keep[1], p.pull(c.Sum[d:], c.Coef[1], weight), u)
	conj := math.FMA(keep[0], c.Conj[0], float64(keep[1]*c.Conj[1])) / weight
	return u, p.dualValue(func(by float64) float64 { return float64(by * -conj) }, u)
}

// squaredDual returns the value of the dual of a squared loss at the residuals, less
// their mean where there is an intercept.
func (p *problem) squaredDual(v []float64, c certificate, weight float64, mean []float64) (u []float64, value float64) {
	weight = float64(weight * p.counted)
	u = p.pull(c.Sum, c.Coef[0], weight)
	loss := c.Loss[0] / weight
	if p.intercept {
		off := c.Coef[0] / weight // mean of the margins less the labels
		loss = max(0, math.FMA(-off/2, off, loss))
		for j := range u {
			away := mean[j]
			if p.mean != nil {
				away -= p.mean[j]
			}
			u[j] = math.FMA(off, away/p.scale[j], u[j])
		}
	}
	along := kernel.Dot(u, v[:len(u)])
	return u, p.dualValue(func(by float64) float64 {
		return math.FMA(float64(-by*by), loss, float64(by*math.FMA(2, loss, along)))
	}, u)
}

// dualValue returns the value of the dual at u, of one class after the other, or at as
// much of it as the L1 penalty allows where there is no other; losses is what the
// rows' conjugates leave of it.
func (p *problem) dualValue(losses func(by float64) float64, classes ...[]float64) float64 {
	by, value := 1.0, 0.0
	for _, u := range classes {
		for j, x := range u {
			x = math.Abs(x)
			lasso := 0.0
			if p.lasso != nil {
				lasso = p.lasso[j]
			}
			if p.reg > 0 {
				over := max(0, x-lasso)
				value = math.FMA(-over/2, over/float64(p.reg*p.penalty[j]), value)
			} else if x > lasso {
				by = min(by, lasso/x)
			}
		}
	}
	return value + losses(by)
}

// byGradient bounds how far the objective at v is above the least by the gradient of
// its smooth part, if no variable is further off than by 1 and as much as it is.
func byGradient(v, grad, lasso []float64) (bound float64) {
	for j, s := range solver.Steepest(v, grad, lasso) {
		bound = math.FMA(math.Abs(s), 1+math.Abs(v[j]), bound)
	}
	return bound
}

// certify finds the objective at Y on all data, and how far above the least it may be.
func (t *trainer) certify(ctx context.Context) (objective float64, err error) {
	began := t.Session.Now()
	p := t.prob.param(t.st.Y)
	if p.Width = t.st.Width; t.cfg.Loss == Hinge && p.Width == 0 {
		p.Width = steadyWidth
	}
	c, err := t.plan.Certificate.Run(ctx, t.Session, p)
	if err != nil {
		return 0, err
	}
	weight := t.Session.LastInfo().Weight
	objective, gap, ok := t.prob.bound(t.st.Y, c, weight, t.cfg.regression(), t.means)
	t.out.Gap, t.out.GapBy = gap, train.ByDuality
	t.Session.Evaluated(rdd.Evaluation{Iteration: t.out.Iterations, Objective: objective,
		Took: t.Session.Now() - began})
	if !ok {
		err = t.unbounded(ctx, c, weight)
	}
	switch {
	case t.st.Held.Point != nil:
	case t.dual != nil:
		t.knownBelow(objective, t.dual.Value(), t.dual.Sure())
	case t.inner != nil:
		t.knownBelow(objective, t.inner.Lower, t.inner.Assumed == 0)
	}
	train.AtMost(&t.out.Summary, objective)
	t.out.Objective = objective
	train.JudgedBy(&t.out.Summary, t.cfg.Tol)
	return objective, err
}

// knownBelow takes the bound of a solver that has dual variables of its own, where it bounds the result better; sure
// is false of one that assumes something.
func (t *trainer) knownBelow(objective, lower float64, sure bool) {
	gap := max(0, objective-lower)
	if !(gap < t.out.Gap) {
		return
	}
	if t.out.Gap, t.out.GapBy = gap, train.ByDuality; !sure {
		t.out.GapBy = train.ByGradient
	}
}

// fewCurved is up to how many variables second derivatives are summed only to say how
// good a result is.
const fewCurved = 128

// unbounded computes how far above the least objective a result without a penalty may be.
func (t *trainer) unbounded(ctx context.Context, c certificate, weight float64) error {
	g := c.gradient(len(t.prob.scale))
	grad := make([]float64, t.prob.size())
	t.prob.gradient(grad, t.st.Y, g, weight)
	t.out.Gap, t.out.GapBy = byGradient(t.st.Y, grad, nil), train.ByGradient
	if t.cfg.Loss != Squared || t.method.Wants != solver.Curvatures && len(grad) > fewCurved || t.out.Gap == 0 {
		return nil
	}
	p := t.prob.param(t.st.Y)
	p.Shift = t.center
	h, err := t.plan.Second.Run(ctx, t.Session, p)
	if err != nil {
		return err
	}
	m := &solver.Quadratic{G: grad, H: t.prob.hessian(h, p.Shift, weight)}
	if !m.WellPosed() {
		return nil // what nearly equal columns have to gain is lost in rounding
	}
	if _, falls := m.Minimize(t.st.Y, nil); num.Finite(falls) && falls >= 0 {
		t.out.Gap, t.out.GapBy = falls, train.ByCurvature
	}
	return nil
}

// certify finds objective, accuracy and log-loss at Y on all data, and how far above
// the least objective it may be: intercepts are taken to be no further off than by 1
// and as much as they are.
func (t *softmax) certify(ctx context.Context) error {
	began := t.Session.Now()
	s, err := t.plan.Gradient.Uncut().Run(ctx, t.Session, t.param(t.st.Y))
	if err != nil {
		return err
	}
	weight := t.Session.LastInfo().Weight
	t.out.Accuracy, t.out.LogLoss = s.Right/weight, s.Loss/weight
	t.out.Objective = t.objective(t.st.Y, s.Loss, weight)
	t.Session.Evaluated(rdd.Evaluation{Iteration: t.out.Iterations, Objective: t.out.Objective,
		Took: t.Session.Now() - began})
	t.gradient(t.st.Y, s, weight)
	t.out.Gap, t.out.GapBy = t.bound(s.Loss / float64(weight*t.prob.counted))
	train.AtMost(&t.out.Summary, t.out.Objective)
	train.JudgedBy(&t.out.Summary, t.cfg.Tol)
	return nil
}

// bound returns the bound on the objective at Y by the dual, where there is a penalty;
// loss is the mean one.
func (t *softmax) bound(loss float64) (gap float64, by string) {
	p, d := t.prob, len(t.prob.scale)
	if p.reg <= 0 && p.lasso == nil {
		return byGradient(t.st.Y, t.grad, nil), train.ByGradient
	}
	var classes [][]float64
	conj, assumed := -loss, 0.0
	for k := range t.label {
		v, g := t.of(t.st.Y, k), append([]float64(nil), t.of(t.grad, k)...)
		for j := range d {
			g[j] = math.FMA(float64(-p.reg*p.penalty[j]), v[j], g[j])
		}
		conj += kernel.Dot(g, v)
		classes = append(classes, g[:d])
		for _, s := range g[d:] {
			assumed = math.FMA(math.Abs(s), 1+math.Abs(v[d]), assumed)
		}
	}
	dual := p.dualValue(func(by float64) float64 { return float64(by * -conj) }, classes...)
	if by = train.ByDuality; assumed > 0 {
		by = train.ByGradient
	}
	return max(0, t.out.Objective-dual) + assumed, by
}
