package kernel

import "math"

// Ascend returns the dual variable of the row that the loss is of (Of), with label y, now at a, that
// makes the dual highest with all others held: of −ℓ*(−a′) − (a′−a)·z − q/2·(a′−a)², where z is the
// margin and q the curvature that the row itself brings (Shalev-Shwartz and Zhang, 2013, section 6). a is
// minus a derivative of the loss.
func (l Loss) Ascend(a, z, q, y float64) float64 {
	w := l.Weight(0, y)
	if w == 0 {
		return a
	}
	if l.Kind == SquaredLoss {
		return a + (y-z-a/w)/(1/w+q)
	}
	s := float64(2*y) - 1
	b, m := float64(s*a)/w, float64(s*z)
	q *= w
	switch l.Kind {
	case HingeLoss:
		b = hingeAscent(b, m, q)
	case SquaredHingeLoss:
		b = max(0, b+(1-m-b/2)/(0.5+q))
	default:
		b = logisticAscent(b, m, q)
	}
	return float64(float64(s*w) * b)
}

func hingeAscent(b, m, q float64) float64 {
	switch {
	case q > 0:
		return min(1, max(0, b+(1-m)/q))
	case m < 1: // an empty row
		return 1
	}
	return 0
}

// logisticAscent solves t + m + q·(σ(t) − b) = 0, which rises with t, and is σ(t):
// Newton's method within bounds.
func logisticAscent(b, m, q float64) float64 {
	const rounds, enough = 50, 1e-12
	lo, hi := float64(q*b)-m-q, float64(q*b)-m
	t := min(hi, max(lo, 0))
	if b > 0 && b < 1 {
		t = min(hi, max(lo, Log(b)-Log(1-b)))
	}
	p := Sigmoid(t)
	for range rounds {
		g := t + m + float64(q*(p-b))
		if math.Abs(g) <= enough*max(1, math.Abs(t)) {
			break
		}
		if g > 0 {
			hi = t
		} else {
			lo = t
		}
		next := t - g/math.FMA(float64(q*p), 1-p, 1)
		if next <= lo || next >= hi {
			next = lo + (hi-lo)/2
		}
		t = next
		p = Sigmoid(t)
	}
	return p
}

// Conjugate returns ℓ*(−a), the conjugate loss of the row that the loss is of, with label y.
func (l Loss) Conjugate(a, y float64) float64 {
	w := l.Weight(0, y)
	if w == 0 {
		return 0
	}
	if l.Kind == SquaredLoss {
		return float64(a*(a/w))/2 - float64(a*y)
	}
	b := float64((float64(2*y)-1)*a) / w
	switch l.Kind {
	case HingeLoss:
		return float64(-w * b)
	case SquaredHingeLoss:
		return float64(w * math.FMA(b/4, b, -b))
	}
	return float64(w * (entropy(b) + entropy(1-b)))
}

// entropy returns x·log x.
func entropy(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return float64(x * Log(x))
}
