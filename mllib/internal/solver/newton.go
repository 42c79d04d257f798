package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// Newton takes second derivatives of all pairs of variables.
const Newton Name = "newton"

var newton = Method{Name: Newton, Exact: true, Scaled: true, Wants: Curvatures, Samples: true, Refuses: refusesCurved,
	New: func() Solver { return &second{} }}

// refusesCurved refuses runs that solvers with second derivatives cannot do.
func refusesCurved(w Wish) (why, hint string) {
	switch {
	case w.OtherEnd:
		return "it stops by its predicted decrease", "leave --stop out, or use lbfgs, owlqn or nesterov"
	case w.Classes:
		return "the Hessian of a multinomial model is too large", "use lbfgs, owlqn or nesterov"
	}
	return "", ""
}

// flat gives variables along which nothing curves as much curvature as they have slope: one unit of it, to begin with.
func flat(g, h []float64) {
	for j, slope := range g {
		if at := j*len(g) + j; h[at] <= 0 {
			h[at] = math.Abs(slope)
		}
	}
}

// second is Newton's method.
type second struct{ lineSearch }

// Step takes objective and model at Y in, and moves Y to where the model, with the L1
// penalty, is least.
func (q *second) Step(p *Point, s *Seen) Moved {
	ok, over := q.accepted(p, s.F, nil) // along a straight line
	if !ok {
		return Moved{Over: over, Falls: math.Inf(1)}
	}
	copy(p.X, p.Y)
	q.F, q.G = s.F, append(q.G[:0], s.G...)
	flat(s.G, s.H)
	m := &Quadratic{G: s.G, H: s.H, few: s.Few}
	done := Moved{Accepted: true}
	q.Direction, done.Falls = m.Minimize(p.X, s.Lasso)
	done.Unsure = m.unsure
	q.Slope, q.Length, q.Tries = -done.Falls, 1, 0
	if !(done.Falls > 0) {
		done.Falls, done.Over = 0, true
		return done
	}
	for j, x := range p.X { // the model knows where signs change
		p.Y[j] = x + q.Direction[j]
	}
	return done
}

// MarshalBinary lays out what lasts.
func (q *second) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, q.floats(), q.G, q.Direction), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *second) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 3)
	if err == nil {
		err = q.set(v)
	}
	return err
}
