package solver

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Nesterov is accelerated gradient with restarts; proximal under an L1 penalty.
const Nesterov Name = "nesterov"

var nesterov = Method{Name: Nesterov, Scaled: true, New: func() Solver { return &accelerated{T: 1} }}

// accelerated is Nesterov's method (FISTA, where there is an L1 penalty) with the gradient
// restart of O'Donoghue and Candès: momentum that points uphill is dropped.
type accelerated struct {
	T float64
}

// Step goes along the gradient, and ahead of where that leads.
func (a *accelerated) Step(p *Point, s *Seen) Moved {
	next := make([]float64, len(p.Y))
	copy(next, p.Y)
	kernel.Axpy(-p.Step, s.G, next)
	shrink(next, p.Step, s.Lasso)
	var uphill float64
	for j := range s.G {
		slope := s.G[j]
		if s.Lasso != nil {
			slope = p.Y[j] - next[j] // of the proximal step
		}
		uphill = math.FMA(slope, next[j]-p.X[j], uphill)
	}
	t := (1 + math.Sqrt(math.FMA(4*a.T, a.T, 1))) / 2
	momentum := (a.T - 1) / t
	if uphill > 0 {
		t, momentum = 1, 0
	}
	for j := range next {
		p.Y[j] = math.FMA(momentum, next[j]-p.X[j], next[j])
	}
	p.X, a.T = next, t
	return Moved{}
}

// Forget drops the momentum.
func (a *accelerated) Forget() { a.T = 1 }

// MarshalBinary lays out what lasts.
func (a *accelerated) MarshalBinary() ([]byte, error) { return num.PutFloats(nil, []float64{a.T}), nil }

// UnmarshalBinary reads what MarshalBinary wrote.
func (a *accelerated) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 1)
	if err == nil {
		a.T = v[0]
	}
	return err
}
