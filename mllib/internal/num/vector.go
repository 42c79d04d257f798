package num

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
)

// Finite reports whether x is a number, and not an infinite one.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Soft moves x towards zero, and not past it.
func Soft(x, by float64) float64 {
	switch {
	case x > by:
		return x - by
	case x < -by:
		return x + by
	}
	return 0
}

// Power returns x to the n, by squaring, the same on every CPU.
func Power(x, n float64) float64 {
	p := 1.0
	for k := int(n); k > 0; k >>= 1 {
		if k&1 == 1 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return p
}

// Mix spreads the bits of x (the finalizer of SplitMix64).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sum adds numbers up, one after the other.
func Sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// SumOfSquares adds squares up, one after the other.
func SumOfSquares[T kernel.Float](x []T) (sq float64) {
	for _, v := range x {
		sq = math.FMA(float64(v), float64(v), sq)
	}
	return sq
}

// SquaredLength returns the squared length of a vector in parts, by the kernels' sums.
func SquaredLength(parts ...[]float64) (sq float64) {
	for _, x := range parts {
		sq += kernel.Dot(x, x)
	}
	return sq
}

// Distance returns the distance of two points.
func Distance(a, b []float64) float64 {
	var sq float64
	for j := range a {
		sq = math.FMA(a[j]-b[j], a[j]-b[j], sq)
	}
	return math.Sqrt(sq)
}

// Normalize brings a vector to length 1, unless it is zero.
func Normalize(x []float64) {
	if sq := SumOfSquares(x); sq > 0 {
		for j := range x {
			x[j] /= math.Sqrt(sq)
		}
	}
}

// Resized returns a vector of n entries, zeros where it had none.
func Resized(v []float64, n int) []float64 {
	out := make([]float64, n)
	copy(out, v)
	return out
}
