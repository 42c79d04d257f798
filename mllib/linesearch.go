package mllib

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
)

// maxPairs is how many pairs L-BFGS remembers.
const maxPairs = 10

// lineSearch is what a method remembers that looks, after each pass, whether
// its step was one downhill.
type lineSearch struct {
	F         float64   // objective at X
	G         []float64 // gradient of its smooth part there; nil before the first pass
	Direction []float64
	Slope     float64 // of the objective along Direction
	Length    float64 // of the step that is tried, in Directions
	Tries     float64
	Moves     [][]float64 // of X, the oldest first
	Turns     [][]float64 // of the gradient along them
}

// What a step must gain of what the slope promises, and how often it is
// shortened.
const (
	armijo   = 1e-4
	maxTries = 30
)

// accepted reports whether the step to Y has gained enough. Where it has not, Y is
// moved towards X; where no step gains anything, over is true and Y is X.
func (s *state) accepted(f float64, lasso []float64) (ok, over bool) {
	q := &s.Search
	noise := 4e-16 * math.Abs(q.F)
	if q.G == nil || f <= math.FMA(armijo*q.Length, q.Slope, q.F)+noise {
		return true, false
	}
	if q.Tries++; q.Tries > maxTries {
		copy(s.Y, s.X)
		return false, true
	}
	q.shorten(f)
	s.place(lasso)
	return false, false
}

// shorten chooses a shorter step by the parabola through what is known.
func (q *lineSearch) shorten(f float64) {
	best := -q.Slope * q.Length / (2 * ((f-q.F)/q.Length - q.Slope))
	if math.IsNaN(best) {
		best = 0
	}
	q.Length = min(max(best, 0.1*q.Length), 0.5*q.Length)
}

// place puts Y a step from X; under an L1 penalty variables stop where their
// sign would change.
func (s *state) place(lasso []float64) {
	q := &s.Search
	for j, x := range s.X {
		y := math.FMA(q.Length, q.Direction[j], x)
		if lasso != nil && lasso[j] > 0 {
			side := x
			if side == 0 {
				side = q.Direction[j]
			}
			if y*side < 0 {
				y = 0
			}
		}
		s.Y[j] = y
	}
}

// quasiNewton takes objective and gradient at Y into L-BFGS, or, under an L1
// penalty, OWL-QN (Andrew and Gao), and moves Y to where the next pass is made;
// over says that no step gains anything more.
func (s *state) quasiNewton(f float64, g, lasso []float64) (over bool) {
	q := &s.Search
	ok, over := s.accepted(f, lasso)
	if !ok {
		return over
	}
	s.Count++
	if q.G != nil {
		q.remember(difference(s.Y, s.X), difference(g, q.G))
	}
	copy(s.X, s.Y)
	q.F, q.G = f, append(q.G[:0], g...)
	slopes := steepest(s.X, g, lasso)
	q.Direction = q.downhill(slopes, s.Step)
	for j, l := range lasso {
		if l > 0 && q.Direction[j]*slopes[j] >= 0 {
			q.Direction[j] = 0
		}
	}
	q.Slope, q.Length, q.Tries = kernel.Dot(slopes, q.Direction), 1, 0
	if q.Slope >= 0 {
		return true
	}
	s.place(lasso)
	return false
}

func difference(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for j := range a {
		out[j] = a[j] - b[j]
	}
	return out
}

// remember keeps a pair, unless the objective did not curve upwards along it.
func (q *lineSearch) remember(move, turn []float64) {
	if kernel.Dot(move, turn) <= 1e-10*kernel.Dot(turn, turn)*1e-6 {
		return
	}
	if len(q.Moves) == maxPairs {
		q.Moves, q.Turns = q.Moves[1:], q.Turns[1:]
	}
	q.Moves, q.Turns = append(q.Moves, move), append(q.Turns, turn)
}

// steepest is the gradient of the objective with its L1 part: where a variable is
// zero, the one-sided slope that leads downhill, or zero.
func steepest(x, g, lasso []float64) []float64 {
	out := append([]float64(nil), g...)
	for j, l := range lasso {
		switch {
		case x[j] > 0 || x[j] == 0 && g[j] < -l:
			out[j] = g[j] + l
		case x[j] < 0 || x[j] == 0 && g[j] > l:
			out[j] = g[j] - l
		default:
			out[j] = 0
		}
	}
	return out
}

// downhill is minus the slopes times the inverse curvature that the pairs tell of
// (Nocedal's two loops); before there are any, a plain step.
func (q *lineSearch) downhill(slopes []float64, step float64) []float64 {
	d := append([]float64(nil), slopes...)
	k := len(q.Moves)
	along := make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		along[i] = kernel.Dot(q.Moves[i], d) / kernel.Dot(q.Moves[i], q.Turns[i])
		kernel.Axpy(-along[i], q.Turns[i], d)
	}
	if k > 0 {
		step = kernel.Dot(q.Moves[k-1], q.Turns[k-1]) / kernel.Dot(q.Turns[k-1], q.Turns[k-1])
	}
	kernel.Scale(step, d)
	for i := range k {
		back := kernel.Dot(q.Turns[i], d) / kernel.Dot(q.Moves[i], q.Turns[i])
		kernel.Axpy(along[i]-back, q.Moves[i], d)
	}
	kernel.Scale(-1, d)
	return d
}
