package train

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// How far a result is bounded to be above the least objective: by the dual at the
// derivatives of the rows' losses, which bounds it for certain, as does that no loss is
// below zero; by second derivatives, which are all there is to a squared loss; or by the
// gradient, if no variable is further off than by 1 and as much as it is, which is no
// proof.
const (
	ByDuality   = "duality"
	ByCurvature = "curvature"
	ByGradient  = "gradient"
)

// Quality is how far a model's objective was bounded to be above the least one.
type Quality struct {
	Objective float64 `json:"objective"`
	Gap       float64 `json:"gap"`
	GapBy     string  `json:"gap_by"`
	Tolerance float64 `json:"tolerance"`
	Converged bool    `json:"converged"`
}

// QualityOf returns what is known; nil is nothing.
func QualityOf(s *Summary) *Quality {
	if !num.Finite(s.Gap) || !num.Finite(s.Objective) {
		return nil
	}
	return &Quality{Objective: s.Objective, Gap: s.Gap, GapBy: s.GapBy, Tolerance: s.tolerance, Converged: s.Converged}
}

// AtMost takes the objective for a bound, where others are worse: no loss is below zero.
func AtMost(s *Summary, objective float64) {
	if s.Gap > objective {
		s.Gap, s.GapBy = objective, ByDuality
	}
}

// JudgedBy notes whether the gap is within a tolerance.
func JudgedBy(s *Summary, tol float64) {
	s.tolerance = tol
	s.Converged = s.Gap <= float64(tol*max(1, math.Abs(s.Objective)))
}
