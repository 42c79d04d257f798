package linear

import (
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/train"
)

// state is everything that one iteration of a linear model hands to the next.
type state struct {
	train.State
	Width float64 // of the hinge's smoothed part
	Best  float64 // objective at X on all data; NaN where it is not known
	Ahead bool    // Y is the end of Newton's last step, which promises less than the tolerance
}

// MarshalBinary lays the state out, what is of linear models before the rest.
func (s state) MarshalBinary() ([]byte, error) {
	own := []float64{s.Width, s.Best, 0}
	if s.Ahead {
		own[2] = 1
	}
	return num.PutPair(func() ([]byte, error) { return num.PutFloats(nil, own), nil }, s.State.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *state) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, func(raw []byte) error {
		v, err := num.GetFloats(raw, 3)
		if err == nil {
			s.Width, s.Best, s.Ahead = v[0], v[1], v[2] == 1
		}
		return err
	}, s.State.UnmarshalBinary)
}
