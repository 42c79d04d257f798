package linear

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// sample writes rows of two overlapping classes, dense or sparse.
func sample(t *testing.T, rows, features int, sparse bool) (path string, x [][]float64, y []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 9))
	var b strings.Builder
	for i := range rows {
		label := float64(rng.IntN(2))
		row := make([]float64, features)
		fmt.Fprintf(&b, "%v", 2*label-1)
		for j := range row {
			if sparse && rng.IntN(4) > 0 {
				continue
			}
			row[j] = math.Round(1000*(rng.NormFloat64()+0.3*label*float64(j%3)+0.2)) / 1000
			fmt.Fprintf(&b, " %d:%v", j+1, row[j])
		}
		b.WriteByte('\n')
		x, y = append(x, row), append(y, label)
		_ = i
	}
	path = filepath.Join(t.TempDir(), "train.libsvm")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, x, y
}

func defaults(path string) Config {
	return Config{Data: []string{path}, Solver: solver.Nesterov, Reg: 0.01, Intercept: true, MaxIterations: 2000,
		Tol: 1e-13, Stop: train.ByObjective}
}

func fitted(t *testing.T, c Config) *Trained {
	t.Helper()
	var out *Trained
	_, err := volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "logistic", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objective is the serial reference: mean log-loss plus (reg/2)·Σ scale²·w².
func objective(w []float64, b, reg float64, x [][]float64, y, scale []float64) (f float64, grad []float64) {
	grad = make([]float64, len(w)+1)
	n := float64(len(x))
	for i, row := range x {
		z := b
		for j, v := range row {
			z += w[j] * v
		}
		f += (math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) - y[i]*z) / n
		r := 1/(1+math.Exp(-z)) - y[i]
		for j, v := range row {
			grad[j] += r * v / n
		}
		grad[len(w)] += r / n
	}
	for j, v := range w {
		f += reg / 2 * scale[j] * scale[j] * v * v
		grad[j] += reg * scale[j] * scale[j] * v
	}
	return f, grad
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// TestTheOptimumIsStationary holds the engine's model against the serial
// reference: its objective is the one reported, and its gradient vanishes.
func TestTheOptimumIsStationary(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, standardize := range []bool{false, true} {
			t.Run(fmt.Sprintf("sparse=%v standardize=%v", sparse, standardize), func(t *testing.T) {
				path, x, y := sample(t, 700, 12, sparse)
				c := defaults(path)
				c.Standardize = standardize
				got := fitted(t, c)
				scale := ones(12)
				if standardize {
					scale = deviations(x)
				}
				f, grad := objective(got.Model.Weights, got.Model.Intercept, c.Reg, x, y, scale)
				if math.Abs(f-got.Objective) > 1e-12 {
					t.Errorf("objective %v, reference %v", got.Objective, f)
				}
				for j, g := range grad {
					if math.Abs(g) > 1e-6 {
						t.Errorf("gradient %d is %v (stopped by %s after %d)", j, g, got.StoppedBy, got.Iterations)
					}
				}
			})
		}
	}
}

// deviations are the population standard deviations of the columns.
func deviations(x [][]float64) []float64 {
	d := len(x[0])
	mean, out := make([]float64, d), make([]float64, d)
	for _, row := range x {
		for j, v := range row {
			mean[j] += v / float64(len(x))
		}
	}
	for _, row := range x {
		for j, v := range row {
			out[j] += (v - mean[j]) * (v - mean[j]) / float64(len(x))
		}
	}
	for j := range out {
		out[j] = math.Sqrt(out[j])
	}
	return out
}

func TestSinglePrecisionStorageIsClose(t *testing.T) {
	path, _, _ := sample(t, 700, 12, false)
	c := defaults(path)
	double := fitted(t, c)
	c.Float32 = true
	single := fitted(t, c)
	if math.Abs(double.Objective-single.Objective) > 1e-6 {
		t.Errorf("%v and %v", double.Objective, single.Objective)
	}
}

func TestTheGradientIsTheObjectivesSlope(t *testing.T) {
	p := newProblem(Config{Reg: 0.3, Intercept: true}, solver.Of(solver.Nesterov),
		fold.Moments{Weight: 3, Mean: []float64{1, -1. / 3}, Variance: []float64{2, 14. / 9}}, 1)
	rows := []rdd.Point{{Label: 1, Values: []float64{1, 2}}, {Label: 0, Values: []float64{2, -1}},
		{Label: 1, Values: []float64{0, -2}}}
	at := func(v []float64) (float64, fold.Gradient) {
		q := p.param(v)
		b := &rdd.Batch{Features: 2, Rows: []int32{0, 1, 2}, Labels: []float64{1, 0, 1}}
		for _, r := range rows {
			b.X64 = append(b.X64, r.Values...)
		}
		g := (&rowLoss{}).addGradient(fold.Gradient{Sum: make([]float64, 2)}, q, b)
		return p.objective(v, g.Loss, 3), g
	}
	v, grad := []float64{0.4, -0.7, 0.2}, make([]float64, 3)
	_, g := at(v)
	p.gradient(grad, v, g, 3)
	for j := range v {
		const h = 1e-6
		up, down := append([]float64(nil), v...), append([]float64(nil), v...)
		up[j], down[j] = v[j]+h, v[j]-h
		fu, _ := at(up)
		fd, _ := at(down)
		if slope := (fu - fd) / (2 * h); math.Abs(slope-grad[j]) > 1e-8 {
			t.Errorf("slope %d is %v, gradient %v", j, slope, grad[j])
		}
	}
}
