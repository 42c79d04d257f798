package kernel

import "math"

// Constants of the exp kernel: x = k·ln2 + r with |r| <= ln2/2, ln2 split so
// that k·ln2Hi is exact.
const (
	log2e   = 1.44269504088896338700e+00
	ln2Hi   = 6.93147180369123816490e-01
	ln2Lo   = 1.90821492927058770002e-10
	expMin  = -708.0
	expBias = 1023
)

// expCoef are the coefficients, from degree 11 down, of a polynomial that
// differs from exp by at most 1.3e-17 for |r| <= ln2/2: 1 + r + r²·g(r), g the
// Chebyshev fit of degree 9.
var expCoef = [12]float64{
	2.510038549551032e-08, 2.7620088445409746e-07, 2.7557268459997064e-06, 2.4801521295954376e-05,
	0.00019841269863053618, 0.0013888888917213717, 0.008333333333330062, 0.04166666666662413,
	0.16666666666666669, 0.5000000000000001, 1, 1,
}

// atanhCoef are the coefficients, from degree 10 down, of a polynomial in
// q = s² that differs from atanh(s)/s by at most 5.1e-18 for q <= 1/9: 1 + q·h(q), h
// the Chebyshev fit of degree 9.
var atanhCoef = [11]float64{
	0.08082469084735669, 0.04400158825434387, 0.06000577591428889, 0.06657067775440581,
	0.07692785296456121, 0.09090894708663223, 0.11111111358900891, 0.1428571428355253,
	0.20000000000007298, 0.3333333333333333, 1,
}

// Losses adds up what rows contribute, one after the other, so that the sums
// do not depend on how rows are handed over: loss, its square, its derivative,
// and by how much a smoothed loss lies below it.
type Losses struct {
	Loss, Squares, Coef, Gap float64
}

func (l *Losses) add(coef, loss []float64) {
	loss = loss[:len(coef)]
	sum, squares, total := l.Loss, l.Squares, l.Coef
	for i, c := range coef {
		sum += loss[i]
		squares += float64(loss[i] * loss[i])
		total += c
	}
	l.Loss, l.Squares, l.Coef = sum, squares, total
}

// Logistic computes, for dots z and labels y in {0, 1}, the derivative
// coef = σ(m) − y and the loss log(1 + e^m) − y·m of each row, m = z + bias.
// Lengths: all alike.
func Logistic(coef, loss, z []float64, bias float64, y []float64) {
	for i := logisticVector(coef, loss, z, bias, y); i < len(z); i++ {
		coef[i], loss[i] = logisticPlain(z[i]+bias, y[i])
	}
}

// logisticPlain returns the definition: with t = exp(−|z|), σ(z) is 1/(1+t) or
// t/(1+t), and log(1+e^z) is max(z, 0) + log1p(t).
func logisticPlain(z, y float64) (coef, loss float64) {
	t := ExpNeg(-math.Abs(z))
	num, relu := t, 0.0
	if z > 0 {
		num, relu = 1, z
	}
	p := num / (1 + t)
	return p - y, math.FMA(-y, z, relu+Log1p(t))
}

// Sigmoid returns 1/(1+e^−z), with the kernel's own exp.
func Sigmoid(z float64) float64 {
	p, _ := logisticPlain(z, 0)
	return p
}

// ExpNeg returns e^x for x <= 0; below −708 it is e^−708. NaN stays NaN.
func ExpNeg(x float64) float64 {
	if x < expMin {
		x = expMin
	}
	k := math.RoundToEven(float64(x * log2e))
	r := math.FMA(-k, ln2Hi, x)
	r = math.FMA(-k, ln2Lo, r)
	s := expCoef[0]
	for _, c := range expCoef[1:] {
		s = math.FMA(s, r, c)
	}
	return float64(s * math.Float64frombits(uint64(int64(k)+expBias)<<52))
}

// Log1p returns log(1+t) for t in [0, 1], as 2·atanh(t/(2+t)).
func Log1p(t float64) float64 {
	s := t / (2 + t)
	q := float64(s * s)
	p := atanhCoef[0]
	for _, c := range atanhCoef[1:] {
		p = math.FMA(p, q, c)
	}
	return float64(float64(2*s) * p)
}

// Softplus returns log(1 + e^z).
func Softplus(z float64) float64 {
	_, loss := logisticPlain(z, 0)
	return loss
}

// Log returns the natural logarithm of a positive, normal x.
func Log(x float64) float64 {
	bits := math.Float64bits(x)
	k := float64(int(bits>>52&0x7ff) - expBias)
	m := math.Float64frombits(bits&(1<<52-1) | expBias<<52)
	if m > math.Sqrt2 {
		m, k = m/2, k+1
	}
	s := (m - 1) / (m + 1)
	q := float64(s * s)
	p := atanhCoef[0]
	for _, c := range atanhCoef[1:] {
		p = math.FMA(p, q, c)
	}
	return math.FMA(k, ln2Hi, math.FMA(k, ln2Lo, float64(float64(2*s)*p)))
}
