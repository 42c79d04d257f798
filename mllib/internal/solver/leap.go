package solver

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// ridge is what part of each curvature is added to it for a leap: variables that depend
// on others then go far, to where a sign changes.
const ridge = 1e-12

// leap takes the variables that are not zero to where the model is least if none of them
// changes its sign, or as far on that way as it gets better: where columns are nearly
// alike, sweeps would take for ever. It reports whether one came to be zero, so that the
// way of the others is another.
func (m *Quadratic) leap(at, slope, lasso []float64) (again bool) {
	on := m.active(at, lasso)
	n, size := len(at), len(on)
	if size == 0 {
		return false
	}
	factor, way := make([]float64, size*size), make([]float64, size)
	for i, j := range on {
		for k, l := range on {
			factor[i*size+k] = m.H[j*n+l]
		}
		way[i] = -(slope[j] + math.Copysign(lasso[j], at[j]))
	}
	for i := range size {
		factor[i*size+i] = math.FMA(ridge, factor[i*size+i], factor[i*size+i])
	}
	kernel.Cholesky(factor, size)
	kernel.Solve(factor, way, size)
	return m.follow(at, slope, lasso, on, way)
}

// active returns the variables that are not zero, or that no penalty draws to it.
func (m *Quadratic) active(at, lasso []float64) (on []int) {
	for j := range at {
		if m.H[j*len(at)+j] > 0 && (at[j] != 0 || lasso[j] == 0) {
			on = append(on, j)
		}
	}
	return on
}

// follow goes along a way as long as that makes the model less: signs change on it,
// where that gains something. It reports whether another way is to be looked for.
func (m *Quadratic) follow(at, slope, lasso []float64, on []int, way []float64) (again bool) {
	fall, curve := m.along(at, slope, lasso, on, way)
	to := -fall / curve // where the model is least, unless a sign changes before
	for _, t := range signChanges(at, lasso, on, way) {
		if math.FMA(curve, t, fall) >= 0 {
			to = min(t, -fall/curve)
			break
		}
		for k, j := range on {
			if lasso[j] > 0 && -at[j]/way[k] == t {
				fall = math.FMA(2*lasso[j], math.Abs(way[k]), fall)
			}
		}
		if to = t; math.FMA(curve, t, fall) >= 0 { // the model is least where the sign changes
			break
		}
		to = -fall / curve
	}
	if !num.Finite(to) || !(to > 0) {
		return false
	}
	return m.move(at, slope, on, way, to) || to < 0.5 || to > 2
}

// along returns the model's slope and curvature along a way.
func (m *Quadratic) along(at, slope, lasso []float64, on []int, way []float64) (fall, curve float64) {
	n := len(at)
	for k, j := range on {
		fall = math.FMA(way[k], slope[j]+math.Copysign(lasso[j], at[j]), fall)
		for l, i := range on {
			curve = math.FMA(float64(way[k]*way[l]), m.H[j*n+i], curve)
		}
	}
	return fall, curve
}

// signChanges returns, ascending, how far along a way variables with an L1 penalty come
// to be zero.
func signChanges(at, lasso []float64, on []int, way []float64) (turns []float64) {
	for k, j := range on {
		if t := -at[j] / way[k]; t > 0 && lasso[j] > 0 && !math.IsInf(t, 1) {
			turns = append(turns, t)
		}
	}
	slices.Sort(turns)
	return slices.Compact(turns)
}

// move moves so far along a way; what comes to be zero there is zero.
func (m *Quadratic) move(at, slope []float64, on []int, way []float64, t float64) (zero bool) {
	n := len(at)
	for k, j := range on {
		to := math.FMA(t, way[k], at[j])
		if -at[j]/way[k] == t {
			to, zero = 0, true
		}
		if move := to - at[j]; move != 0 {
			at[j] = to
			kernel.Axpy(move, m.H[j*n:(j+1)*n], slope)
		}
	}
	return zero
}
