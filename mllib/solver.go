package mllib

import (
	"fmt"
	"math"

	"github.com/volley-engine/volley/internal/kernel"
)

// Solver is a first-order method.
type Solver string

// The solvers: accelerated gradient with restarts, MLlib's step/√t, and a
// constant step.
const (
	Nesterov Solver = "nesterov"
	Sqrt     Solver = "sqrt"
	Constant Solver = "constant"
)

// ParseSolver is the solver of a name.
func ParseSolver(name string) (Solver, error) {
	switch s := Solver(name); s {
	case Nesterov, Sqrt, Constant:
		return s, nil
	}
	return "", fmt.Errorf("%q is not one of nesterov, sqrt, constant", name)
}

// state is everything that one iteration hands to the next.
type state struct {
	X      []float64 // last iterate
	Y      []float64 // where the next gradient is taken
	T      float64   // Nesterov's t
	Step   float64   // 1/L of the accelerated method, the given step of the others
	Count  float64   // gradient steps taken
	Rules  stopState
	Latest float64 // objective, or its estimate, at Y when it was last seen
}

// MarshalBinary lays the state out as floats, so that it costs little to
// commit.
func (s state) MarshalBinary() ([]byte, error) {
	head := []float64{float64(len(s.X)), s.T, s.Step, s.Count, s.Latest}
	return putFloats(nil, head, s.X, s.Y, s.Rules.floats()), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *state) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 5)
	if err != nil {
		return err
	}
	n := int(v[0])
	if n < 0 || len(v) < 5+2*n {
		return fmt.Errorf("a state of %d numbers does not hold vectors of %d", len(v), n)
	}
	s.T, s.Step, s.Count, s.Latest = v[1], v[2], v[3], v[4]
	s.X, s.Y = v[5:5+n], v[5+n:5+2*n]
	return s.Rules.setFloats(v[5+2*n:])
}

// advance takes one step along the gradient g at Y.
func (s *state) advance(solver Solver, g []float64) {
	s.Count++
	switch solver {
	case Nesterov:
		s.accelerate(g)
	case Sqrt:
		s.descend(s.Step/math.Sqrt(s.Count), g)
	case Constant:
		s.descend(s.Step, g)
	}
}

func (s *state) descend(step float64, g []float64) {
	kernel.Axpy(-step, g, s.Y)
	copy(s.X, s.Y)
}

// accelerate is Nesterov's method with the gradient restart of O'Donoghue and
// Candès: momentum that points uphill is dropped.
func (s *state) accelerate(g []float64) {
	next := make([]float64, len(s.Y))
	copy(next, s.Y)
	kernel.Axpy(-s.Step, g, next)
	var uphill float64
	for j := range g {
		uphill = math.FMA(g[j], next[j]-s.X[j], uphill)
	}
	t := (1 + math.Sqrt(math.FMA(4*s.T, s.T, 1))) / 2
	momentum := (s.T - 1) / t
	if uphill > 0 {
		t, momentum = 1, 0
	}
	for j := range next {
		s.Y[j] = math.FMA(momentum, next[j]-s.X[j], next[j])
	}
	s.X, s.T = next, t
}
