package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
)

// plainLoss is the serial reference of a row's loss and its derivative.
func plainLoss(l Loss, m, y float64) (loss, slope float64) {
	s := 2*y - 1
	switch short := 1 - s*m; l {
	case Hinge:
		if short <= 0 {
			return 0, 0
		}
		return short, -s
	case SquaredHinge:
		if short <= 0 {
			return 0, 0
		}
		return short * short, -2 * s * short
	case Squared:
		return (m - y) * (m - y) / 2, m - y
	}
	return math.Max(m, 0) + math.Log1p(math.Exp(-math.Abs(m))) - y*m, 1/(1+math.Exp(-m)) - y
}

// plainObjective is the serial reference of the objective and of the gradient of
// its smooth part, by weight and, last, the intercept.
func plainObjective(c Config, w []float64, b float64, x [][]float64, y []float64) (f float64, grad []float64) {
	grad = make([]float64, len(w)+1)
	var total float64
	for i := range x {
		total += classWeight(c, y[i])
	}
	for i, row := range x {
		m, k := b, classWeight(c, y[i])/total
		for j, v := range row {
			m += w[j] * v
		}
		loss, slope := plainLoss(c.Loss, m, y[i])
		f += k * loss
		for j, v := range row {
			grad[j] += k * slope * v
		}
		grad[len(w)] += k * slope
	}
	for j, v := range w {
		f += c.Reg * (c.Alpha*math.Abs(v) + (1-c.Alpha)/2*v*v)
		grad[j] += c.Reg * (1 - c.Alpha) * v
	}
	return f, grad
}

func classWeight(c Config, y float64) float64 {
	if c.ClassWeights == [2]float64{} {
		return 1
	}
	return c.ClassWeights[int(y)]
}

// stationary checks the optimality conditions of a model: of a penalty with an
// L1 part, that slopes lie within it where weights are zero, and balance it where
// they are not.
func stationary(t *testing.T, c Config, got *Trained, x [][]float64, y []float64, slack float64) {
	t.Helper()
	f, grad := plainObjective(c, got.Model.Weights, got.Model.Intercept, x, y)
	if math.Abs(f-got.Objective) > 1e-10*max(1, f) {
		t.Errorf("objective %v, reference %v", got.Objective, f)
	}
	lasso := c.Reg * c.Alpha
	for j, g := range grad[:len(grad)-1] {
		off := math.Max(0, math.Abs(g)-lasso)
		if w := got.Model.Weights[j]; w != 0 {
			off = math.Abs(g + math.Copysign(lasso, w))
		}
		if off > slack {
			t.Errorf("%s: weight %d is %v, its slope %v (stopped by %s after %d)", got.Solver, j, got.Model.Weights[j],
				g, got.StoppedBy, got.Iterations)
		}
	}
	if g := grad[len(grad)-1]; c.Intercept && math.Abs(g) > slack {
		t.Errorf("%s: the slope of the intercept is %v", got.Solver, g)
	}
}

// TestEverySolverFindsTheOptimum of every loss and penalty that it is for.
func TestEverySolverFindsTheOptimum(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, x, y := sample(t, 400, 9, sparse)
		for _, loss := range []Loss{Logistic, SquaredHinge, Squared} {
			for _, alpha := range []float64{0, 0.6, 1} {
				for _, method := range append([]solver.Name{solver.Auto}, solver.Names()...) {
					c := defaults(path)
					c.Loss, c.Solver, c.Alpha, c.Reg, c.MaxIterations = loss, method, alpha, 0.05, 20_000
					if loss == Squared {
						c.Positive = ""
					}
					if c.Check() != nil || method == solver.Sqrt || method == solver.Adam {
						continue // Sqrt and Adam end near the optimum only
					}
					slack := 1e-6
					if !(solver.Of(method).Wants == solver.Curvatures) && alpha > 0 {
						slack = 1e-5
					}
					ys := y
					if loss == Squared {
						ys = signs(y)
					}
					t.Run(fmt.Sprint(sparse, loss, alpha, method),
						func(t *testing.T) { stationary(t, c, fitted(t, c), x, ys, slack) })
				}
			}
		}
	}
}

// signs are the labels as the file has them, −1 and 1.
func signs(y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = 2*v - 1
	}
	return out
}

// TestAnSVMIsAtItsOptimum: no move along a coordinate, nor along minus the mean of
// the slopes about, makes the hinge's objective less.
func TestAnSVMIsAtItsOptimum(t *testing.T) {
	path, x, y := sample(t, 400, 9, false)
	c := defaults(path)
	c.Loss, c.Solver, c.Tol = Hinge, solver.Newton, 1e-9
	got := fitted(t, c)
	at, _ := plainObjective(c, got.Model.Weights, got.Model.Intercept, x, y)
	if math.Abs(at-got.Objective) > 1e-12 {
		t.Errorf("objective %v, reference %v", got.Objective, at)
	}
	for j := range 10 {
		for _, move := range []float64{-0.1, -1e-2, -1e-3, 1e-3, 1e-2, 0.1} {
			w, b := append([]float64(nil), got.Model.Weights...), got.Model.Intercept
			if j < 9 {
				w[j] += move
			} else {
				b += move
			}
			if f, _ := plainObjective(c, w, b, x, y); f < at-1e-8 {
				t.Errorf("moving %d by %v leads from %v to %v", j, move, at, f)
			}
		}
	}
	c.Solver, c.MaxIterations = solver.LBFGS, 2000
	if quasi := fitted(t, c); math.Abs(quasi.Objective-at) > 1e-5*at {
		t.Errorf("lbfgs ends at %v after %d (%s), newton at %v", quasi.Objective, quasi.Iterations, quasi.StoppedBy, at)
	}
	c.Solver, c.MaxIterations, c.Tol = solver.Nesterov, 3000, 0
	if slow := fitted(t, c); slow.Objective < at-1e-8 || slow.Objective > at*1.01 {
		t.Errorf("nesterov ends at %v, newton at %v", slow.Objective, at)
	}
}

// TestAnSVMWithoutRidge moves away from where it begins: no row is near its margin
// there.
func TestAnSVMWithoutRidge(t *testing.T) {
	path, _, _ := sample(t, 400, 9, false)
	for _, c := range []Config{{Reg: 0}, {Reg: 0.01, Alpha: 1}, {Reg: 0.001, Alpha: 1}} {
		var found []float64
		for _, method := range []solver.Name{solver.Newton, solver.OWLQN} {
			own := defaults(path)
			own.Loss, own.Solver, own.Reg, own.Alpha, own.Tol, own.MaxIterations = Hinge, method, c.Reg, c.Alpha, 1e-7,
				3000
			found = append(found, fitted(t, own).Objective)
		}
		if found[0] > 0.95 || math.Abs(found[0]-found[1]) > 1e-4*found[0] {
			t.Errorf("λ %v α %v: newton ends at %v, owlqn at %v", c.Reg, c.Alpha, found[0], found[1])
		}
	}
}

// TestFeaturesFarFromZero are standardized as those that are near it.
func TestFeaturesFarFromZero(t *testing.T) {
	var weights []float64
	for _, off := range []float64{0, 1e9} {
		var b strings.Builder
		rng := rand.New(rand.NewPCG(4, 2))
		for range 400 {
			x := math.Round(64*rng.NormFloat64()) / 64
			fmt.Fprintf(&b, "%v,%v\n", 3*x+rng.NormFloat64(), x+off)
		}
		path := filepath.Join(t.TempDir(), "far.csv")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		c := defaults(path)
		c.Loss, c.Solver, c.Reg, c.Standardize = Squared, solver.Normal, 0.1, true
		weights = append(weights, fitted(t, c).Model.Weights[0])
	}
	if math.Abs(weights[0]-weights[1]) > 1e-6 {
		t.Errorf("weights %v", weights)
	}
}

// TestAStoppedSearchKeepsItsBestPoint, not the one it was about to refuse.
func TestAStoppedSearchKeepsItsBestPoint(t *testing.T) {
	path, _, _ := sample(t, 400, 9, false)
	c := defaults(path)
	c.Solver, c.StepSize, c.MaxTime = solver.LBFGS, 1e5, 1 // a nanosecond
	if got := fitted(t, c); got.Objective > math.Log(2) || got.StoppedBy != "max-time" {
		t.Errorf("objective %v (%s)", got.Objective, got.StoppedBy)
	}
}

func TestClassWeights(t *testing.T) {
	path, x, y := sample(t, 400, 9, false)
	for _, loss := range []Loss{Logistic, SquaredHinge} {
		for _, method := range []solver.Name{solver.Newton, solver.LBFGS, solver.Nesterov} {
			c := defaults(path)
			c.Loss, c.Solver, c.ClassWeights = loss, method, [2]float64{0.5, 3}
			stationary(t, c, fitted(t, c), x, y, 1e-6)
		}
	}
	c := defaults(path)
	c.Solver, c.Balanced = solver.Newton, true
	got := fitted(t, c)
	ones := 0.0
	for _, v := range y {
		ones += v
	}
	c.ClassWeights = [2]float64{400 / (2 * (400 - ones)), 400 / (2 * ones)}
	stationary(t, c, got, x, y, 1e-6)
}

// TestATrainedModelIsABeginning: from it, the optimum is found at once.
func TestATrainedModelIsABeginning(t *testing.T) {
	path, _, _ := sample(t, 400, 9, false)
	for _, of := range []struct {
		loss   Loss
		method solver.Name
	}{{Logistic, solver.Newton}, {Logistic, solver.LBFGS}, {Logistic, solver.Nesterov}, {SquaredHinge,
		solver.Newton}, {SquaredHinge, solver.LBFGS}, {Hinge, solver.Newton}, {Hinge, solver.LBFGS}, {Hinge,
		solver.Nesterov}, {Squared, solver.Normal}, {Squared, solver.LBFGS}} {
		c := defaults(path)
		c.Loss, c.Solver, c.Tol = of.loss, of.method, 1e-9
		first := fitted(t, c)
		dir := filepath.Join(t.TempDir(), "model")
		if err := first.Model.Save(dir, false); err != nil {
			t.Fatal(err)
		}
		saved, err := model.LoadAs[*Model](dir, "linear", []model.Kind{Kind})
		if err != nil {
			t.Fatal(err)
		}
		c.Init = BeginWith(saved)
		again := fitted(t, c)
		if again.Iterations > 3 || again.Objective > first.Objective+1e-9 {
			t.Errorf("%s by %s: %d iterations to %v, at first %d to %v", of.loss, of.method, again.Iterations,
				again.Objective, first.Iterations, first.Objective)
		}
	}
}

// TestAModelFarFromTheOptimumIsABeginningToo: what a hinge is smoothed over about it
// does not keep it where it is.
func TestAModelFarFromTheOptimumIsABeginningToo(t *testing.T) {
	path, _, _ := sample(t, 400, 9, false)
	for _, method := range []solver.Name{solver.Newton, solver.LBFGS} {
		c := defaults(path)
		c.Loss, c.Solver, c.Tol, c.Reg = Hinge, method, 1e-8, 1
		far := fitted(t, c)
		c.Reg = 0.001
		want := fitted(t, c)
		c.Init = &Beginning{Model: *far.Model, Numbers: far.Model.Weights}
		if got := fitted(t, c); !testrows.Nearly(got.Objective, want.Objective, 1e-5) {
			t.Errorf("%s: %v after %d iterations, from zero %v", method, got.Objective, got.Iterations, want.Objective)
		}
	}
}

// TestStrangeData has columns that are constant, copies or empty, and rows without
// features.
func TestStrangeData(t *testing.T) {
	var b strings.Builder
	var x [][]float64
	var y []float64
	for i := range 60 {
		v := float64(i%7) - 2
		row := []float64{v, 4, v, 0, float64(i % 3)}
		if i%10 == 9 {
			row = make([]float64, 5)
		}
		label := float64((i*i + i/2) % 2)
		fmt.Fprintf(&b, "%v", label)
		for j, v := range row {
			if v != 0 || j == 4 && i == 0 {
				fmt.Fprintf(&b, " %d:%v", j+1, v)
			}
		}
		b.WriteByte('\n')
		x, y = append(x, row), append(y, label)
	}
	path := filepath.Join(t.TempDir(), "strange.libsvm")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, loss := range []Loss{Logistic, Squared, SquaredHinge} {
		for _, reg := range []float64{0, 0.01} {
			for _, alpha := range []float64{0, 1} {
				c := defaults(path)
				c.Loss, c.Solver, c.Reg, c.Alpha = loss, solver.Auto, reg, alpha
				stationary(t, c, fitted(t, c), x, y, 1e-5)
			}
		}
	}
}

// TestALargePenaltyLeavesNothing: from the λ on at which all weights are zero.
func TestALargePenaltyLeavesNothing(t *testing.T) {
	path, x, y := sample(t, 400, 9, false)
	for _, loss := range []Loss{Logistic, Squared, SquaredHinge} {
		for _, method := range []solver.Name{solver.Auto, solver.OWLQN, solver.Nesterov} {
			c := defaults(path)
			c.Loss, c.Solver, c.Alpha, c.Reg = loss, method, 1, 1e9
			ys := y
			if loss == Squared {
				ys = signs(y)
			}
			none := fitted(t, c)
			_, grad := plainObjective(c, make([]float64, 9), none.Model.Intercept, x, ys)
			top := 0.0
			for _, g := range grad[:9] {
				top = max(top, math.Abs(g))
			}
			c.Reg = top * 1.0001
			for j, w := range fitted(t, c).Model.Weights {
				if w != 0 {
					t.Errorf("%s by %s at λ max: weight %d is %v", loss, method, j, w)
				}
			}
			c.Reg = top * 0.99
			if m := fitted(t, c); m.Model.Nonzeros() == 0 {
				t.Errorf("%s by %s just below λ max: all weights are zero", loss, method)
			}
		}
	}
}

func TestSolversThatCannotAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Solver: solver.Interior}, {Solver: solver.Interior, Loss: Hinge, Reg: 1, Alpha: 1},
		{Solver: solver.Normal}, {Solver: solver.CD, Loss: Hinge},
		{Solver: solver.LBFGS, Reg: 1, Alpha: 0.5}, {Solver: solver.Normal, Loss: Squared, Reg: 1, Alpha: 1},
	} {
		if err := c.Check(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if (&Config{Solver: solver.LBFGS, Reg: 0, Alpha: 1}).Check() != nil {
		t.Error("without a penalty there is no L1 part")
	}
}
