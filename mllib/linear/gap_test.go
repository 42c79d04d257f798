package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
)

// passed is what one pass over some rows sums: of losses, of their derivatives by the
// margin, and of those times the rows; all over the weight of all rows.
type passed struct {
	loss, coef float64
	sum        []float64
}

// pass folds the rows whose label has a weight; width is what the hinge's derivative is
// smoothed over.
func (p *convex) pass(w []float64, b, width float64, classes [2]float64) passed {
	out, total := passed{sum: make([]float64, len(w))}, p.total()
	for i, m := range p.margins(w, b) {
		c := p.c[i] / total
		if p.loss != Squared {
			c *= classes[int(p.y[i])]
		}
		loss, slope := plainLoss(p.loss, m, p.y[i])
		if short := 1 - (2*p.y[i]-1)*m; p.loss == Hinge && width > 0 {
			slope = -(2*p.y[i] - 1) * math.Min(1, math.Max(0, short/width+0.5))
		}
		out.loss += c * loss
		out.coef += c * slope
		for j, x := range p.x[i] {
			out.sum[j] += c * slope * x
		}
	}
	return out
}

// certificate bounds how far a model lies above the optimum, by two passes: one over all
// rows, and, of losses of two classes with an intercept or a hinge, one over rows of
// label 1 alone.
//
// With a = −loss′ as dual variables, and less of those of the class that has more of them
// (or the margins moved by their mean, of a squared loss), so that they sum to nothing:
//
//	gap = E + Σ sum_j·w_j + coef·b + Σ r_j(w_j) + r*_j(−s_j)
//
// where s is sum after that, r*(s) = soft(|s|, l)²/(2q), and E is what the losses and
// their conjugates of the changed variables come to beyond −a·m. Without any q, all dual
// variables times min l/|s| are feasible.
func (p *convex) certificate(w []float64, b, width float64) float64 {
	all := p.pass(w, b, width, [2]float64{1, 1})
	s, extra := p.feasible(all, w, b, width)
	gap, less := extra+all.coef*b, 1.0
	for j, v := range w {
		gap += all.sum[j]*v + p.q[j]/2*v*v + p.l[j]*math.Abs(v)
		switch {
		case p.q[j] > 0:
			over := math.Max(0, math.Abs(s[j])-p.l[j])
			gap += over * over / (2 * p.q[j])
		case math.Abs(s[j]) > p.l[j]:
			less = math.Min(less, p.l[j]/math.Abs(s[j]))
		}
	}
	if primal := all.loss + p.penalty(w); less < 1 { // the dual is concave, and 0 at 0
		gap = math.Min(primal, primal-less*(primal-gap))
	}
	return gap
}

// feasible are the sums of dual variables that no intercept could gain by, and E.
func (p *convex) feasible(all passed, w []float64, b, width float64) (s []float64, extra float64) {
	s = append([]float64(nil), all.sum...)
	if p.loss == Squared {
		if p.intercept {
			mean := p.means()
			for j, m := range mean {
				s[j] -= all.coef * m
			}
			extra = all.coef * (all.coef/2 - inner(mean, w) - b)
		}
		return s, extra
	}
	ones := p.pass(w, b, width, [2]float64{0, 1})
	zeros := passed{loss: all.loss - ones.loss, coef: all.coef - ones.coef, sum: make([]float64, len(s))}
	for j, v := range ones.sum {
		zeros.sum[j] = all.sum[j] - v
	}
	extra = p.slack(ones, w, b, -ones.coef) + p.slack(zeros, w, b, zeros.coef)
	if !p.intercept {
		return s, extra
	}
	greater, less := ones, -zeros.coef/ones.coef // of a class, times which it weighs as much as the other
	if -ones.coef < zeros.coef {
		greater, less = zeros, -ones.coef/zeros.coef
	}
	if greater.coef == 0 {
		return s, extra
	}
	for j, v := range greater.sum {
		s[j] -= (1 - less) * v
	}
	return s, extra + (1-less)*p.lost(greater, w, b)
}

// slack is by how much the losses of a class of rows and their conjugates come to more than −a·m:
// of the hinge, where its derivative is a smoothed one's; mass is Σ |a|.
func (p *convex) slack(g passed, w []float64, b, mass float64) float64 {
	if p.loss != Hinge {
		return 0
	}
	return g.loss - mass - (inner(g.sum, w) + g.coef*b)
}

// lost is how much the dual loses at the most, per part of the dual variables of a class
// that are taken away: minus their conjugates.
func (p *convex) lost(g passed, w []float64, b float64) float64 {
	if p.loss == Hinge {
		return math.Abs(g.coef)
	}
	return g.loss - (inner(g.sum, w) + g.coef*b)
}

// means are those of columns.
func (p *convex) means() []float64 {
	out := make([]float64, len(p.q))
	for i, row := range p.x {
		for j, v := range row {
			out[j] += p.c[i] * v / p.total()
		}
	}
	return out
}

// gapProblems are problems of every loss, penalty and intercept, with weights and without.
func gapProblems() (out []*convex, names []string) {
	for k, loss := range []Loss{Logistic, SquaredHinge, Squared, Hinge} {
		for _, alpha := range []float64{0, 0.5, 1} {
			for flags := range 4 {
				rng := rand.New(rand.NewPCG(uint64(k), uint64(flags)))
				p := &convex{loss: loss, x: gaussians(rng, 80, 5), intercept: flags&1 == 1}
				p.label(rng)
				for range p.x {
					p.c = append(p.c, 1+float64(flags/2*rng.IntN(9)))
				}
				p.penalize(Config{Reg: 0.02, Alpha: alpha, Standardize: true})
				out = append(out, p)
				names = append(names, fmt.Sprintf("%s, α %v, intercept %v, weighted %v", loss, alpha, p.intercept,
					flags/2 == 1))
			}
		}
	}
	return out, names
}

// TestAGapIsABoundAndCloses: a model is nowhere further above the optimum than its gap
// says, and at the optimum there is none.
func TestAGapIsABoundAndCloses(t *testing.T) {
	all, names := gapProblems()
	for k, p := range all {
		o, rng := p.solve(), rand.New(rand.NewPCG(uint64(k), 5))
		for _, away := range []float64{2, 1, 0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 0} {
			for _, width := range []float64{0.1, 1e-3, 1e-6} {
				w, b := append([]float64(nil), o.w...), o.b
				for j := range w {
					w[j] += away * rng.NormFloat64()
				}
				if p.intercept {
					b += away * rng.NormFloat64()
				}
				above, gap := p.value(w, b)-o.value, p.certificate(w, b, width)
				if !(gap >= above-1e-12) {
					t.Errorf("%s: %v away, width %v, the gap is %v, but it is %v", names[k], away, width, gap, above)
				}
			}
		}
		if at := p.certificate(o.w, o.b, 0); p.loss != Hinge && at > 1e-7 {
			t.Errorf("%s: at the optimum the gap is %v", names[k], at)
		}
	}
}

// TestAGapOfASmoothedHingeCloses as what it is smoothed over does, at the optimum of that.
func TestAGapOfASmoothedHingeCloses(t *testing.T) {
	all, names := gapProblems()
	for k, p := range all {
		if p.loss != Hinge {
			continue
		}
		for _, width := range []float64{1e-1, 1e-3, 1e-5} {
			w, b := p.smoothed(width)
			if gap := p.certificate(w, b, width); !(gap <= width) {
				t.Errorf("%s: smoothed over %v, the gap is %v", names[k], width, gap)
			}
		}
	}
}

// TestAGapIsABoundOfStrangeData, too, at all models that a search for the optimum comes by:
// but for what rounding makes of it.
func TestAGapIsABoundOfStrangeData(t *testing.T) {
	for seed := range uint64(seeds.Of(32)) {
		p, _, name := randomProblem(t, seed)
		o := p.solve()
		for k, at := range append(o.path, make([]float64, len(p.q)+1)) {
			w, b := at[:len(p.q)], at[len(p.q)]
			for _, width := range []float64{0, math.Pow(0.2, float64(k))} {
				above, gap := p.value(w, b)-o.value, p.certificate(w, b, width)
				if eps := 1e-12*math.Max(1, o.value) + 1e-14*p.size(w, b); !(gap >= above-eps) {
					t.Errorf("%s: the gap is %v, but it is %v", name, gap, above)
				}
			}
		}
	}
}
