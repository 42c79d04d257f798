package linear

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// problem maps the variables that are optimized to a model on the scale of
// the data, without a copy of the data: v_j = w_j·scale_j, and, where there is
// an intercept, v's last entry is the intercept at the centre of the data:
// bias = v_b − Σ w_j·mean_j. The penalty is (reg/2)·Σ penalty_j·v_j² +
// Σ lasso_j·|v_j|.
type problem struct {
	reg       float64
	intercept bool
	positive  float64
	scale     []float64
	mean      []float64 // nil where rows are not centred
	penalty   []float64
	lasso     []float64  // one a variable; nil without an L1 penalty
	weights   [2]float64 // of rows with label 0 and 1; zeros are ones
	counted   float64    // what class weights make of the weight of all rows
	steepest  float64    // second derivative of the loss, at the most
}

// scaled reports whether the variables are those of features of one deviation, for
// the solver's sake.
func (c *Config) scaled(m *solver.Method) bool { return c.Standardize || m.Scaled }

// newProblem chooses the variables. Standardize puts the penalty on the
// coefficients of features divided by their standard deviation (population);
// otherwise the penalty stays where it is, whatever the solver's variables are.
func newProblem(c Config, s *solver.Method, m fold.Moments, positive float64) *problem {
	d := len(m.Mean)
	loss := kernel.Loss{Kind: c.Loss.kind(), Width: max(c.width(s), steadyWidth)}
	p := &problem{reg: float64(c.Reg * (1 - c.Alpha)), intercept: c.Intercept, positive: positive,
		weights: c.weights(m),
		scale:   make([]float64, d), penalty: make([]float64, d), counted: 1, steepest: loss.Steepest()}
	if w := p.weights; w != [2]float64{} {
		p.counted = math.FMA(w[1], m.Labels, float64(w[0]*(m.Weight-m.Labels))) / m.Weight
		p.steepest *= max(w[0], w[1])
	}
	change := c.scaled(s)
	if change && c.Intercept {
		p.mean = make([]float64, d)
	}
	if c.Reg > 0 && c.Alpha > 0 {
		p.lasso = make([]float64, p.size())
	}
	for j := range p.scale {
		p.scale[j], p.penalty[j] = 1, 1
		if change {
			p.rescale(c, m, j)
		}
		if p.lasso != nil {
			p.lasso[j] = float64(float64(c.Reg*c.Alpha) * math.Sqrt(p.penalty[j]))
		}
	}
	return p
}

// rescale chooses the unit of one variable.
func (p *problem) rescale(c Config, m fold.Moments, j int) {
	s := math.Sqrt(m.Variance[j])
	if !c.Standardize {
		square := m.Variance[j]
		if !c.Intercept {
			square = math.FMA(m.Mean[j], m.Mean[j], square)
		}
		// The unit in which loss and penalty together curve about equally in all
		// variables: a feature that hardly varies is not made to matter by it.
		s = math.Sqrt(square + p.reg/p.steepest)
	}
	if s > 0 {
		p.scale[j] = s
	}
	if !c.Standardize {
		p.penalty[j] = 1 / float64(p.scale[j]*p.scale[j])
	}
	if p.mean != nil {
		p.mean[j] = m.Mean[j]
	}
}

// size returns the number of variables.
func (p *problem) size() int {
	if p.intercept {
		return len(p.scale) + 1
	}
	return len(p.scale)
}

// param returns the model that variables stand for.
func (p *problem) param(v []float64) linearParam {
	return p.paramIn(make([]float64, len(p.scale)), v)
}

// paramIn does the same, with the weights in memory that there is.
func (p *problem) paramIn(w, v []float64) linearParam {
	out := linearParam{W: w, Positive: p.positive, Weights: p.weights}
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

// variables returns the variables that stand for a model.
func (p *problem) variables(weights []float64, bias float64) []float64 {
	v := make([]float64, p.size())
	for j, w := range weights {
		v[j] = float64(w * p.scale[j])
		if p.mean != nil {
			bias = math.FMA(w, p.mean[j], bias)
		}
	}
	if p.intercept {
		v[len(p.scale)] = bias
	}
	return v
}

// objective returns mean loss plus penalty; weight is the number of rows that the
// loss stands for.
func (p *problem) objective(v []float64, loss, weight float64) float64 {
	var sq, abs float64
	for j, w := range p.penalty {
		sq = math.FMA(float64(w*v[j]), v[j], sq)
	}
	for j, l := range p.lasso {
		abs = math.FMA(l, math.Abs(v[j]), abs)
	}
	return math.FMA(p.reg/2, sq, loss/float64(weight*p.counted)) + abs
}

// gradient turns the data's gradient into that of the objective in the
// variables; weight is the number of rows that the sums stand for.
func (p *problem) gradient(out, v []float64, g fold.Gradient, weight float64) {
	p.slopes(out, g.Sum, g.Coef, weight)
	for j, w := range p.penalty {
		out[j] = math.FMA(float64(p.reg*w), v[j], out[j])
	}
}

// slopes turns the sum of rows times their derivatives, and that of the derivatives, into the gradient of the mean loss
// in the variables; weight is the number of rows that the sums stand for.
func (p *problem) slopes(out, sum []float64, coef, weight float64) {
	weight = float64(weight * p.counted)
	for j := range p.scale {
		s := sum[j]
		if p.mean != nil {
			s = math.FMA(-p.mean[j], coef, s)
		}
		out[j] = s / float64(weight*p.scale[j])
	}
	if p.intercept {
		out[len(p.scale)] = coef / weight
	}
}

// above bounds how far the objective at v is above the least, by the gradient of its
// smooth part there: convexity and the L2 penalty allow no more, but for the
// intercept, which is taken to be no further off than itself and 1. It is infinite
// without an L2 penalty.
func (p *problem) above(grad, v []float64) float64 {
	if p.reg <= 0 {
		return math.Inf(1)
	}
	slopes, bound := solver.Steepest(v, grad, p.lasso), 0.0
	for j, w := range p.penalty {
		bound = math.FMA(slopes[j], slopes[j]/float64(2*float64(p.reg*w)), bound)
	}
	if p.intercept {
		last := len(v) - 1
		bound = math.FMA(math.Abs(slopes[last]), 1+math.Abs(v[last]), bound)
	}
	return bound
}

// hessian turns the sums over rows into second derivatives of the objective in
// the variables, all entries of them. The sums are about shift (nil is zero).
func (p *problem) hessian(c curvature, shift []float64, weight float64) []float64 {
	d, n := len(p.scale), p.size()
	weight = float64(weight * p.counted)
	away := make([]float64, d) // from what the sums are about to what the variables are
	for j := range away {
		if p.mean != nil {
			away[j] = p.mean[j]
		}
		if shift != nil {
			away[j] -= shift[j]
		}
	}
	h := make([]float64, n*n)
	total := c.H[(d+1)*(d+1)-1]
	for j := range d {
		row, first := c.H[j*(d+1):(j+1)*(d+1)], c.H[j*(d+1)+d]
		for k := j; k < d; k++ {
			v := row[k]
			if away[j] != 0 || away[k] != 0 {
				v = math.FMA(-away[k], first, v)
				v = math.FMA(-away[j], math.FMA(-away[k], total, c.H[k*(d+1)+d]), v)
			}
			v /= float64(float64(weight*p.scale[j]) * p.scale[k])
			h[j*n+k], h[k*n+j] = v, v
		}
		h[j*n+j] = math.FMA(p.reg, p.penalty[j], h[j*n+j])
		if p.intercept {
			v := math.FMA(-away[j], total, first) / float64(weight*p.scale[j])
			h[j*n+d], h[d*n+j] = v, v
		}
	}
	if p.intercept {
		h[n*n-1] = total / weight
	}
	return h
}

// fewSampled is how many rows of a sample have to weigh something for it to be taken
// for all rows.
const fewSampled = 256

// steepnessOf bounds the largest curvature of the objective: by a sample of rows and, where
// the moments of all rows say that the sample has missed some, by what those can add;
// where little of the sample has weight, by the moments alone, which is safe but slow.
func (p *problem) steepnessOf(meta *pack.Meta, sample []rdd.Point, m fold.Moments) float64 {
	rows := sampled(meta, sample)
	most := p.steepestBy(1+num.Sum(p.squares(m)), true)
	if len(rows) == len(sample) || len(rows) >= fewSampled || len(rows) > 0 && int64(len(sample)) == meta.Rows {
		guess := p.lipschitz(rows)
		if meta.Layout != pack.DenseLayout {
			return guess // of sparse columns a sample misses many, which hardly add up in one direction
		}
		return min(guess+p.steepestBy(p.missed(rows, m), false), max(most, guess))
	}
	return most
}

// steepestBy returns the largest curvature that rows of some mean square length can have,
// with that of the penalty or without.
func (p *problem) steepestBy(square float64, penalized bool) float64 {
	curve, most := float64(p.steepest*square)/p.counted, 0.0
	for _, w := range p.penalty {
		most = max(most, w)
	}
	if !penalized {
		return curve
	}
	return math.FMA(p.reg, most, curve)
}

// squares returns the mean squares of all rows' variables, by the moments.
func (p *problem) squares(m fold.Moments) []float64 {
	out := make([]float64, len(m.Variance))
	for j, v := range m.Variance {
		if p.mean == nil {
			v = math.FMA(m.Mean[j], m.Mean[j], v)
		}
		out[j] = v / float64(p.scale[j]*p.scale[j])
	}
	return out
}

// sampleSlack is how much larger a column's mean square may be than a sample's without
// rows having been missed.
const sampleSlack = 1.5

// missed returns how much of the mean squares of all rows' variables a sample does not
// have: the curvature of what it has missed is no greater.
func (p *problem) missed(rows []rdd.Point, m fold.Moments) (sum float64) {
	all := p.squares(m)
	if len(all) == 0 {
		return 0
	}
	have, weight := make([]float64, len(all)), 0.0
	for i := range rows {
		weight += rows[i].Weight
		p.addSquares(have, &rows[i])
	}
	for j, v := range all {
		sum += max(0, math.FMA(-sampleSlack, have[j]/weight, v))
	}
	return sum
}

// addSquares adds the squares of a dense row's variables.
func (p *problem) addSquares(sum []float64, x *rdd.Point) {
	for j, v := range x.Values {
		if p.mean != nil {
			v -= p.mean[j]
		}
		v /= p.scale[j]
		sum[j] = math.FMA(float64(v*v), x.Weight, sum[j])
	}
}

// sampled returns the rows of a sample that weigh something, with their weights: 1,
// where rows have none.
func sampled(meta *pack.Meta, sample []rdd.Point) []rdd.Point {
	out := make([]rdd.Point, 0, len(sample))
	for _, p := range sample {
		if !meta.Weighted {
			p.Weight = 1
		}
		if p.Weight > 0 {
			out = append(out, p)
		}
	}
	return out
}

// lipschitz estimates the largest curvature of the objective from a sample of
// rows: the largest eigenvalue of the sample's second moments in the variables
// times the largest second derivative of the loss, by power iteration, with a
// margin for what the sample misses.
func (p *problem) lipschitz(sample []rdd.Point) float64 {
	const rounds, margin = 30, 1.05
	n := p.size()
	x, y := make([]float64, n), make([]float64, n)
	// no pattern of the data's own: equal numbers stand at right angles to a difference of two columns
	for j := range x {
		x[j] = (0.5 + float64(num.Mix(uint64(j))>>11)/(1<<53)) / math.Sqrt(float64(n))
		if num.Mix(uint64(j)+1<<32)&1 == 0 {
			x[j] = -x[j]
		}
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
	var weight float64
	for i := range sample {
		weight += sample[i].Weight
	}
	each := p.steepest / float64(weight*p.counted)
	for i := range sample {
		z := float64(float64(each*sample[i].Weight) * (q.Bias + dotPoint(q.W, &sample[i])))
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

// steepness returns the length of the objective's gradient at v on the scale of
// the data: with an L1 penalty that of its shortest subgradient.
func (p *problem) steepness(grad, v []float64) float64 {
	var sq float64
	for j, g := range grad {
		if p.lasso != nil {
			switch l := p.lasso[j]; {
			case v[j] > 0:
				g += l
			case v[j] < 0:
				g -= l
			default:
				g = num.Soft(g, l)
			}
		}
		if j < len(p.scale) {
			g *= p.scale[j]
		}
		sq = math.FMA(g, g, sq)
	}
	return math.Sqrt(sq)
}
