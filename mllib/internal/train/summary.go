package train

import (
	"github.com/volley-engine/volley/mllib/internal/solver"
)

// Summary is what every training run comes to beside its model.
type Summary struct {
	Objective float64 // on all data, at the model
	Gap       float64 // by how much it may be above the least, at most; NaN where that is not known
	GapBy     string  // what bounds it: ByDuality, ByCurvature or ByGradient
	// the gap is within the tolerance, relative to the objective where that is above 1; without a
	// gap: the tolerance ended the run
	Converged  bool
	Iterations int
	StoppedBy  string
	Solver     solver.Name // that was used
	SolverWhy  string      // it was chosen, where the user has not
	Chosen     []string    // other defaults that the data had a say in, each with its reason
	MeanShare  float64
	MeanNEff   float64
	Waited     float64 // share of their time that slots of workers on tables waited
	Helped     float64 // share of their steps that other workers have taken for them
	Rows       int64
	Features   int
	Processed  int64   // rows folded and merged in training steps
	Drift      float64 // of sdca: how far w had drifted from what the dual variables stand for, relatively
	Malformed  int64   // records of the input that were left out, as was asked for
	Missing    int64   // rows that were left out as they lack a number, as was asked for
	tolerance  float64
}

// Stopped returns why the run has ended.
func (s *Summary) Stopped() string { return s.StoppedBy }
