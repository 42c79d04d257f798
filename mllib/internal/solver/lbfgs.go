package solver

import (
	"fmt"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// LBFGS is limited-memory quasi-Newton.
const LBFGS Name = "lbfgs"

var lbfgs = Method{Name: LBFGS, Exact: true, Scaled: true, Refuses: refusesLasso,
	New: func() Solver { return &quasiNewton{} }}

// refusesLasso refuses an L1 penalty, for solvers that need a smooth objective.
func refusesLasso(w Wish) (why, hint string) {
	if w.Lasso {
		return "it cannot minimize an L1 penalty", "use owlqn, cd, newton or nesterov, or --alpha 0"
	}
	return "", ""
}

// quasiNewton is L-BFGS, or, under an L1 penalty, OWL-QN (Andrew and Gao).
type quasiNewton struct {
	lineSearch
	Moves [][]float64 // of X, the oldest first
	Turns [][]float64 // of the gradient along them
}

// maxPairs is how many pairs are remembered.
const maxPairs = 10

// Step takes objective and gradient at Y in, and moves Y to where the next pass is made.
func (q *quasiNewton) Step(p *Point, s *Seen) Moved {
	ok, over := q.accepted(p, s.F, s.Lasso)
	if !ok {
		return Moved{Over: over, Falls: math.Inf(1)}
	}
	done := Moved{Accepted: true, Falls: math.Inf(1)}
	if q.G != nil {
		done.Falls = q.F - s.F
		q.remember(difference(p.Y, p.X), difference(s.G, q.G))
	}
	copy(p.X, p.Y)
	q.F, q.G = s.F, append(q.G[:0], s.G...)
	slopes := Steepest(p.X, s.G, s.Lasso)
	q.Direction = q.downhill(slopes, p.Step)
	for j, l := range s.Lasso {
		if l > 0 && q.Direction[j]*slopes[j] >= 0 {
			q.Direction[j] = 0
		}
	}
	q.Slope, q.Length, q.Tries = kernel.Dot(slopes, q.Direction), 1, 0
	if q.Slope >= 0 {
		done.Over = true
		return done
	}
	q.place(p, s.Lasso)
	return done
}

// MarshalBinary lays out what lasts.
func (q *quasiNewton) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, slices.Concat([][]float64{q.floats(), q.G, q.Direction}, q.Moves, q.Turns)...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *quasiNewton) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 3)
	if err == nil {
		err = q.set(v)
	}
	if err != nil {
		return err
	}
	pairs := len(v[3:]) / 2
	if len(v) != 3+2*pairs || pairs > maxPairs {
		return fmt.Errorf("a state cannot have %d vectors", len(v))
	}
	q.Moves, q.Turns = v[3:3+pairs:3+pairs], v[3+pairs:]
	return nil
}

func difference(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for j := range a {
		out[j] = a[j] - b[j]
	}
	return out
}

// remember keeps a pair, unless the objective did not curve upwards along it.
func (q *quasiNewton) remember(move, turn []float64) {
	if kernel.Dot(move, turn) <= 1e-10*kernel.Dot(turn, turn)*1e-6 {
		return
	}
	if len(q.Moves) == maxPairs {
		q.Moves, q.Turns = q.Moves[1:], q.Turns[1:]
	}
	q.Moves, q.Turns = append(q.Moves, move), append(q.Turns, turn)
}

// Steepest returns the gradient of the objective with its L1 part: where a
// variable is zero, the one-sided slope that leads downhill, or zero.
func Steepest(x, g, lasso []float64) []float64 {
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

// downhill returns minus the slopes times the inverse curvature that the pairs
// tell of (Nocedal's two loops); before there are any, a plain step.
func (q *quasiNewton) downhill(slopes []float64, step float64) []float64 {
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
