package mlp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// network1 trains a network on numbers as the command line does, for a few passes.
func network1(t *testing.T, path string) (*Networked, error) {
	t.Helper()
	cfg, err := volley.ParseConfig("--executors", "2", "--data-dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Data: []string{path}, Hidden: []int{16}, Activation: ReLU, Regression: true, Reg: 5e-7,
		Solver:  solver.Adam,
		Batches: true, MaxIterations: 600, Seed: 1}
	var out *Networked
	_, err = volley.Run(context.Background(), cfg, "mlp", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	return out, err
}

// TestAnMLPFitsNumbersOfAnySize by defaults: features and labels are taken in units of
// their own, and the model is of them as they are.
func TestAnMLPFitsNumbersOfAnySize(t *testing.T) {
	path := testrows.Lines(t, 600, func(i int, rng *rand.Rand) string {
		a, b := 1e4+100*rng.NormFloat64(), 1e-3*rng.NormFloat64()
		return fmt.Sprintf("%v,%v,%v", 5e6+1e3*(a-1e4)+1e8*b, a, b)
	})
	c := Config{Data: []string{path}, Hidden: []int{20}, Activation: ReLU, Regression: true, Solver: solver.Adam,
		Batches: true, Passes: true, Tol: 1e-7, Seed: 1}
	var out *Networked
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "mlp", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
			out, err = Train(ctx, s, c, p)
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

// TestWhereColumnsBeginIsNoMatter to a network: it sees them in units of their deviation.
func TestWhereColumnsBeginIsNoMatter(t *testing.T) {
	near, err := network1(t, testrows.Hard(t, 4000, 4, false, testrows.FarOff(0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []float64{200, 1e4, 1e8} {
		far, err := network1(t, testrows.Hard(t, 4000, 4, false, testrows.FarOff(by)))
		if err != nil {
			t.Fatal(err)
		}
		if far.Loss > 2*near.Loss {
			t.Errorf("columns about %v: loss %v, about 0: %v", by, far.Loss, near.Loss)
		}
	}
}

// TestANetworkRefusesHugeNumbers by name, or gives numbers that are ones.
func TestANetworkRefusesHugeNumbers(t *testing.T) {
	for _, column := range []string{"0", "2"} {
		n := 0
		path := testrows.Hard(t, 400, 4, false, func(_ *rand.Rand, x []float64) {
			if n++; n == 77 {
				x[map[string]int{"0": 0, "2": 2}[column]] = 1e300
			}
		})
		got, err := network1(t, path)
		if err == nil {
			finite := num.Finite(got.Loss)
			for _, v := range got.Model.numbers {
				finite = finite && num.Finite(v)
			}
			t.Errorf("column %s with 1e300 was taken in; all numbers finite: %v", column, finite)
		}
	}
}
