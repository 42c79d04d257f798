package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// TestAWeightIsThatManyRows: weights do what repeating rows does, in every solver, and
// only in proportion.
func TestAWeightIsThatManyRows(t *testing.T) {
	for _, times := range []float64{1, 1000} {
		weights, repeated := testrows.Weighed(t, 300, 4, 2, times)
		for _, loss := range []Loss{Logistic, SquaredHinge, Squared, Hinge} {
			for _, method := range append([]solver.Name{solver.Auto}, solver.Names()...) {
				for _, balanced := range []bool{false, true} {
					c := defaults(repeated)
					c.Loss, c.Solver, c.Reg, c.MaxIterations, c.Standardize = loss, method, 0.05, 1500, loss == Squared
					c.Balanced = balanced
					c.Input.Label = "y"
					if loss != Squared {
						c.Positive = "1"
					}
					if c.Check() != nil || method == solver.Sqrt || method == solver.Adam || balanced && times > 1 {
						continue // Sqrt and Adam end near the optimum only
					}
					t.Run(fmt.Sprint(times, loss, method, balanced), func(t *testing.T) {
						want := fitted(t, c)
						c.Data, c.Input.Weight = []string{weights}, "w"
						got := fitted(t, c)
						slack := 1e-6
						if loss == Hinge {
							slack = 1e-4
						}
						if !testrows.Nearly(got.Objective, want.Objective, slack) {
							t.Errorf("objective %v, of repeated rows %v (%d and %d iterations)", got.Objective,
								want.Objective, got.Iterations, want.Iterations)
						}
						if method == solver.SDCA && got.Drift > 1e-9 {
							t.Errorf("w has drifted by %v from what its dual variables stand for", got.Drift)
						}
						if got.Model.Features != 4 {
							t.Errorf("%d features: the weights are none", got.Model.Features)
						}
					})
				}
			}
		}
	}
}

// TestWeightsInMetrics: those of training, and of data that have the column, and that
// have not.
func TestWeightsInMetrics(t *testing.T) {
	weights, repeated := testrows.Weighed(t, 300, 4, 2, 1)
	c := defaults(weights)
	c.Input.Label, c.Input.Weight, c.Positive, c.Standardize = "y", "w", "1", true
	var metrics map[string]float64
	var got *Trained
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "logistic", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
			if got, err = Train(ctx, s, c, p); err != nil {
				return "", err
			}
			metrics, err = got.Metrics(ctx, s, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{weights, repeated} {
		again, err := got.Model.Evaluate(context.Background(), rdd.Input{}, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range metrics {
			if !testrows.Nearly(again[name], v, 1e-12) {
				t.Errorf("%s: %s is %v, on the training data %v", path, name, again[name], v)
			}
		}
	}
	var with, without strings.Builder
	if _, err := got.Model.Predict(context.Background(), rdd.Input{}, []string{weights}, &with); err != nil {
		t.Error(err)
	}
	if _, err := got.Model.Predict(context.Background(), rdd.Input{}, []string{repeated}, &without); err != nil {
		t.Error(err)
	}
	if a, b := strings.Count(with.String(), "\n"), strings.Count(without.String(), "\n"); a != 301 || b < 301 {
		t.Errorf("%d and %d lines of predictions", a, b)
	}
}

// TestCutWeights: where executors are uneven, and weights too, training ends where all
// rows would have it, as with rows that weigh the same.
func TestCutWeights(t *testing.T) {
	weights, repeated := testrows.Weighed(t, 6000, 4, 2, 1)
	c := defaults(repeated)
	c.Input.Label, c.Positive, c.Solver = "y", "1", solver.Newton
	want := fitted(t, c).Objective
	c.Data, c.Input.Weight, c.Solver, c.MaxIterations, c.Tol = []string{weights}, "w", solver.Nesterov, 300, 1e-7
	cfg, err := volley.ParseConfig("--sync", "absp", "--executors", "4", "--pace", "static:3,1,1,1", "--clock",
		"virtual", "--sync-ratio", "0.5", "--data-dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got *Trained
	if _, err := volley.Run(context.Background(), cfg, "logistic", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
			got, err = Train(ctx, s, c, p)
			return "", err
		}); err != nil {
		t.Fatal(err)
	}
	if got.MeanShare > 0.99 {
		t.Errorf("steps saw %v of the rows: none was cut", got.MeanShare)
	}
	if !testrows.Nearly(got.Objective, want, 1e-3) {
		t.Errorf("objective %v after %d iterations, that of all rows is %v", got.Objective, got.Iterations, want)
	}
}

// TestWeightsThatCannotBe are refused, and where.
func TestWeightsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"y,x,w\n1,2,1\n0,3,-1\n":  `line 3: the weight in field "w" is "-1", not a number of zero or more`,
		"y,x,w\n1,2,1\n0,3,\n":    `line 3: the weight in field "w" is "", not a number of zero or more`,
		"y,x,w\n1,2,1\n0,3,inf\n": `line 3: the weight in field "w" is "inf", not a number of zero or more`,
		"y,x,w\n1,2,0\n0,3,0\n":   "the weights of its rows sum to 0",
		"y,x,v\n1,2,0\n0,3,0\n":   `no column "w" for --weight-column; columns are y x v`,
		"w,x,v\n1,2,0\n0,3,0\n":   `column "w" is to be both label and weight`,
		"1 1:2\n0 1:3\n":          `rows of LIBSVM have no column "w"`,
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := defaults(path)
		c.Input.Weight = "w"
		_, err := volley.Run(context.Background(), volley.Config{DataDir: t.TempDir()}, "logistic", c, Build,
			func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
				_, err := Train(ctx, s, c, p)
				return "", err
			})
		if err == nil || !strings.Contains(err.Error(), want) ||
			fault.KindOf(err) != fault.BadInput && fault.KindOf(err) != fault.Usage {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestNumberedWeights: where columns have no names, a model finds its weights where
// there are as many as in training, and does not guess which one is missing.
func TestNumberedWeights(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 8))
	texts := map[string]*strings.Builder{"trained": {}, "unweighted": {}, "bare": {}, "nothing": {}}
	for range 200 {
		x, y := rng.NormFloat64(), rng.NormFloat64()
		label, weight := 0, 1+rng.IntN(3)
		if x+y/2+rng.NormFloat64()/2 > 0 {
			label = 1
		}
		fmt.Fprintf(texts["trained"], "%d,%.4f,%d,%.4f\n", label, x, weight, y)
		fmt.Fprintf(texts["unweighted"], "%d,%.4f,%.4f\n", label, x, y)
		fmt.Fprintf(texts["bare"], "%.4f,%.4f\n", x, y)
		fmt.Fprintf(texts["nothing"], "%d,%.4f,0,%.4f\n", label, x, y)
	}
	path := func(name string) []string { return []string{filepath.Join(dir, name+".csv")} }
	for name, b := range texts {
		if err := os.WriteFile(path(name)[0], []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := defaults(path("trained")[0])
	c.Input.Label, c.Input.Weight = "0", "2"
	m := fitted(t, c).Model
	predict := func(name string, in rdd.Input) string {
		var out strings.Builder
		if _, err := m.Predict(context.Background(), in, path(name), &out); err != nil {
			return err.Error()
		}
		return out.String()
	}
	want := predict("trained", rdd.Input{})
	for name, got := range map[string]string{"bare": predict("bare", rdd.Input{}),
		"unweighted, labelled": predict("unweighted", rdd.Input{Label: "0"})} {
		if got != want || strings.Count(got, "\n") != 201 {
			t.Errorf("%s: %.200s, want %.200s", name, got, want)
		}
	}
	if got := predict("unweighted", rdd.Input{}); !strings.Contains(got,
		"3 columns without names, the training data had 4") {
		t.Errorf("without weights: %.200s", got)
	}
	if _, err := m.Evaluate(context.Background(), rdd.Input{}, path("nothing")); err == nil ||
		!strings.Contains(err.Error(), "sum to zero") {
		t.Errorf("rows without weight are measured: %v", err)
	}
}

// TestHardlyAnyWeight: splits whose rows weigh nothing, and steps that happen to visit
// such rows only.
func TestHardlyAnyWeight(t *testing.T) {
	var b strings.Builder
	b.WriteString("y,x,z,w\n")
	rng := rand.New(rand.NewPCG(6, 1))
	for i := range 4000 {
		weight := 0
		if i >= 2500 {
			weight = 1
		}
		x := 50 * rng.NormFloat64()
		fmt.Fprintf(&b, "%d,%.3f,%.3f,%d\n", map[bool]int{true: 1}[x+40*rng.NormFloat64() > 0], x, rng.NormFloat64(),
			weight)
	}
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := defaults(path)
	c.Input.Label, c.Input.Weight, c.Solver = "y", "w", solver.Newton
	want := fitted(t, c).Objective
	for _, method := range []solver.Name{solver.Descent, solver.Nesterov, solver.SDCA} {
		c.Solver, c.Standardize, c.Reg = method, false, 0.01
		if got := fitted(t, c).Objective; got > want+0.01 {
			t.Errorf("%s ends at %v, the least is %v", method, got, want)
		}
	}
	for _, sync := range []string{"auto", "absp"} {
		c.Solver, c.Tol = solver.Nesterov, 1e-6
		cfg, err := volley.ParseConfig("--sync", sync, "--executors", "4", "--pace", "static:3,1,1,1", "--clock",
			"virtual", "--data-dir", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := volley.Run(context.Background(), cfg, "logistic", c, Build,
			func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
				got, err := Train(ctx, s, c, p)
				if err == nil && !testrows.Nearly(got.Objective, want, 1e-3) {
					t.Errorf("%s ends at %v after %d, the least is %v", sync, got.Objective, got.Iterations, want)
				}
				return "", err
			}); err != nil {
			t.Error(sync, err)
		}
	}
}

// TestWeightsOfClasses do what repeating rows does, too.
func TestWeightsOfClasses(t *testing.T) {
	weights, repeated := testrows.Weighed(t, 400, 3, 3, 1)
	classes := func(path string) *Classified {
		c := defaults("")
		c.Solver, c.Reg = solver.LBFGS, 0.01
		c.Input, c.Data = rdd.Input{Label: "y"}, []string{path}
		if path == weights {
			c.Input.Weight = "w"
		}
		return classified(t, c, 2)
	}
	if a, b := classes(weights), classes(repeated); !testrows.Nearly(a.Objective, b.Objective, 1e-9) ||
		!testrows.Nearly(a.Accuracy, b.Accuracy, 1e-12) {
		t.Errorf("softmax comes to %v and is right of %v, of repeated rows %v and %v", a.Objective, a.Accuracy,
			b.Objective, b.Accuracy)
	}
}
