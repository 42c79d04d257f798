package mllib

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/volley-engine/volley/rdd"
)

// Ended says of a model that training went on until its own rule ended it: by what
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

// problemDigest names the training: all that decides the objective, and, where that is
// not proven, by what method it is minimized. What one takes for the end another may not.
func (t *trainer) problemDigest(proven bool) (string, error) {
	c := t.cfg
	if proven {
		c.Solver, c.StepSize, c.Cut = "", 0, false
	}
	var rows []any
	for _, s := range t.meta.Splits {
		rows = append(rows, s.SHA256)
	}
	raw, err := json.Marshal([]any{rows, c.Solver, c.StepSize, c.Cut, c.Loss, c.Positive, c.Reg, c.Alpha, c.Intercept, c.Standardize, c.ClassWeights, c.Balanced})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// ended notes in the model that its training is over, where it is.
func (t *trainer) ended() (err error) {
	if why := t.out.StoppedBy; why != "tolerance" && why != "duality-gap" || !isFinite(t.out.Objective) || t.st.Held.Point != nil {
		return nil
	}
	e := &Ended{Objective: t.out.Objective, Tolerance: t.cfg.Tol, Proven: t.out.StoppedBy == "duality-gap"}
	e.Problem, err = t.problemDigest(e.Proven)
	t.out.Model.Ended = e
	return err
}

// endedBefore says whether a model to begin with is the end of this very training, by
// the same tolerance or a smaller one: not all methods find out by themselves that they are
// where they would end, the smoothed hinge of many features least of all.
func (t *trainer) endedBefore(it *rdd.Iteration, o observation) bool {
	if t.cfg.Init == nil || t.cfg.Init.Ended == nil || it.Number > 1 || !o.exact {
		return false
	}
	e := t.cfg.Init.Ended
	problem, err := t.problemDigest(e.Proven)
	return err == nil && problem == e.Problem && e.Tolerance <= t.cfg.Tol &&
		math.Abs(o.objective-e.Objective) <= rounding*max(1e-3, math.Abs(e.Objective))
}
