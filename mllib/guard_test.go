package mllib

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
)

// under trains with flags of the engine, and returns the error.
func under(t *testing.T, c LinearConfig, cfg volley.Config) (out *Trained, err error) {
	t.Helper()
	cfg.DataDir = t.TempDir()
	_, err = volley.Run(context.Background(), cfg, "guarded", c, BuildLinear,
		func(ctx context.Context, s *rdd.Session, c LinearConfig, p LinearPlan) (string, error) {
			out, err = TrainLinear(ctx, s, c, p)
			return "", err
		})
	return out, err
}

// TestStepsThatAreTooLongEndNoRun: a step size far above what the data allow is halved
// until it is not, and the result is no worse than where the run began.
func TestStepsThatAreTooLongEndNoRun(t *testing.T) {
	path := rowsFile(t, 400, func(i int, rng *rand.Rand) string {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		return fmt.Sprintf("%v,%v,%v", 3*a-b+rng.NormFloat64(), a, 100*b)
	})
	for _, method := range []Solver{solver.Descent, solver.Nesterov, solver.Constant, solver.Sqrt, solver.Adam, solver.SVRG} {
		c := defaults(path)
		c.Loss, c.Solver, c.StepSize, c.MaxIterations = Squared, method, 1e6, 200
		got, err := under(t, c, volley.Config{Executors: 2})
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if !num.Finite(got.Objective) || got.Objective > 6 || got.Converged && got.Gap > c.Tol*math.Max(1, got.Objective) {
			t.Errorf("%s: objective %v, gap %v, converged %v", method, got.Objective, got.Gap, got.Converged)
		}
	}
}

// TestColumnsThatCannotBeSquaredAreNamed rather than trained on to no end.
func TestColumnsThatCannotBeSquaredAreNamed(t *testing.T) {
	path := rowsFile(t, 50, func(i int, rng *rand.Rand) string {
		if i == 0 {
			return "label,small,huge"
		}
		return fmt.Sprintf("%d,%v,%v", i%2, rng.NormFloat64(), 1e300*rng.NormFloat64())
	})
	for _, method := range []Solver{solver.Newton, solver.Nesterov, solver.LBFGS, solver.Adam, solver.SDCA} {
		c := defaults(path)
		c.Solver = method
		if _, err := under(t, c, volley.Config{Executors: 2}); fault.KindOf(err) != fault.BadInput || !strings.Contains(err.Error(), `"huge"`) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestWhatUsersHaveRatedIsNotRecommended to them, by a model that was saved either.
func TestWhatUsersHaveRatedIsNotRecommended(t *testing.T) {
	all := planted(40, 25, 2, 0.4)
	c := ALSConfig{Data: []string{writeRatings(t, all, ratingsHead)}, Rank: 2, Reg: 0.01, MaxIterations: 5, Tol: 1e-3}
	got := factored(t, c, "--executors", "2")
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	rated := map[[2]float64]bool{}
	for _, r := range all {
		rated[[2]float64{r.user, r.item}] = true
	}
	m := loaded.(*FactorModel)
	if int(m.Seen) != len(rated) || !slices.Equal(m.seen.Items, got.Model.seen.Items) {
		t.Fatalf("%d pairs are known of %d", m.Seen, len(rated))
	}
	for _, forUsers := range []bool{true, false} {
		listed := 0
		err = m.Top(nil, 100, forUsers, false, func(id float64, best []Recommended) error {
			for _, r := range best {
				pair := [2]float64{id, r.ID}
				if !forUsers {
					pair = [2]float64{r.ID, id}
				}
				if listed++; rated[pair] {
					t.Errorf("%v is recommended, and was rated", pair)
				}
			}
			return nil
		})
		if want := m.Users*m.Items - len(rated); err != nil || listed != want {
			t.Errorf("%d pairs are recommended of %d that nobody has rated: %v", listed, want, err)
		}
	}
}

// TestAnMLPFitsNumbersOfAnySize by defaults: features and labels are taken in units of
// their own, and the model is of them as they are.
func TestAnMLPFitsNumbersOfAnySize(t *testing.T) {
	path := rowsFile(t, 600, func(i int, rng *rand.Rand) string {
		a, b := 1e4+100*rng.NormFloat64(), 1e-3*rng.NormFloat64()
		return fmt.Sprintf("%v,%v,%v", 5e6+1e3*(a-1e4)+1e8*b, a, b)
	})
	c := MLPConfig{Data: []string{path}, Hidden: []int{20}, Activation: ReLU, Regression: true, Solver: solver.Adam, Batches: true, Passes: true, Tol: 1e-7, Seed: 1}
	var out *Networked
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "mlp", c, BuildMLP,
		func(ctx context.Context, s *rdd.Session, c MLPConfig, p MLPPlan) (_ string, err error) {
			out, err = TrainMLP(ctx, s, c, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := out.Model.Evaluate(context.Background(), rdd.Input{}, []string{path})
	if err != nil || metrics["r2"] < 0.9 {
		t.Errorf("%v, %v", metrics, err)
	}
	if len(out.Chosen) != 3 {
		t.Errorf("what was chosen is told as %q", out.Chosen)
	}
}
