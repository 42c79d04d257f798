package mllib

import (
	"fmt"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// state is everything that one iteration hands to the next. Vectors have an
// entry a variable.
type state struct {
	X      []float64 // last point accepted
	Y      []float64 // where the next pass is made
	T      float64   // Nesterov's t
	Step   float64   // 1/L of the accelerated method, the given step of others
	Count  float64   // steps taken
	Rules  stopState
	Latest float64    // objective, or its estimate, at Y when it was last seen
	Width  float64    // of the hinge's smoothed part
	Search lineSearch // of methods that look whether a step was one downhill
	First  []float64  // Adam's running mean of the gradient
	Second []float64  // and of its square
	Dual   dualState
	Anchor anchorState
	Held   heldState
	Guard  guardState
}

// MarshalBinary lays the state out as floats, so that it costs little to
// commit.
func (s state) MarshalBinary() ([]byte, error) {
	q, d, a, h := &s.Search, &s.Dual, &s.Anchor, &s.Held
	out := num.PutFloats(nil, []float64{h.Least, h.Since, a.Visited, d.Began, d.Careful, d.Share, d.Gap, d.FellAt, d.Conj, d.Momentum, s.T, s.Step, s.Count, s.Latest, s.Width, q.F, q.Slope, q.Length, q.Tries, float64(len(q.Moves))})
	for _, v := range slices.Concat([][]float64{s.X, s.Y, s.First, s.Second, d.U, d.Center, d.Last, d.Solved, a.Point, a.Gradient, h.Point, s.Guard.Point, s.Guard.floats(), s.Rules.floats(), q.G, q.Direction}, q.Moves, q.Turns) {
		out = num.PutFloats(out, []float64{float64(len(v))}, v)
	}
	return out, nil
}

// Parameters are the points that the solver stands at.
func (s *state) Parameters() [][]float64 { return [][]float64{s.X, s.Y} }

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *state) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 20)
	if err != nil {
		return err
	}
	q, d, a, h := &s.Search, &s.Dual, &s.Anchor, &s.Held
	h.Least, h.Since, a.Visited, d.Began, d.Careful, v = v[0], v[1], v[2], v[3], v[4], v[5:]
	d.Share, d.Gap, d.FellAt, d.Conj, d.Momentum, v = v[0], v[1], v[2], v[3], v[4], v[5:]
	s.T, s.Step, s.Count, s.Latest, s.Width, q.F, q.Slope, q.Length, q.Tries = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]
	pairs := int(v[9])
	if v = v[10:]; pairs < 0 || pairs > maxPairs {
		return fmt.Errorf("a state cannot have %d pairs", pairs)
	}
	q.Moves, q.Turns = make([][]float64, pairs), make([][]float64, pairs)
	var rules, guard []float64
	into := []*[]float64{&s.X, &s.Y, &s.First, &s.Second, &d.U, &d.Center, &d.Last, &d.Solved, &a.Point, &a.Gradient, &h.Point, &s.Guard.Point, &guard, &rules, &q.G, &q.Direction}
	for i := range q.Moves {
		into = append(into, &q.Moves[i])
	}
	for i := range q.Turns {
		into = append(into, &q.Turns[i])
	}
	for _, to := range into {
		if len(v) == 0 || v[0] < 0 || int(v[0]) > len(v)-1 {
			return fmt.Errorf("the state of a solver is cut short")
		}
		n := int(v[0])
		if *to = nil; n > 0 { // of a gradient, nil is one that is not known
			*to = v[1 : 1+n : 1+n]
		}
		v = v[1+n:]
	}
	if len(guard) != len(s.Guard.floats()) {
		return fmt.Errorf("the state of a solver is cut short")
	}
	s.Guard.setFloats(guard)
	return s.Rules.setFloats(rules)
}

// advance takes one step along the gradient g at Y by a method of first order;
// lasso is the weight of each variable's absolute value, nil without one.
func (s *state) advance(solver Solver, g, lasso []float64) {
	s.Count++
	switch solver {
	case Nesterov:
		s.accelerate(g, lasso)
	case Sqrt:
		s.descend(s.Step/math.Sqrt(s.Count), g, lasso)
	case Descent, Constant, SVRG:
		s.descend(s.Step, g, lasso)
	case Adam:
		s.adapt(g, lasso)
	}
}

func (s *state) descend(step float64, g, lasso []float64) {
	kernel.Axpy(-step, g, s.Y)
	shrink(s.Y, step, lasso)
	copy(s.X, s.Y)
}

// shrink moves each entry towards zero by step times its weight, and not past it:
// the proximal step of an L1 penalty.
func shrink(x []float64, step float64, lasso []float64) {
	for j, l := range lasso {
		x[j] = num.Soft(x[j], float64(step*l))
	}
}

// accelerate is Nesterov's method (FISTA, where there is an L1 penalty) with
// the gradient restart of O'Donoghue and Candès: momentum that points uphill is
// dropped.
func (s *state) accelerate(g, lasso []float64) {
	next := make([]float64, len(s.Y))
	copy(next, s.Y)
	kernel.Axpy(-s.Step, g, next)
	shrink(next, s.Step, lasso)
	var uphill float64
	for j := range g {
		slope := g[j]
		if lasso != nil {
			slope = s.Y[j] - next[j] // of the proximal step
		}
		uphill = math.FMA(slope, next[j]-s.X[j], uphill)
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

// adapt is Adam (Kingma and Ba): running means of gradient and squared gradient,
// freed of their bias towards zero.
func (s *state) adapt(g, lasso []float64) {
	const slow, slower, least = 0.9, 0.999, 1e-8
	if s.First == nil {
		s.First, s.Second = make([]float64, len(g)), make([]float64, len(g))
	}
	free, freer := 1-num.Power(slow, s.Count), 1-num.Power(slower, s.Count)
	for j, v := range g {
		s.First[j] = math.FMA(slow, s.First[j], float64((1-slow)*v))
		s.Second[j] = math.FMA(slower, s.Second[j], float64(float64((1-slower)*v)*v))
		step := s.Step / (math.Sqrt(s.Second[j]/freer) + least)
		s.Y[j] = math.FMA(-step, s.First[j]/free, s.Y[j])
		if lasso != nil {
			s.Y[j] = num.Soft(s.Y[j], float64(step*lasso[j]))
		}
	}
	copy(s.X, s.Y)
}
