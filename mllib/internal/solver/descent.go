package solver

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Descent is gradient descent, its step from the data's curvature.
const Descent Name = "gd"

var descent = Method{Name: Descent, New: func() Solver { return &plain{} }}

// plain is gradient descent by one step size.
type plain struct{ stateless }

// Step goes along the gradient.
func (*plain) Step(p *Point, s *Seen) Moved {
	p.descend(p.Step, s)
	return Moved{}
}

// stateless is of solvers that keep nothing between steps.
type stateless struct{}

// Forget drops nothing.
func (stateless) Forget() {}

// MarshalBinary lays out nothing.
func (stateless) MarshalBinary() ([]byte, error) { return nil, nil }

// UnmarshalBinary reads nothing.
func (stateless) UnmarshalBinary([]byte) error { return nil }

// descend goes by a step along the gradient.
func (p *Point) descend(step float64, s *Seen) {
	kernel.Axpy(-step, s.G, p.Y)
	shrink(p.Y, step, s.Lasso)
	copy(p.X, p.Y)
}

// shrink moves each entry towards zero by step times its weight, and not past it:
// the proximal step of an L1 penalty.
func shrink(x []float64, step float64, lasso []float64) {
	for j, l := range lasso {
		x[j] = num.Soft(x[j], float64(step*l))
	}
}
