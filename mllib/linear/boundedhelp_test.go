package linear

import (
	"context"
	"math"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// byHelped returns a configuration that workers are to train which do parts of one another's clocks.
func byHelped(slack int, c Config) Config {
	c = byWorkers(tables.SSP(slack), c)
	help := tables.DefaultHelp()
	c.Bounded.Help, c.Bounded.Batch = &help, 4
	return c
}

// oneIsSlow are the flags of a cluster of which one slot of eight has a quarter of the speed.
var oneIsSlow = []string{"--executors", "8", "--clock", "virtual", "--pace-rate", "20000", "--pace",
	"static:1,1,1,1,1,1,1,0.25"}

// TestHelpedWorkersComeToTheOptimum, each loss and penalty, and do not wait for the slow one as others do.
func TestHelpedWorkersComeToTheOptimum(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"logistic":    func(*Config) {},
		"sparse rows": func(*Config) {},
		"lasso":       func(c *Config) { c.Loss, c.Alpha, c.Reg = Squared, 1, 0.05 },
		"half passes": func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "half passes" {
				t.Skip("one of them is enough for the race detector")
			}
			path, _, _ := sample(t, 8000, 12, name == "sparse rows")
			c := defaults(path)
			c.Tol = 1e-7
			change(&c)
			c.Solver = solver.Auto
			best := fitted(t, c)
			for _, slack := range []int{0, 2} {
				h := byHelped(slack, c)
				if name == "half passes" {
					h.Bounded.Passes = 0.5
				}
				got := boundedly(t, h, oneIsSlow...)
				if above := got.Objective - best.Objective; math.Abs(above) > 1e-3*math.Abs(best.Objective) {
					t.Errorf("slack %d: after %d clocks the objective is %v, %v above the least", slack,
						got.Iterations, got.Objective, above)
				}
				if got.Helped < 0.04 || got.Waited > 0.5 {
					t.Errorf("slack %d: helpers have processed %.3f of the rows, slots have waited %.3f", slack,
						got.Helped, got.Waited)
				}
			}
		})
	}
}

// TestHelpedRowsAreThoseOfTheMeanGradient: what the table has is the sum of what workers keep of their rows, whichever
// worker has visited them.
func TestHelpedRowsAreThoseOfTheMeanGradient(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 1600, 5, false)
	for _, passes := range []float64{1, 0.7, 0.3} {
		c := byHelped(1, defaults(path))
		c.Bounded.Passes = passes
		unevenly(t, c, func(ctx context.Context, s *rdd.Session, c Config, p Plan) error {
			return heldAgainstRows(t, ctx, s, c, p)
		}, oneIsSlow...)
	}
}

// TestHelpedWorkersTellClassesApart.
func TestHelpedWorkersTellClassesApart(t *testing.T) {
	t.Parallel()
	path, _, _ := classes(t, 3000, 5, false)
	c := defaults(path)
	c.Loss, c.Solver, c.Tol = Softmax, solver.Auto, 1e-7
	best := classesOf(t, c)
	got := classesOf(t, byHelped(1, c), oneIsSlow...)
	if math.Abs(got.Objective-best.Objective) > 1e-3*best.Objective || got.Helped < 0.04 {
		t.Errorf("the objective is %v, of the exact solver %v; helped %.3f", got.Objective, best.Objective, got.Helped)
	}
}
