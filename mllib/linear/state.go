package linear

import (
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
)

// state is everything that one iteration of a linear model hands to the next.
type state struct {
	train.State
	Width float64 // of the hinge's smoothed part
}

// MarshalBinary lays the state out, the width before the rest.
func (s state) MarshalBinary() ([]byte, error) {
	return num.PutPair(func() ([]byte, error) { return num.PutFloats(nil, []float64{s.Width}), nil },
		s.State.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *state) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, func(raw []byte) error {
		v, err := num.GetFloats(raw, 1)
		if err == nil {
			s.Width = v[0]
		}
		return err
	}, s.State.UnmarshalBinary)
}
