package mllib

import (
	"fmt"
	"math"
	"time"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// StopRule is what ends a training run beside its limits.
type StopRule string

// The rules of SEMANTICS section 4. ByObjective is the default; ByWeights is
// MLlib's, ByFlexRR that of the FlexRR paper.
const (
	ByObjective StopRule = "objective"
	ByWeights   StopRule = "weights"
	ByFlexRR    StopRule = "flexrr"
)

// ParseStopRule is the rule of a name.
func ParseStopRule(name string) (StopRule, error) {
	switch r := StopRule(name); r {
	case ByObjective, ByWeights, ByFlexRR:
		return r, nil
	}
	return "", fmt.Errorf("%q is not one of objective, weights, flexrr", name)
}

// window is over how many checks the objective rule looks (p of SEMANTICS
// section 4).
const window = 5

// stopState is what the rules remember.
type stopState struct {
	Last     float64   // objective at the last check
	Streak   float64   // checks in a row that found no progress
	Recent   []float64 // estimates of the last two windows, or ten objectives of flexrr
	Looked   float64   // objective of the last evaluation pass
	LookedAt float64   // its iteration; 0 is never
	NextLook float64   // iteration before which no pass is worth its cost
	Proofs   float64   // how often a run stood still and had not converged
}

func (s *stopState) floats() []float64 {
	return append([]float64{s.Last, s.Streak, s.Looked, s.LookedAt, s.NextLook, s.Proofs}, s.Recent...)
}

func (s *stopState) setFloats(v []float64) error {
	if len(v) < 6 {
		return fmt.Errorf("the state of the stop rules is cut short")
	}
	s.Last, s.Streak, s.Looked, s.LookedAt, s.NextLook, s.Proofs = v[0], v[1], v[2], v[3], v[4], v[5]
	s.Recent = append([]float64(nil), v[6:]...)
	return nil
}

// stopper applies the rules to one iteration after the other.
type stopper struct {
	rule     StopRule
	tol      float64
	target   *float64
	deadline time.Duration
	state    *stopState
}

// observation is what an iteration has found out.
type observation struct {
	iteration int
	objective float64 // or its estimate
	exact     bool    // from all rows
	stderr    float64 // of an estimate
	hasMoved  bool    // moved and norm are known
	moved     float64 // ‖Δw‖
	norm      float64 // ‖w‖
	now       time.Duration
}

// verdict is what to do after an iteration: go on (empty), stop for a
// reason, or look: run an evaluation pass and ask again with its objective.
type verdict struct {
	stop string
	look bool
}

// check applies the rules to an iteration.
func (s *stopper) check(o observation) verdict {
	if s.deadline > 0 && o.now >= s.deadline {
		return verdict{stop: "max-time"}
	}
	if s.target != nil && o.objective <= *s.target+float64(2*o.stderr) { // it may be there
		if o.exact {
			return verdict{stop: "target"}
		}
		if float64(o.iteration) >= s.state.NextLook {
			return verdict{look: true}
		}
	}
	switch s.rule {
	case ByWeights:
		if o.hasMoved && s.tol > 0 && o.moved < float64(s.tol*max(o.norm, 1)) {
			return verdict{stop: "weights"}
		}
	case ByFlexRR:
		return s.flexrr(o)
	default:
		return s.byObjective(o)
	}
	return verdict{}
}

// flexrr stops when the objective has changed by less than 2 % over ten
// iterations.
func (s *stopper) flexrr(o observation) verdict {
	st := s.state
	st.Recent = append(st.Recent, o.objective)
	if len(st.Recent) <= 10 {
		return verdict{}
	}
	st.Recent = st.Recent[len(st.Recent)-11:]
	if math.Abs(st.Recent[0]-o.objective) < float64(0.02*math.Abs(st.Recent[0])) {
		return verdict{stop: "flexrr"}
	}
	return verdict{}
}

func (s *stopper) byObjective(o observation) verdict {
	if s.tol <= 0 {
		return verdict{}
	}
	if o.exact {
		return s.exactProgress(o)
	}
	return s.estimatedProgress(o)
}

// Where a run stands still and has not converged, it goes on until it stands this much
// stiller, a number of times.
const (
	tighter    = 10
	mostProofs = 4
)

// mayGoOn reports whether a run that stands still may go on.
func (s *stopper) mayGoOn() bool {
	return s.rule != ByWeights && s.rule != ByFlexRR && s.state.Proofs < mostProofs
}

// goOn lets a run that stands still go on.
func (s *stopper) goOn() {
	s.state.Proofs++
	s.state.Streak = 0
}

// exactProgress counts checks in a row without progress.
func (s *stopper) exactProgress(o observation) verdict {
	st := s.state
	tol := s.tol / num.Power(tighter, st.Proofs)
	still := o.iteration > 1 && math.Abs(st.Last-o.objective) <= float64(tol*max(1, math.Abs(o.objective)))
	st.Last = o.objective
	if !still {
		st.Streak = 0
		return verdict{}
	}
	if st.Streak++; st.Streak >= window {
		return verdict{stop: "tolerance"}
	}
	return verdict{}
}

// estimatedProgress compares the means of the last two windows: where they
// differ by no more than their noise, it is time to look.
func (s *stopper) estimatedProgress(o observation) verdict {
	st := s.state
	st.Recent = append(st.Recent, o.objective)
	if len(st.Recent) < 2*window {
		return verdict{}
	}
	st.Recent = st.Recent[len(st.Recent)-2*window:]
	var before, after float64
	for i := range window {
		before += st.Recent[i] / window
		after += st.Recent[window+i] / window
	}
	noise := 2 * o.stderr * math.Sqrt(2.0/window)
	quiet := before-after <= max(noise, float64(window*s.tol)*max(1, math.Abs(after)))
	return verdict{look: quiet && float64(o.iteration) >= st.NextLook}
}

// looked takes the objective of an evaluation pass: it says stop, or when the
// next look is worth its cost.
func (s *stopper) looked(o observation) verdict {
	st := s.state
	if s.target != nil && o.objective <= *s.target {
		return verdict{stop: "target"}
	}
	gap := float64(o.iteration) - st.LookedAt
	progress := math.Abs(st.Looked-o.objective) / max(1, gap)
	first := st.LookedAt == 0
	st.Looked, st.LookedAt = o.objective, float64(o.iteration)
	st.NextLook = float64(o.iteration) + max(window, math.Ceil(float64(o.iteration)/10))
	if s.target != nil { // close to the target a look is worth more
		st.NextLook = float64(o.iteration) + max(1, math.Ceil(float64(o.iteration)/20))
	}
	if !first && gap >= window && s.rule == ByObjective && s.tol > 0 && progress <= float64(s.tol*max(1, math.Abs(o.objective))) {
		return verdict{stop: "tolerance"}
	}
	return verdict{}
}
