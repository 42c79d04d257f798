package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// lineSearch is what a solver remembers that looks, after each pass, whether its step was
// one downhill.
type lineSearch struct {
	F         float64   // objective at X
	G         []float64 // gradient of its smooth part there; nil where it is not known
	Direction []float64
	Slope     float64 // of the objective along Direction
	Length    float64 // of the step that is tried, in Directions
	Tries     float64
}

// Forget drops what is known of X.
func (q *lineSearch) Forget() { q.G = nil }

// floats returns the numbers that vectors follow.
func (q *lineSearch) floats() []float64 { return []float64{q.F, q.Slope, q.Length, q.Tries} }

// set takes back floats, and the vectors after them.
func (q *lineSearch) set(v [][]float64) error {
	if len(v) < 3 || len(v[0]) != 4 {
		return num.ErrCutShort
	}
	q.F, q.Slope, q.Length, q.Tries, q.G, q.Direction = v[0][0], v[0][1], v[0][2], v[0][3], v[1], v[2]
	return nil
}

// What a step must gain of what the slope promises, and how often it is
// shortened.
const (
	armijo   = 1e-4
	maxTries = 30
)

// accepted reports whether the step to Y has gained enough. Where it has not, Y is
// moved towards X; where no step gains anything, over is true and Y is X.
func (q *lineSearch) accepted(p *Point, f float64, lasso []float64) (ok, over bool) {
	noise := 4e-16 * math.Abs(q.F)
	if q.G == nil || f <= math.FMA(armijo*q.Length, q.Slope, q.F)+noise {
		return true, false
	}
	if q.Tries++; q.Tries > maxTries {
		copy(p.Y, p.X)
		return false, true
	}
	q.shorten(f)
	q.place(p, lasso)
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
func (q *lineSearch) place(p *Point, lasso []float64) {
	for j, x := range p.X {
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
		p.Y[j] = y
	}
}
