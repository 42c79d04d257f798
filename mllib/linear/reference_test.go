package linear

import "math"

// convex is a linear model to be fitted, as a reference has it, which shares no code with
// the product: mean loss of rows that weigh c, plus Σ q/2·w² + l·|w|, and an intercept
// that is not penalized.
type convex struct {
	loss      Loss
	x         [][]float64
	y, c      []float64 // y is 0 or 1, or a number
	q, l      []float64 // penalties, one a column
	intercept bool
}

// total is what all rows weigh.
func (p *convex) total() (sum float64) {
	for _, c := range p.c {
		sum += c
	}
	return sum
}

// margins are those of all rows.
func (p *convex) margins(w []float64, b float64) []float64 {
	out := make([]float64, len(p.x))
	for i, row := range p.x {
		out[i] = inner(row, w) + b
	}
	return out
}

func inner(a, b []float64) (sum float64) {
	for j, v := range a {
		sum += v * b[j]
	}
	return sum
}

// penalty is that of weights.
func (p *convex) penalty(w []float64) (sum float64) {
	for j, v := range w {
		sum += p.q[j]/2*v*v + p.l[j]*math.Abs(v)
	}
	return sum
}

// value is the objective.
func (p *convex) value(w []float64, b float64) float64 {
	var sum float64
	for i, m := range p.margins(w, b) {
		loss, _ := plainLoss(p.loss, m, p.y[i])
		sum += p.c[i] * loss
	}
	return sum/p.total() + p.penalty(w)
}

// size is what a value is the sum of, all signs apart: what its rounding goes by.
func (p *convex) size(w []float64, b float64) float64 {
	var sum float64
	for i, row := range p.x {
		long := math.Abs(b)
		for j, v := range row {
			long += math.Abs(v * w[j])
		}
		m := inner(row, w) + b
		loss, slope := plainLoss(p.loss, m, p.y[i])
		sum += p.c[i] * (loss + math.Abs(slope)*long)
	}
	return sum/p.total() + p.penalty(w)
}

// conjugate is that of a row's loss at minus a derivative of it; infinite where there is
// no such derivative.
func conjugate(loss Loss, a, y float64) float64 {
	s := (2*y - 1) * a
	switch {
	case loss == Squared:
		return a*a/2 - a*y
	case s < 0 || s > 1 && loss != SquaredHinge:
		return math.Inf(1)
	case loss == Hinge:
		return -s
	case loss == SquaredHinge:
		return s*s/4 - s
	}
	return xlogx(s) + xlogx(1-s)
}

func xlogx(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * math.Log(x)
}

// below is a bound that no objective of the problem is below, by dual variables that
// are first made feasible: of an intercept, by less of the greater class or by the mean;
// of an L1 penalty alone, by less of all.
func (p *convex) below(a []float64) float64 {
	a = append([]float64(nil), a...)
	if p.intercept {
		p.balance(a)
	}
	u, total := make([]float64, len(p.q)), p.total()
	for i, row := range p.x {
		for j, v := range row {
			u[j] += p.c[i] * a[i] * v / total
		}
	}
	less := 1.0
	for j, v := range u {
		if p.q[j] == 0 && math.Abs(v) > p.l[j] {
			less = min(less, p.l[j]/math.Abs(v))
		}
	}
	var d float64
	for i, v := range a {
		d -= p.c[i] * conjugate(p.loss, less*v, p.y[i]) / total
	}
	for j, v := range u {
		if short := math.Max(0, less*math.Abs(v)-p.l[j]); p.q[j] > 0 {
			d -= short * short / (2 * p.q[j])
		}
	}
	return d
}

// balance makes the weighted sum of dual variables zero.
func (p *convex) balance(a []float64) {
	var sum [2]float64
	for i, v := range a {
		if p.loss == Squared {
			sum[0] += p.c[i] * v / p.total()
		} else {
			sum[int(p.y[i])] += p.c[i] * v
		}
	}
	for i := range a {
		switch {
		case p.loss == Squared:
			a[i] -= sum[0]
		case sum[0]+sum[1] > 0 && p.y[i] == 1:
			a[i] *= -sum[0] / sum[1]
		case sum[0]+sum[1] < 0 && p.y[i] == 0:
			a[i] *= -sum[1] / sum[0]
		}
	}
}

// optimum is the end of a reference's search: a model, its objective, and what no
// objective is below.
type optimum struct {
	w     []float64
	b     float64
	value float64
	below float64
	path  [][]float64 // models on the way, the intercept last
}

// solve finds the optimum by Newton's method on ever less smoothed losses and penalties:
// a barrier keeps |w| and the hinge off their kinks, and goes.
func (p *convex) solve() optimum {
	s := newSmooth(p)
	v := make([]float64, s.n)
	if p.intercept && p.loss == Squared {
		for i, y := range p.y {
			v[s.n-1] += p.c[i] * y / p.total()
		}
	}
	var o optimum
	first := p.value(make([]float64, len(p.q)), 0)
	for mu := 0.1; mu > 3e-12; mu *= 0.2 {
		s.mu = mu * math.Max(first, 1e-6)
		for range 40 {
			if !s.step(v) {
				break
			}
		}
		w, b := s.model(v)
		o.take(p, w, b, s.duals(v))
		if o.value-o.below < 1e-11*math.Max(1, o.value) {
			break
		}
	}
	return o
}

// take keeps a model that is better than all before, and a bound that is.
func (o *optimum) take(p *convex, w []float64, b float64, a []float64) {
	f, d := p.value(w, b), p.below(a)
	if o.w == nil || f < o.value {
		o.w, o.b, o.value = w, b, f
	}
	if len(o.path) == 0 || d > o.below {
		o.below = d
	}
	o.path = append(o.path, append(append([]float64(nil), w...), b))
}

// smooth is a problem in variables of one size, about the centre where there is an
// intercept, the kinks of which are smoothed by mu.
type smooth struct {
	p          *convex
	a          [][]float64 // rows, the intercept's 1 last
	mean, unit []float64
	q, l       []float64
	n          int
	mu, total  float64
	width      float64 // of a hinge that is smoothed as the product does it
}

func newSmooth(p *convex) *smooth {
	d := len(p.q)
	s := &smooth{p: p, mean: make([]float64, d), unit: make([]float64, d), n: d, total: p.total()}
	s.measure()
	if p.intercept {
		s.n++
	}
	for _, row := range p.x {
		own := make([]float64, s.n)
		for j, v := range row {
			own[j] = (v - s.mean[j]) / s.unit[j]
		}
		if p.intercept {
			own[d] = 1
		}
		s.a = append(s.a, own)
	}
	s.q, s.l = make([]float64, s.n), make([]float64, s.n)
	for j, u := range s.unit {
		s.q[j], s.l[j] = p.q[j]/(u*u), p.l[j]/u
	}
	return s
}

// measure finds columns' centres and sizes.
func (s *smooth) measure() {
	for j := range s.unit {
		if s.p.intercept {
			for range 2 {
				var off float64
				for i, row := range s.p.x {
					off += s.p.c[i] * (row[j] - s.mean[j]) / s.total
				}
				s.mean[j] += off
			}
		}
		var sq float64
		for i, row := range s.p.x {
			v := row[j] - s.mean[j]
			sq += s.p.c[i] * v * v / s.total
		}
		if s.unit[j] = math.Sqrt(sq); sq == 0 {
			s.unit[j] = 1
		}
	}
}

// model is what variables stand for.
func (s *smooth) model(v []float64) (w []float64, b float64) {
	w = make([]float64, len(s.unit))
	if s.p.intercept {
		b = v[s.n-1]
	}
	for j, u := range s.unit {
		w[j] = v[j] / u
		b -= w[j] * s.mean[j]
	}
	return w, b
}

// kinked is |x| times l, its kink smoothed by a barrier, and two derivatives.
func kinked(x, l, mu float64) (f, slope, curve float64) {
	a := mu / l
	r := math.Hypot(a, x)
	t := a + r
	return l*t - mu*math.Log(2*a*t), l * x / t, l * a / (t * r)
}

// row is the smoothed loss of a row and two derivatives by its margin.
func (s *smooth) row(m, y float64) (f, slope, curve float64) {
	switch sign := 2*y - 1; s.p.loss {
	case Hinge:
		short := 1 - sign*m
		if half := s.width / 2; math.Abs(short) < half {
			return (short + half) * (short + half) / (2 * s.width), -sign * (short/s.width + 0.5), 1 / s.width
		} else if half > 0 {
			f, slope = plainLoss(Hinge, m, y)
			return f, slope, 0
		}
		f, slope, curve = kinked(short/2, 1, s.mu)
		return short/2 + f, -sign * (1 + slope) / 2, curve / 4
	case SquaredHinge:
		if sign*m < 1 {
			curve = 2
		}
	case Squared:
		curve = 1
	default:
		e := math.Exp(-math.Abs(m))
		curve = e / ((1 + e) * (1 + e))
	}
	f, slope = plainLoss(s.p.loss, m, y)
	return f, slope, curve
}

// duals are minus the derivatives of the smoothed losses.
func (s *smooth) duals(v []float64) []float64 {
	out := make([]float64, len(s.a))
	for i, row := range s.a {
		_, slope, _ := s.row(inner(row, v), s.p.y[i])
		out[i] = -slope
	}
	return out
}

// at is the smoothed objective, and, where wanted, its gradient and second derivatives.
func (s *smooth) at(v, grad []float64, h [][]float64) (f float64) {
	for i, row := range s.a {
		loss, slope, curve := s.row(inner(row, v), s.p.y[i])
		c := s.p.c[i] / s.total
		if f += c * loss; grad == nil || c == 0 {
			continue
		}
		for j, x := range row {
			grad[j] += c * slope * x
			if k := c * curve * x; k != 0 {
				for i := range j + 1 {
					h[j][i] += k * row[i]
				}
			}
		}
	}
	return f + s.penalties(v, grad, h)
}

func (s *smooth) penalties(v, grad []float64, h [][]float64) (f float64) {
	for j, x := range v {
		var slope, curve float64
		if s.l[j] > 0 {
			var kink float64
			kink, slope, curve = kinked(x, s.l[j], s.mu/float64(s.n))
			f += kink
		}
		if f += s.q[j] / 2 * x * x; grad != nil {
			grad[j] += slope + s.q[j]*x
			h[j][j] += curve + s.q[j]
		}
	}
	return f
}

// step takes one damped step of Newton's, and reports whether it gained anything.
func (s *smooth) step(v []float64) bool {
	grad, h := make([]float64, s.n), make([][]float64, s.n)
	for j := range h {
		h[j] = make([]float64, s.n)
	}
	f := s.at(v, grad, h)
	move := make([]float64, s.n)
	for j, g := range grad {
		move[j] = -g
	}
	settle(h, move)
	slope := inner(grad, move)
	if slope > -1e-18*s.mu {
		return false
	}
	next := make([]float64, s.n)
	for length := 1.0; length > 1e-10; length /= 2 {
		for j, x := range v {
			next[j] = x + length*move[j]
		}
		if s.at(next, nil, nil) <= f+1e-4*length*slope+2e-16*f {
			copy(v, next)
			return true
		}
	}
	return false
}

// settle solves h·x = b in place of b; what hangs on other variables gets a little of its
// own.
func settle(h [][]float64, b []float64) {
	n := len(b)
	for j := range n {
		whole := h[j][j]
		for k := range j {
			h[j][k] = (h[j][k] - inner(h[j][:k], h[k][:k])) / h[k][k]
		}
		rest := whole - inner(h[j][:j], h[j][:j])
		h[j][j] = math.Sqrt(math.Max(rest, 1e-13*whole+1e-300))
	}
	for j := range n {
		b[j] = (b[j] - inner(h[j][:j], b[:j])) / h[j][j]
	}
	for j := n - 1; j >= 0; j-- {
		b[j] /= h[j][j]
		for k := range j {
			b[k] -= h[j][k] * b[j]
		}
	}
}

// smoothed finds the optimum of a hinge smoothed over a width.
func (p *convex) smoothed(width float64) (w []float64, b float64) {
	s := newSmooth(p)
	v := make([]float64, s.n)
	for s.mu = 4; s.mu > 1e-10; s.mu *= 0.5 {
		s.width = math.Max(width, s.mu)
		for range 200 {
			if !s.step(v) {
				break
			}
		}
	}
	return s.model(v)
}
