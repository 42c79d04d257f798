package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// Sqrt is MLlib's step/√t.
const Sqrt Name = "sqrt"

var root = Method{Name: Sqrt, Kinked: true, First: 1, New: func() Solver { return &rooted{} }}

// rooted is gradient descent whose t-th step is 1/√t of the first.
type rooted struct {
	Count float64 // steps taken
}

// Step goes along the gradient.
func (r *rooted) Step(p *Point, s *Seen) Moved {
	r.Count++
	p.descend(p.Step/math.Sqrt(r.Count), s)
	return Moved{}
}

// Forget drops nothing: steps only get shorter.
func (r *rooted) Forget() {}

// MarshalBinary lays out what lasts.
func (r *rooted) MarshalBinary() ([]byte, error) { return num.PutFloats(nil, []float64{r.Count}), nil }

// UnmarshalBinary reads what MarshalBinary wrote.
func (r *rooted) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 1)
	if err == nil {
		r.Count = v[0]
	}
	return err
}
