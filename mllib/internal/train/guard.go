package train

import (
	"context"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// guardState keeps methods of first order from running away: a step size is an
// estimate, and one that is too large lets the objective grow without end. It has the
// best point that is known of, to which such a run returns, with half the step.
type guardState struct {
	Point []float64 // the best point; nil before the first pass
	F     float64   // its objective
	Sure  float64   // 1: on all data, not an estimate
	Start float64   // objective, or its estimate, where the run began
	Next  float64   // iteration at which the objective is found on all data, whatever the estimates say
	Halts float64   // how often the run has returned
}

func (g *guardState) floats() []float64 {
	return []float64{g.F, g.Sure, g.Start, g.Next, g.Halts}
}

func (g *guardState) setFloats(v []float64) {
	g.F, g.Sure, g.Start, g.Next, g.Halts = v[0], v[1], v[2], v[3], v[4]
}

// What counts as running away: an objective this far above where the run began, relative
// to it, and this many standard errors. firstLook is when cut steps are first held
// against all data; then at twice the iteration, and so on.
const (
	awayShare  = 0.01
	awayErrors = 3
	firstLook  = 5
	mostHalts  = 200
)

// Away reports whether a run has reached a point that it cannot continue from, and
// takes it back. Where the objective is an estimate, evaluate finds it.
func (s *State) Away(ctx context.Context, it *rdd.Iteration, job string, o Observation,
	evaluate func(context.Context, int) (float64, error)) (back bool, err error) {
	g := &s.Guard
	if g.Point == nil {
		if !o.Exact { // a limit is to be that of all data
			if o.Objective, err = evaluate(ctx, it.Number); err != nil {
				return false, err
			}
			o.Exact = true
		}
		g.Start, g.Next = o.Objective, firstLook
		g.Note(s.Y, o.Objective, o.Exact)
		return false, FiniteAtFirst(job, o.Objective)
	}
	f, exact := o.Objective, o.Exact
	limit := math.FMA(awayShare, math.Abs(g.Start), g.Start)
	grown := !(f <= limit+float64(awayErrors*o.stderr))
	if !exact && (grown || float64(it.Number) >= g.Next) {
		if f, err = evaluate(ctx, it.Number); err != nil {
			return false, err
		}
		exact, grown = true, !(f <= limit)
		g.Next = max(g.Next, 2*float64(it.Number))
	}
	if exact && f < g.F || exact && g.Sure == 0 && f <= limit {
		g.Note(s.Y, f, true)
	}
	if !grown {
		return false, nil
	}
	return true, s.returns(it, job)
}

// Note takes a point for the best.
func (g *guardState) Note(point []float64, f float64, sure bool) {
	g.Point, g.F = append(g.Point[:0], point...), f
	if g.Sure = 0; sure {
		g.Sure = 1
	}
}

// returns takes the run back to the best point, with half the step and nothing of what
// it remembered.
func (s *State) returns(it *rdd.Iteration, job string) error {
	g := &s.Guard
	if g.Halts++; g.Halts > mostHalts {
		return fault.Newf(fault.BadInput, "train", job, "the objective grows, however small the steps").
			WithHint("scale columns: --scale standard, or --standardize")
	}
	s.Rules = StopState{} // what stood still is where the run returns to
	copy(s.Y, g.Point)
	copy(s.X, g.Point)
	s.Step /= 2
	s.Solver.Forget()
	it.Report("step", s.Step)
	return nil
}

// Lowest takes a point for the best whose objective on all data is the least so far.
func (g *guardState) Lowest(point []float64, f float64) {
	if g.Point == nil || f < g.F {
		g.Note(point, f, true)
	}
}

// Better returns the best point that was seen on all data, if the objective is less
// there than f.
func (g *guardState) Better(f float64) (point []float64, ok bool) {
	return g.Point, g.Sure == 1 && (g.F < f || !num.Finite(f))
}
