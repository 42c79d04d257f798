package linear

import (
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
)

// TestTrainingStopsByHeldRows keeps the point that is best on them, of every solver.
func TestTrainingStopsByHeldRows(t *testing.T) {
	path, _, _ := sample(t, 300, 60, true) // few rows for that many features
	for _, method := range []solver.Name{solver.Nesterov, solver.LBFGS, solver.SDCA, solver.SVRG, solver.Descent} {
		c := defaults(path)
		c.Solver, c.Reg, c.Intercept, c.MaxIterations = method, 1e-6, method != solver.SDCA, 300
		free := fitted(t, c)
		c.Input.Fold.Stop, c.Patience = 1./3, 4
		got := fitted(t, c)
		if got.StoppedBy != "validation" || got.Iterations >= free.Iterations {
			t.Errorf("%s: stopped by %s after %d, without held rows after %d", method, got.StoppedBy, got.Iterations,
				free.Iterations)
		}
		if got.Rows >= free.Rows {
			t.Errorf("%s: trained on %d rows", method, got.Rows)
		}
	}
}
