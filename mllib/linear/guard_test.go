package linear

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// under trains with flags of the engine, and returns the error.
func under(t *testing.T, c Config, cfg volley.Config) (out *Trained, err error) {
	t.Helper()
	cfg.DataDir = t.TempDir()
	_, err = volley.Run(context.Background(), cfg, "guarded", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	return out, err
}

// TestStepsThatAreTooLongEndNoRun: a step size far above what the data allow is halved
// until it is not, and the result is no worse than where the run began.
func TestStepsThatAreTooLongEndNoRun(t *testing.T) {
	path := testrows.Lines(t, 400, func(i int, rng *rand.Rand) string {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		return fmt.Sprintf("%v,%v,%v", 3*a-b+rng.NormFloat64(), a, 100*b)
	})
	for _, method := range []solver.Name{solver.Descent, solver.Nesterov, solver.Constant, solver.Sqrt, solver.Adam,
		solver.SVRG} {
		c := defaults(path)
		c.Loss, c.Solver, c.StepSize, c.MaxIterations = Squared, method, 1e6, 200
		got, err := under(t, c, volley.Config{Executors: 2})
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if !num.Finite(got.Objective) || got.Objective > 6 ||
			got.Converged && got.Gap > c.Tol*math.Max(1, got.Objective) {
			t.Errorf("%s: objective %v, gap %v, converged %v", method, got.Objective, got.Gap, got.Converged)
		}
	}
}

// TestColumnsThatCannotBeSquaredAreNamed rather than trained on to no end.
func TestColumnsThatCannotBeSquaredAreNamed(t *testing.T) {
	path := testrows.Lines(t, 50, func(i int, rng *rand.Rand) string {
		if i == 0 {
			return "label,small,huge"
		}
		return fmt.Sprintf("%d,%v,%v", i%2, rng.NormFloat64(), 1e300*rng.NormFloat64())
	})
	for _, method := range []solver.Name{solver.Newton, solver.Nesterov, solver.LBFGS, solver.Adam, solver.SDCA} {
		c := defaults(path)
		c.Solver = method
		if _, err := under(t, c, volley.Config{Executors: 2}); fault.KindOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), `"huge"`) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
