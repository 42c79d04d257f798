package train

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

// ParseStopRule returns the rule of a name.
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

// StopState is what the rules remember.
type StopState struct {
	Last     float64   // objective at the last check
	Streak   float64   // checks in a row that found no progress
	Recent   []float64 // estimates of the last two windows, or ten objectives of flexrr
	Looked   float64   // objective of the last evaluation pass
	LookedAt float64   // its iteration; 0 is never
	NextLook float64   // iteration before which no pass is worth its cost
	Proofs   float64   // how often a run stood still and had not converged
}

// Floats lays the state out.
func (s *StopState) Floats() []float64 {
	return append([]float64{s.Last, s.Streak, s.Looked, s.LookedAt, s.NextLook, s.Proofs}, s.Recent...)
}

// SetFloats reads what Floats laid out.
func (s *StopState) SetFloats(v []float64) error {
	if len(v) < 6 {
		return fmt.Errorf("the state of the stop rules is cut short")
	}
	s.Last, s.Streak, s.Looked, s.LookedAt, s.NextLook, s.Proofs = v[0], v[1], v[2], v[3], v[4], v[5]
	s.Recent = append([]float64(nil), v[6:]...)
	return nil
}

// Stopper applies the rules to one iteration after the other.
type Stopper struct {
	Rule     StopRule
	Tol      float64
	Target   *float64
	Deadline time.Duration
	State    *StopState
}

// Observation is what an iteration has found out.
type Observation struct {
	Iteration int
	Objective float64 // or its estimate
	Exact     bool    // from all rows
	stderr    float64 // of an estimate
	HasMoved  bool    // moved and norm are known
	Moved     float64 // ‖Δw‖
	Norm      float64 // ‖w‖
	Now       time.Duration
}

// Verdict is what to do after an iteration: go on (empty), stop for a
// reason, or look: run an evaluation pass and ask again with its objective.
type Verdict struct {
	Stop string
	Look bool
}

// Check applies the rules to an iteration.
func (s *Stopper) Check(o Observation) Verdict {
	if s.Deadline > 0 && o.Now >= s.Deadline {
		return Verdict{Stop: "max-time"}
	}
	if s.Target != nil && o.Objective <= *s.Target+float64(2*o.stderr) { // it may be there
		if o.Exact {
			return Verdict{Stop: "target"}
		}
		if float64(o.Iteration) >= s.State.NextLook {
			return Verdict{Look: true}
		}
	}
	switch s.Rule {
	case ByWeights:
		if o.HasMoved && s.Tol > 0 && o.Moved < float64(s.Tol*max(o.Norm, 1)) {
			return Verdict{Stop: "weights"}
		}
	case ByFlexRR:
		return s.flexrr(o)
	default:
		return s.byObjective(o)
	}
	return Verdict{}
}

// flexrr stops when the objective has changed by less than 2 % over ten
// iterations.
func (s *Stopper) flexrr(o Observation) Verdict {
	st := s.State
	st.Recent = append(st.Recent, o.Objective)
	if len(st.Recent) <= 10 {
		return Verdict{}
	}
	st.Recent = st.Recent[len(st.Recent)-11:]
	if math.Abs(st.Recent[0]-o.Objective) < float64(0.02*math.Abs(st.Recent[0])) {
		return Verdict{Stop: "flexrr"}
	}
	return Verdict{}
}

func (s *Stopper) byObjective(o Observation) Verdict {
	if s.Tol <= 0 {
		return Verdict{}
	}
	if o.Exact {
		return s.exactProgress(o)
	}
	return s.estimatedProgress(o)
}

// Where a run stalls and has not converged, it goes on until it stands this much
// stiller, a number of times.
const (
	tighter    = 10
	mostProofs = 4
)

// MayGoOn reports whether a run that stalls may go on.
func (s *Stopper) MayGoOn() bool {
	return s.Rule != ByWeights && s.Rule != ByFlexRR && s.State.Proofs < mostProofs
}

// GoOn lets a run that stalls go on.
func (s *Stopper) GoOn() {
	s.State.Proofs++
	s.State.Streak = 0
}

// exactProgress counts checks in a row without progress.
func (s *Stopper) exactProgress(o Observation) Verdict {
	st := s.State
	tol := s.Tol / num.Power(tighter, st.Proofs)
	still := o.Iteration > 1 && math.Abs(st.Last-o.Objective) <= float64(tol*max(1, math.Abs(o.Objective)))
	st.Last = o.Objective
	if !still {
		st.Streak = 0
		return Verdict{}
	}
	if st.Streak++; st.Streak >= window {
		return Verdict{Stop: "tolerance"}
	}
	return Verdict{}
}

// estimatedProgress compares the means of the last two windows: where they
// differ by no more than their noise, it is time to look.
func (s *Stopper) estimatedProgress(o Observation) Verdict {
	st := s.State
	st.Recent = append(st.Recent, o.Objective)
	if len(st.Recent) < 2*window {
		return Verdict{}
	}
	st.Recent = st.Recent[len(st.Recent)-2*window:]
	var before, after float64
	for i := range window {
		before += st.Recent[i] / window
		after += st.Recent[window+i] / window
	}
	noise := 2 * o.stderr * math.Sqrt(2.0/window)
	quiet := before-after <= max(noise, float64(window*s.Tol)*max(1, math.Abs(after)))
	return Verdict{Look: quiet && float64(o.Iteration) >= st.NextLook}
}

// Looked takes the objective of an evaluation pass: it reports whether to stop,
// or when the next look is worth its cost.
func (s *Stopper) Looked(o Observation) Verdict {
	st := s.State
	if s.Target != nil && o.Objective <= *s.Target {
		return Verdict{Stop: "target"}
	}
	gap := float64(o.Iteration) - st.LookedAt
	progress := math.Abs(st.Looked-o.Objective) / max(1, gap)
	first := st.LookedAt == 0
	st.Looked, st.LookedAt = o.Objective, float64(o.Iteration)
	st.NextLook = float64(o.Iteration) + max(window, math.Ceil(float64(o.Iteration)/10))
	if s.Target != nil { // close to the target a look is worth more
		st.NextLook = float64(o.Iteration) + max(1, math.Ceil(float64(o.Iteration)/20))
	}
	if !first && gap >= window && s.Rule == ByObjective && s.Tol > 0 &&
		progress <= float64(s.Tol*max(1, math.Abs(o.Objective))) {
		return Verdict{Stop: "tolerance"}
	}
	return Verdict{}
}
