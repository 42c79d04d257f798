package train

import (
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
)

// State is everything that one iteration hands to the next. What the solver keeps is its
// own.
type State struct {
	solver.Point
	Solver solver.Solver
	Rules  StopState
	Held   heldState
	Guard  guardState
	Ending Ending
}

// NewState begins with zeros.
func NewState(variables int, step float64, s solver.Solver) State {
	return State{Point: solver.Point{X: make([]float64, variables), Y: make([]float64, variables), Step: step},
		Solver: s}
}

// Parameters returns the points that the solver stands at.
func (s *State) Parameters() [][]float64 { return [][]float64{s.X, s.Y} }

// stateVectors is how many vectors a state has beside its solver's.
const stateVectors = 7

// MarshalBinary lays the state out as floats, so that it costs little to
// commit: first what the solver keeps.
func (s State) MarshalBinary() ([]byte, error) {
	return num.PutPair(s.Solver.MarshalBinary, func() ([]byte, error) {
		return num.PutPair(s.Ending.MarshalBinary,
			s.floats)
	})
}

// UnmarshalBinary reads what MarshalBinary wrote, by a solver of the same kind.
func (s *State) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, s.Solver.UnmarshalBinary, func(raw []byte) error {
		return num.GetPair(raw, s.Ending.UnmarshalBinary, s.set)
	})
}

func (s *State) floats() ([]byte, error) {
	scalars := []float64{s.Step, s.Held.Least, s.Held.Since}
	return num.PutVectors(nil, scalars, s.X, s.Y, s.Held.Point, s.Guard.Point, s.Guard.floats(), s.Rules.Floats()), nil
}

func (s *State) set(raw []byte) error {
	v, err := num.GetVectors(raw, stateVectors)
	if err == nil && (len(v) != stateVectors || len(v[0]) != 3 || len(v[5]) != len(s.Guard.floats())) {
		err = num.ErrCutShort
	}
	if err != nil {
		return err
	}
	s.Step, s.Held.Least, s.Held.Since = v[0][0], v[0][1], v[0][2]
	s.X, s.Y, s.Held.Point, s.Guard.Point = v[1], v[2], v[3], v[4]
	s.Guard.setFloats(v[5])
	return s.Rules.SetFloats(v[6])
}
