package solver

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// WithMomentum returns gradient descent by one step size along the sum of all gradients so
// far, each of which counts `times` as much with every step after it.
func WithMomentum(times float64) Solver { return &heavyBall{times: times} }

// heavyBall is what WithMomentum returns.
type heavyBall struct {
	times    float64
	Velocity []float64
}

// Step goes along the sum of gradients.
func (b *heavyBall) Step(p *Point, s *Seen) Moved {
	if b.Velocity == nil {
		b.Velocity = make([]float64, len(s.G))
	}
	kernel.Scale(b.times, b.Velocity)
	kernel.Add(s.G, b.Velocity)
	p.descend(p.Step, &Seen{G: b.Velocity, Lasso: s.Lasso})
	return Moved{}
}

// Forget drops the momentum.
func (b *heavyBall) Forget() { b.Velocity = nil }

// MarshalBinary lays out what lasts.
func (b *heavyBall) MarshalBinary() ([]byte, error) { return num.PutVectors(nil, b.Velocity), nil }

// UnmarshalBinary reads what MarshalBinary wrote.
func (b *heavyBall) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 1)
	if err == nil {
		b.Velocity = v[0]
	}
	return err
}
