package linear

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// classes writes rows of four classes, with labels that are words, or numbers in
// LIBSVM.
func classes(t *testing.T, rows, d int, sparse bool) (path string, x [][]float64, y []int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(6, 6))
	var b strings.Builder
	for i := range rows {
		k := rng.IntN(4)
		row := make([]float64, d)
		if sparse {
			fmt.Fprint(&b, 10*k)
		} else {
			b.WriteString([]string{"ash", "birch", "cedar", "oak"}[k])
		}
		for j := range row {
			if row[j] = math.Round(100*(rng.NormFloat64()+0.7*float64((j+i)%2*k))) / 100; sparse && (i+j)%3 > 0 {
				row[j] = 0
				continue
			}
			if sparse {
				fmt.Fprintf(&b, " %d:%v", j+1, row[j])
			} else {
				fmt.Fprintf(&b, ",%v", row[j])
			}
		}
		b.WriteByte('\n')
		x, y = append(x, row), append(y, k)
	}
	path = filepath.Join(t.TempDir(), map[bool]string{true: "x.libsvm", false: "x.csv"}[sparse])
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, x, y
}

func classified(t *testing.T, c Config, executors int) (out *Classified) {
	t.Helper()
	_, err := volley.Run(context.Background(), volley.Config{Executors: executors, DataDir: t.TempDir()}, "softmax", c,
		BuildSoftmax,
		func(ctx context.Context, s *rdd.Session, c Config, p SoftmaxPlan) (string, error) {
			var err error
			out, err = TrainSoftmax(ctx, s, c, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// softmaxObjective is the serial reference: the objective, and the slopes of its
// smooth part, D × K and then the intercepts'.
func softmaxObjective(c Config, w, b []float64, x [][]float64, y []int) (f float64, grad []float64) {
	k, d, n := len(b), len(x[0]), float64(len(x))
	grad = make([]float64, (d+1)*k)
	for i, row := range x {
		z, sum := slices.Clone(b), 0.0
		for j, v := range row {
			for c := range k {
				z[c] += v * w[j*k+c]
			}
		}
		for c := range z {
			sum += math.Exp(z[c])
		}
		f += (math.Log(sum) - z[y[i]]) / n
		for c := range z {
			p := math.Exp(z[c]) / sum
			if c == y[i] {
				p--
			}
			for j, v := range row {
				grad[j*k+c] += p * v / n
			}
			grad[d*k+c] += p / n
		}
	}
	for j, v := range w {
		f += c.Reg * (c.Alpha*math.Abs(v) + (1-c.Alpha)/2*v*v)
		grad[j] += c.Reg * (1 - c.Alpha) * v
	}
	return f, grad
}

// TestSoftmaxIsAtItsOptimum, by the reference's slopes.
func TestSoftmaxIsAtItsOptimum(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, x, y := classes(t, 500, 5, sparse)
		for _, alpha := range []float64{0, 0.7} {
			for _, method := range []solver.Name{solver.Auto, solver.Nesterov, solver.OWLQN} {
				c := defaults(path)
				c.Loss, c.Solver, c.Alpha, c.Reg, c.MaxIterations = Softmax, method, alpha, 0.02, 10_000
				got := classified(t, c, 2)
				f, grad := softmaxObjective(c, got.Model.weights, got.Model.Intercepts, x, y)
				if math.Abs(f-got.Objective) > 1e-10 {
					t.Errorf("objective %v, reference %v", got.Objective, f)
				}
				for j, g := range grad {
					off, lasso := math.Abs(g), c.Reg*alpha
					if j < len(got.Model.weights) {
						off = math.Max(0, off-lasso)
						if w := got.Model.weights[j]; w != 0 {
							off = math.Abs(g + math.Copysign(lasso, w))
						}
					}
					if off > 1e-5 {
						t.Errorf("sparse=%v %s α=%v: slope %d is %v after %d (%s)", sparse, got.Solver, alpha, j, g,
							got.Iterations, got.StoppedBy)
					}
				}
			}
		}
	}
}

// TestASoftmaxModelIsUsed, and is the same on any number of executors.
func TestASoftmaxModelIsUsed(t *testing.T) {
	path, x, y := classes(t, 500, 5, false)
	c := defaults(path)
	c.Loss, c.Solver = Softmax, solver.LBFGS
	got := classified(t, c, 1)
	if other := classified(t, c, 5); !slices.Equal(other.Model.weights, got.Model.weights) {
		t.Error("five executors give other weights")
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir, []model.Kind{SoftmaxKind})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := m.Evaluate(context.Background(), rdd.Input{}, []string{path})
	c.Reg = 0
	loss, _ := softmaxObjective(c, got.Model.weights, got.Model.Intercepts, x, y)
	if err != nil || math.Abs(metrics["accuracy"]-got.Accuracy) > 1e-12 || math.Abs(metrics["log_loss"]-loss) > 1e-12 ||
		got.Accuracy < 0.45 {
		t.Errorf("%v, %v; training said %v, the reference's loss is %v", metrics, err, got.Accuracy, loss)
	}
	var out strings.Builder
	if rows, err := m.Predict(context.Background(), rdd.Input{}, []string{path}, &out); err != nil || rows != 500 ||
		!strings.Contains(out.String(), "cedar,0.") {
		t.Errorf("%d rows, %v:\n%.200s", rows, err, out.String())
	}
}

// TestClassesMayCountDifferently: as many times as their rows would be there, and a
// model says how well it does on rows that count alike.
func TestClassesMayCountDifferently(t *testing.T) {
	path, _, _ := classes(t, 400, 5, false)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]int{"ash": 1, "birch": 3, "cedar": 2, "oak": 1}
	var b strings.Builder
	for _, line := range strings.SplitAfter(string(raw), "\n") {
		label, _, _ := strings.Cut(line, ",")
		b.WriteString(strings.Repeat(line, many[label]))
	}
	repeated := filepath.Join(t.TempDir(), "repeated.csv")
	if err := os.WriteFile(repeated, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, method := range []solver.Name{solver.LBFGS, solver.OWLQN, solver.Nesterov} {
		c := defaults(repeated)
		c.Loss, c.Solver, c.Tol, c.Reg = Softmax, method, 1e-12, 0.01
		if method == solver.OWLQN {
			c.Alpha = 0.5
		}
		want := classified(t, c, 2)
		c.Data, c.Classes = []string{path}, []float64{1, 3, 2, 1}
		got := classified(t, c, 2)
		if !testrows.Nearly(got.Objective, want.Objective, 1e-7) {
			t.Errorf("%s: objective %v, of repeated rows %v", method, got.Objective, want.Objective)
		}
		alike, err := got.Model.Evaluate(context.Background(), rdd.Input{}, []string{path})
		if err != nil || !testrows.Nearly(alike["accuracy"], got.Accuracy, 1e-12) ||
			!testrows.Nearly(alike["log_loss"], got.LogLoss, 1e-9) {
			t.Errorf("%s: accuracy %v, log-loss %v, but %v, %v", method, got.Accuracy, got.LogLoss, alike, err)
		}
	}
	c := defaults(path)
	c.Loss, c.Solver, c.Classes = Softmax, solver.LBFGS, []float64{1, 2}
	if _, err := tryClassified(t, c); err == nil || !strings.Contains(err.Error(), "4 classes") {
		t.Errorf("two weights for four classes: %v", err)
	}
	c.Classes, c.Balanced = nil, true
	balanced := classified(t, c, 2)
	c.Balanced = false
	var each [4]float64
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		label, _, _ := strings.Cut(line, ",")
		each[slices.Index([]string{"ash", "birch", "cedar", "oak"}, label)]++
	}
	for _, n := range each {
		c.Classes = append(c.Classes, 400/(4*n))
	}
	if given := classified(t, c, 2); !testrows.Nearly(given.Objective, balanced.Objective, 1e-9) {
		t.Errorf("balanced ends at %v, the same weights given at %v", balanced.Objective, given.Objective)
	}
}

func tryClassified(t *testing.T, c Config) (out *Classified, err error) {
	t.Helper()
	_, err = volley.Run(context.Background(), volley.Config{Executors: 2, DataDir: t.TempDir()}, "softmax", c,
		BuildSoftmax,
		func(ctx context.Context, s *rdd.Session, c Config, p SoftmaxPlan) (_ string, err error) {
			out, err = TrainSoftmax(ctx, s, c, p)
			return "", err
		})
	return out, err
}

// TestAMultinomialModelIsABeginning: from it the optimum is found at once, and from one
// that is not there it is found as well.
func TestAMultinomialModelIsABeginning(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, _, _ := classes(t, 400, 5, sparse)
		for _, method := range []solver.Name{solver.LBFGS, solver.OWLQN, solver.Nesterov} {
			c := defaults(path)
			c.Loss, c.Solver, c.Tol, c.Reg = Softmax, method, 1e-9, 0.01
			first := classified(t, c, 2)
			dir := filepath.Join(t.TempDir(), "model")
			if err := first.Model.Save(dir, false); err != nil {
				t.Fatal(err)
			}
			saved, err := model.LoadAs[*SoftmaxModel](dir, "multinomial", []model.Kind{SoftmaxKind})
			if err != nil {
				t.Fatal(err)
			}
			c.InitClasses = BeginWithClasses(saved)
			if again := classified(t, c, 2); again.Iterations > 3 || again.Objective > first.Objective+1e-9 {
				t.Errorf("%s: %d iterations to %v, at first %d to %v", method, again.Iterations, again.Objective,
					first.Iterations, first.Objective)
			}
			c.Reg = 0.1
			began := classified(t, c, 2)
			c.InitClasses = nil
			if want := classified(t, c, 2); !testrows.Nearly(began.Objective, want.Objective, 1e-6) {
				t.Errorf("%s: from a model of another penalty %v, from zero %v", method, began.Objective,
					want.Objective)
			}
		}
	}
	path, _, _ := classes(t, 50, 5, false)
	c := defaults(path)
	c.Loss, c.Solver = Softmax, solver.LBFGS
	c.InitClasses = &ClassBeginning{SoftmaxModel: SoftmaxModel{RowModel: model.RowModel{Labels: []string{"a", "b"},
		Features: 5}, Intercepts: []float64{0, 0}}, Numbers: make([]float64, 10)}
	if _, err := tryClassified(t, c); err == nil || !strings.Contains(err.Error(), "classes") {
		t.Errorf("a model of other classes: %v", err)
	}
}

// TestOneAgainstTheRest: a support vector machine of several classes is, class by class, the one that tells it from the
// rest; it is used by its margins, and begins another training.
func TestOneAgainstTheRest(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, x, y := classes(t, 600, 5, sparse)
		c := Config{Job: "svm", Data: []string{path}, Loss: OneVsRest, Reg: 0.02, Intercept: true, MaxIterations: 3000,
			Tol: 1e-12}
		got := classified(t, c, 3)
		right := 0
		for i, row := range x {
			best, top := 0, math.Inf(-1)
			for k := range 4 {
				z := got.Model.Intercepts[k]
				for j, v := range row {
					z += got.Model.weights[j*4+k] * v
				}
				if z > top {
					best, top = k, z
				}
			}
			if best == y[i] {
				right++
			}
		}
		if math.Abs(got.Accuracy-float64(right)/600) > 1e-9 || !got.Converged {
			t.Errorf("accuracy %v, in truth %v; %s", got.Accuracy, float64(right)/600, got.StoppedBy)
		}
		for k, label := range got.Model.Labels {
			one := c
			one.Loss, one.Positive = SquaredHinge, label
			alone := fitted(t, one).Model
			if math.Abs(alone.Intercept-got.Model.Intercepts[k]) > 1e-4 {
				t.Errorf("%s: intercept %v, alone %v", label, got.Model.Intercepts[k], alone.Intercept)
			}
			for j, w := range alone.Weights {
				if math.Abs(w-got.Model.weights[j*4+k]) > 1e-4 {
					t.Errorf("%s: weight %d is %v, alone %v", label, j, got.Model.weights[j*4+k], w)
				}
			}
		}
		dir := filepath.Join(t.TempDir(), "model")
		if err := got.Model.Save(dir, false); err != nil {
			t.Fatal(err)
		}
		loaded, err := model.Load(dir, []model.Kind{SoftmaxKind})
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := loaded.Evaluate(context.Background(), rdd.Input{}, []string{path})
		if _, loss := metrics["log_loss"]; err != nil || loss || math.Abs(metrics["accuracy"]-got.Accuracy) > 1e-9 ||
			!(metrics["auc"] > 0.5) {
			t.Errorf("%v, %v", metrics, err)
		}
		var out strings.Builder
		m := loaded.(*SoftmaxModel)
		if _, err := m.Probabilities(context.Background(), rdd.Input{}, []string{path}, &out); err == nil {
			t.Error("margins are given out as probabilities")
		}
		c.InitClasses, c.MaxIterations = BeginWithClasses(m), 50
		if again := classified(t, c, 2); again.Iterations > 3 || again.Objective > got.Objective*(1+1e-9) {
			t.Errorf("begun at the end it takes %d iterations to %v, which was %v", again.Iterations, again.Objective,
				got.Objective)
		}
	}
}
