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

// expCoef are the Taylor coefficients 1/k! of exp from degree 13 down to 0.
var expCoef = [14]float64{
	1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
	1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1,
}

// atanhCoef are 1/(2k+1) from k = 16 down to 0: atanh(s) = s·Σ s^2k/(2k+1).
var atanhCoef = [17]float64{
	1.0 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
	1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1,
}

// Logistic computes, for margins z and labels y in {0, 1}, the derivative
// coef = σ(z) − y and the loss log(1 + e^z) − y·z of each row.
func Logistic(coef, loss, z, y []float64) {
	n := logisticVector(coef, loss, z, y)
	for i := n; i < len(z); i++ {
		coef[i], loss[i] = logisticPlain(z[i], y[i])
	}
}

// logisticPlain is the definition: with t = exp(−|z|), σ(z) is 1/(1+t) or
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

// Sigmoid is 1/(1+e^−z), with the kernel's own exp.
func Sigmoid(z float64) float64 {
	p, _ := logisticPlain(z, 0)
	return p
}

// ExpNeg is e^x for x <= 0; below −708 it is e^−708. NaN stays NaN.
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

// Log1p is log(1+t) for t in [0, 1], as 2·atanh(t/(2+t)).
func Log1p(t float64) float64 {
	s := t / (2 + t)
	q := float64(s * s)
	p := atanhCoef[0]
	for _, c := range atanhCoef[1:] {
		p = math.FMA(p, q, c)
	}
	return float64(float64(2*s) * p)
}

// Softplus is log(1 + e^z).
func Softplus(z float64) float64 {
	_, loss := logisticPlain(z, 0)
	return loss
}

// Log is the natural logarithm of a positive, normal x.
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
