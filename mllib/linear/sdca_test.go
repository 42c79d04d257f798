package linear

import (
	"fmt"
	"math"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
)

// TestDualAscentOnWideData comes to the optimum where rows have more features than
// there are rows, with an intercept and without, and its gap says how near.
func TestDualAscentOnWideData(t *testing.T) {
	path, _, _ := sample(t, 300, narrowCurved+60, true)
	for _, loss := range []Loss{Hinge, SquaredHinge, Logistic} {
		for _, intercept := range []bool{false, true} {
			for _, reg := range []float64{0.1, 0.01} {
				c := defaults(path)
				c.Loss, c.Solver, c.Reg, c.Intercept, c.Tol, c.MaxIterations = loss, solver.SDCA, reg, intercept, 1e-6,
					5000
				got := fitted(t, c)
				c.Solver, c.Tol = solver.LBFGS, 1e-10
				want := fitted(t, c)
				name := fmt.Sprint(loss, ", intercept ", intercept, ", λ ", reg)
				if got.StoppedBy != "duality-gap" || got.Objective > want.Objective+1.1e-6 {
					t.Errorf("%s: %v after %d (%s), lbfgs %v", name, got.Objective, got.Iterations, got.StoppedBy,
						want.Objective)
				}
				if loss != Hinge && math.Abs(got.Objective-want.Objective) > 1.1e-6 {
					t.Errorf("%s: %v lies below the optimum %v", name, got.Objective, want.Objective)
				}
			}
		}
	}
}

// TestAModelIsTakenAtItsWord only if it is the end of the same training.
func TestAModelIsTakenAtItsWord(t *testing.T) {
	path, _, _ := sample(t, 300, narrowCurved+60, true)
	c := defaults(path)
	c.Loss, c.Solver, c.Tol = Hinge, solver.Auto, 1e-6
	first := fitted(t, c)
	if first.Model.Ended == nil || first.Solver != solver.LBFGS {
		t.Fatalf("%s ended by %s: %v", first.Solver, first.StoppedBy, first.Model.Ended)
	}
	c.Init = &Beginning{Model: *first.Model, Numbers: first.Model.Weights}
	if again := fitted(t, c); again.Iterations > 3 || again.Objective > first.Objective*(1+rounding) {
		t.Errorf("%d iterations to %v, at first %v", again.Iterations, again.Objective, first.Objective)
	}
	for name, change := range map[string]func(c *Config, m *Model){
		"a smaller tolerance": func(c *Config, _ *Model) { c.Tol = 1e-8 },
		"another penalty":     func(c *Config, _ *Model) { c.Reg *= 1.01 },
		"another weight":      func(_ *Config, m *Model) { m.Weights[3] += 0.1 },
	} {
		other, model := c, *first.Model
		model.Weights = append([]float64(nil), model.Weights...)
		change(&other, &model)
		other.Init = &Beginning{Model: model, Numbers: model.Weights}
		if got := fitted(t, other); got.Iterations <= 3 {
			t.Errorf("with %s, the model is taken for the optimum", name)
		}
	}
}
