package solver

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Quadratic is a model of the smooth part of the objective about a point:
// G·δ + δᵀ·H·δ/2. Of H, n×n and row-major, all entries are there.
type Quadratic struct {
	G, H   []float64
	few    bool // few rows curve it, as of a hinge: where it is flat it is not to be trusted far
	unsure bool // descend has given up: the step is none to end by
}

// Minimize finds the step from x that makes the model plus the L1 penalty
// least, and by how much it falls.
func (m *Quadratic) Minimize(x, lasso []float64) (step []float64, falls float64) {
	n := len(m.G)
	if lasso == nil {
		step = make([]float64, n)
		for j, g := range m.G {
			step[j] = -g
		}
		factor := append([]float64(nil), m.H...)
		kernel.Cholesky(factor, n)
		kernel.Solve(factor, step, n)
	} else {
		step = m.descend(x, lasso)
	}
	curved := 0.0
	for j := range step {
		curved = math.FMA(step[j], kernel.Dot(m.H[j*n:(j+1)*n], step), curved)
	}
	falls = -math.FMA(0.5, curved, kernel.Dot(m.G, step))
	for j, l := range lasso {
		falls = math.FMA(l, math.Abs(x[j])-math.Abs(x[j]+step[j]), falls)
	}
	return step, falls
}

// What ends coordinate descent: a sweep in which no variable moves by more than
// this, in units in which its curvature is 1, or very many sweeps.
const (
	stillness = 1e-13
	mostSweep = 20_000
	fewSweeps = 20
)

// descend minimizes by coordinate descent with covariance updates (Friedman et
// al.): sweeps over all variables until they stall, and, between them, leaps
// of those that are not zero, or, where these are not to be trusted, sweeps over
// them.
func (m *Quadratic) descend(x, lasso []float64) []float64 {
	n := len(x)
	at, slope := append([]float64(nil), x...), append([]float64(nil), m.G...)
	least := stillness * math.Sqrt(kernel.Dot(m.G, m.G))
	sweeps := 0
	for m.unsure = true; m.unsure && sweeps < mostSweep; {
		for range fewSweeps {
			if sweeps++; m.sweep(at, slope, lasso, false) <= least {
				m.unsure = false
				break
			}
		}
		for m.unsure && sweeps < mostSweep && m.between(at, slope, lasso, least) {
			sweeps++
		}
		copy(slope, m.G) // sums of many moves have lost some digits
		for j := range n {
			kernel.Axpy(at[j]-x[j], m.H[j*n:(j+1)*n], slope)
		}
	}
	for j := range n {
		at[j] -= x[j]
	}
	return at
}

// between moves the variables that are not zero, and reports whether it is worth while
// to do so again.
func (m *Quadratic) between(at, slope, lasso []float64, least float64) (again bool) {
	if m.few {
		return m.sweep(at, slope, lasso, true) > least
	}
	return m.leap(at, slope, lasso)
}

// sweep moves each variable to its best place, the others given, and returns the
// greatest move times the root of the variable's curvature.
func (m *Quadratic) sweep(at, slope, lasso []float64, nonzero bool) (most float64) {
	n := len(at)
	for j := range at {
		row := m.H[j*n : (j+1)*n]
		if row[j] <= 0 || nonzero && at[j] == 0 {
			continue
		}
		to := num.Soft(at[j]-slope[j]/row[j], lasso[j]/row[j])
		if move := to - at[j]; move != 0 {
			at[j] = to
			kernel.Axpy(move, row, slope)
			most = max(most, math.Abs(move)*math.Sqrt(row[j]))
		}
	}
	return most
}

// leastPivot is how much of a variable's curvature is to be left, the others given, for
// it not to be rounding.
const leastPivot = 1e-8

// WellPosed reports whether the curvature of no variable is that of others.
func (m *Quadratic) WellPosed() bool {
	n := len(m.G)
	factor := append([]float64(nil), m.H...)
	kernel.Cholesky(factor, n)
	for j := range n {
		if pivot := factor[j*n+j]; !(float64(pivot*pivot) > float64(leastPivot*m.H[j*n+j])) {
			return false
		}
	}
	return true
}
