package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// Adam steps by running moments of the gradient.
const Adam Name = "adam"

var adam = Method{Name: Adam, First: 0.1, New: func() Solver { return &adaptive{} }}

// adaptive is Adam (Kingma and Ba): running means of gradient and squared gradient, freed of
// their bias towards zero.
type adaptive struct {
	Count  float64   // steps that the means are of
	First  []float64 // of the gradient
	Second []float64 // of its square
}

// Step goes along the mean gradient, each variable by its own measure.
func (a *adaptive) Step(p *Point, s *Seen) Moved {
	const slow, slower, least = 0.9, 0.999, 1e-8
	a.Count++
	if a.First == nil {
		a.First, a.Second = make([]float64, len(s.G)), make([]float64, len(s.G))
	}
	free, freer := 1-num.Power(slow, a.Count), 1-num.Power(slower, a.Count)
	for j, v := range s.G {
		a.First[j] = math.FMA(slow, a.First[j], float64((1-slow)*v))
		a.Second[j] = math.FMA(slower, a.Second[j], float64(float64((1-slower)*v)*v))
		step := p.Step / (math.Sqrt(a.Second[j]/freer) + least)
		p.Y[j] = math.FMA(-step, a.First[j]/free, p.Y[j])
		if s.Lasso != nil {
			p.Y[j] = num.Soft(p.Y[j], float64(step*s.Lasso[j]))
		}
	}
	copy(p.X, p.Y)
	return Moved{}
}

// Forget has the means begin anew.
func (a *adaptive) Forget() { *a = adaptive{} }

// MarshalBinary lays out what lasts.
func (a *adaptive) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, []float64{a.Count}, a.First, a.Second), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (a *adaptive) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 3)
	if err == nil && len(v[0]) != 1 {
		err = num.ErrCutShort
	}
	if err == nil {
		a.Count, a.First, a.Second = v[0][0], v[1], v[2]
	}
	return err
}
