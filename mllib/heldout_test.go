package mllib

import (
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
)

func TestPatience(t *testing.T) {
	var h heldState
	for i, loss := range []float64{3, 2, 2.5, 1, 1.5, 1.2} {
		if h.observe(loss, []float64{float64(i)}, 3) {
			t.Fatalf("it stops at %d", i)
		}
	}
	if !h.observe(1, []float64{6}, 3) || h.Point[0] != 3 || h.Least != 1 {
		t.Errorf("it goes on, or keeps another point: %+v", h)
	}
}

// TestTrainingStopsByHeldRows keeps the point that is best on them, of every solver.
func TestTrainingStopsByHeldRows(t *testing.T) {
	path, _, _ := sample(t, 300, 60, true) // few rows for so many features
	for _, method := range []Solver{solver.Nesterov, solver.LBFGS, solver.SDCA, solver.SVRG, solver.Descent} {
		c := defaults(path)
		c.Solver, c.Reg, c.Intercept, c.MaxIterations = method, 1e-6, method != solver.SDCA, 300
		free := train(t, c)
		c.Input.Fold.Stop, c.Patience = 1./3, 4
		got := train(t, c)
		if got.StoppedBy != "validation" || got.Iterations >= free.Iterations {
			t.Errorf("%s: stopped by %s after %d, without held rows after %d", method, got.StoppedBy, got.Iterations, free.Iterations)
		}
		if got.Rows >= free.Rows {
			t.Errorf("%s: trained on %d rows", method, got.Rows)
		}
	}
}
