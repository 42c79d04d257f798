package mllib

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// problem maps the variables that are optimized to a model on the scale of
// the data, without a copy of the data: v_j = w_j·scale_j, and, where there is
// an intercept, v's last entry is the intercept at the centre of the data:
// bias = v_b − Σ w_j·mean_j. The penalty is (reg/2)·Σ penalty_j·v_j².
type problem struct {
	reg       float64
	intercept bool
	positive  float64
	scale     []float64
	mean      []float64 // nil where rows are not centred
	penalty   []float64
}

// moments are the first and second moments of the features.
type moments struct {
	rows      float64
	positives float64 // rows that count as 1
	sum       []float64
	square    []float64
}

// newProblem chooses the variables. Standardize puts the penalty on the
// coefficients of features divided by their standard deviation (population);
// precondition changes to those variables for the solver's sake only, the
// penalty staying where it is.
func newProblem(c LogisticConfig, m moments, positive float64) *problem {
	d := len(m.sum)
	p := &problem{reg: c.Reg, intercept: c.Intercept, positive: positive, scale: make([]float64, d), penalty: make([]float64, d)}
	change := c.Standardize || c.Solver == Nesterov
	if change && c.Intercept {
		p.mean = make([]float64, d)
	}
	for j := range p.scale {
		p.scale[j], p.penalty[j] = 1, 1
		mean := m.sum[j] / m.rows
		if !change {
			continue
		}
		deviation := math.Sqrt(max(0, math.FMA(-mean, mean, m.square[j]/m.rows)))
		s := deviation
		if !c.Standardize && !c.Intercept {
			s = math.Sqrt(m.square[j] / m.rows)
		}
		if s > 0 {
			p.scale[j] = s
		}
		if !c.Standardize {
			p.penalty[j] = 1 / float64(p.scale[j]*p.scale[j])
		}
		if p.mean != nil {
			p.mean[j] = mean
		}
	}
	return p
}

// size is the number of variables.
func (p *problem) size() int {
	if p.intercept {
		return len(p.scale) + 1
	}
	return len(p.scale)
}

// param is the model that variables stand for.
func (p *problem) param(v []float64) linearParam {
	out := linearParam{W: make([]float64, len(p.scale)), Positive: p.positive}
	for j := range out.W {
		out.W[j] = v[j] / p.scale[j]
	}
	if p.intercept {
		out.Bias = v[len(p.scale)]
		for j, m := range p.mean {
			out.Bias = math.FMA(-out.W[j], m, out.Bias)
		}
	}
	return out
}

// objective is mean loss plus penalty.
func (p *problem) objective(v []float64, loss, weight float64) float64 {
	var sq float64
	for j, w := range p.penalty {
		sq = math.FMA(float64(w*v[j]), v[j], sq)
	}
	return math.FMA(p.reg/2, sq, loss/weight)
}

// gradient turns the data's gradient into that of the objective in the
// variables; weight is the number of rows that the sums stand for.
func (p *problem) gradient(out, v []float64, g gradient, weight float64) {
	for j := range p.scale {
		s := g.Sum[j]
		if p.mean != nil {
			s = math.FMA(-p.mean[j], g.Coef, s)
		}
		out[j] = math.FMA(float64(p.reg*p.penalty[j]), v[j], s/float64(weight*p.scale[j]))
	}
	if p.intercept {
		out[len(p.scale)] = g.Coef / weight
	}
}

// lipschitz estimates the largest curvature of the objective from a sample of
// rows: a quarter of the largest eigenvalue of the sample's second moments in
// the variables (the logistic loss curves by at most 1/4), by power iteration,
// with a margin for what the sample misses.
func (p *problem) lipschitz(sample []rdd.Point) float64 {
	const rounds, margin = 30, 1.05
	n := p.size()
	x, y := make([]float64, n), make([]float64, n)
	for j := range x {
		x[j] = 1 / math.Sqrt(float64(n))
	}
	var top float64
	for range rounds {
		p.curvature(y, x, sample)
		top = math.Sqrt(kernel.Dot(y, y))
		if top == 0 {
			return 1
		}
		for j := range x {
			x[j] = y[j] / top
		}
	}
	return float64(margin * top)
}

// curvature computes y = H·x with H an upper bound of the Hessian on the
// sample.
func (p *problem) curvature(y, x []float64, sample []rdd.Point) {
	clear(y)
	q := p.param(x)
	sum, coef := y[:len(p.scale)], 0.0
	quarter := 0.25 / float64(len(sample))
	for i := range sample {
		z := float64(quarter * (q.Bias + dotPoint(q.W, &sample[i])))
		coef += z
		axpyPoint(z, &sample[i], sum)
	}
	for j := range sum {
		s := sum[j]
		if p.mean != nil {
			s = math.FMA(-p.mean[j], coef, s)
		}
		sum[j] = math.FMA(float64(p.reg*p.penalty[j]), x[j], s/p.scale[j])
	}
	if p.intercept {
		y[len(p.scale)] = coef
	}
}

func dotPoint(w []float64, x *rdd.Point) float64 {
	if x.Indices == nil {
		return kernel.Dot(w, x.Values)
	}
	var z float64
	for k, j := range x.Indices {
		z = math.FMA(w[j], x.Values[k], z)
	}
	return z
}

func axpyPoint(a float64, x *rdd.Point, y []float64) {
	if x.Indices == nil {
		kernel.Axpy(a, x.Values, y)
		return
	}
	for k, j := range x.Indices {
		y[j] = math.FMA(a, x.Values[k], y[j])
	}
}
