package linear

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/storage/pack"
)

// Ended records that a model's training ended by its own stop rule: by what
// tolerance, at what objective of what problem.
type Ended struct {
	Problem   string  `json:"problem"` // digest of rows, loss, penalty and solver
	Objective float64 `json:"objective"`
	Tolerance float64 `json:"tolerance"`
	Proven    bool    `json:"proven,omitempty"` // by a duality gap, whatever the solver
}

// rounding is how far apart, relative, two sums of the same losses may lie whose
// variables are of different units.
const rounding = 1e-9

// problem names a training: all that decides the objective, and, where its end is not
// proven, by what method it is minimized. What one takes for the end another may not.
func (c Config) problem(meta *pack.Meta, proven bool) (string, error) {
	if proven {
		c.Solver, c.StepSize, c.Cut = "", 0, false
	}
	var rows []any
	for _, s := range meta.Splits {
		rows = append(rows, s.SHA256)
	}
	raw, err := json.Marshal([]any{rows, c.Solver, c.StepSize, c.Cut, c.Loss, c.Positive, c.Reg, c.Alpha, c.Intercept,
		c.Standardize, c.ClassWeights, c.Classes, c.Balanced})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// ended notes where a training is over: where it has converged, or a method that steps
// along gradients, and has not returned, stalls by its own rule, which would end it there again. It
// returns nil where it is not over, or its model is one of before, the best on rows held
// out.
func (c *Config) ended(meta *pack.Meta, sum *train.Summary, returned, before bool) (e *Ended, err error) {
	still := sum.StoppedBy == "tolerance" && solver.Of(sum.Solver).Wants != solver.Curvatures && !returned
	if !sum.Converged && !still || !num.Finite(sum.Objective) || before {
		return nil, nil
	}
	e = &Ended{Objective: sum.Objective, Tolerance: c.Tol, Proven: sum.Converged && sum.GapBy == train.ByDuality}
	e.Problem, err = c.problem(meta, e.Proven)
	return e, err
}

// lower returns the least that the objective may be, by what the training has proven.
func (e *Ended) lower() float64 {
	return e.Objective - float64((1-rounding)*e.Tolerance*max(1, math.Abs(e.Objective)))
}

// is reports whether a model to begin with, of this objective, is the end of this very
// training, by the same tolerance or a smaller one. A small gradient would not say so:
// where variables are of very different curvature it promises little and hides much.
func (e *Ended) is(c *Config, meta *pack.Meta, objective float64) bool {
	byObjective := c.Stop == "" || c.Stop == train.ByObjective // other rules hold the tolerance against something else
	if e == nil || !byObjective || e.Tolerance > c.Tol ||
		math.Abs(objective-e.Objective) > rounding*max(1e-3, math.Abs(e.Objective)) {
		return false
	}
	problem, err := c.problem(meta, e.Proven)
	return err == nil && problem == e.Problem
}
