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
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

func sizedRows(rng *rand.Rand, x []float64) {
	size := math.Exp(2.5 * rng.NormFloat64())
	for j := range x {
		x[j] *= size
	}
}

// usual is what the command line trains with.
func usual(path string, loss Loss, rows float64) Config {
	c := defaults(path)
	c.Loss, c.Solver, c.Reg, c.MaxIterations, c.Tol = loss, solver.Auto, 1/rows, 500, 1e-7
	return c
}

// TestReturnsAreNoEnd: a run that was taken back to where it began stands still there
// only by the guard's own doing.
func TestReturnsAreNoEnd(t *testing.T) {
	c := usual(testrows.Hard(t, 2000, 4, true, testrows.FarOff(1e8)), Logistic, 2000)
	c.Solver = solver.Adam
	got, err := trainedBy(t, c, "bsp")
	if err != nil {
		t.Fatal(err)
	}
	if got.StoppedBy == "tolerance" && got.Gap > 1 {
		t.Errorf("stopped by tolerance after %d iterations, objective %v, gap %v", got.Iterations, got.Objective,
			got.Gap)
	}
	if got.Model.Ended != nil && got.Gap > 1 {
		t.Error("the model says that training was over")
	}
}

// heavyRows writes rows of very different sizes, whose labels have as much noise.
func heavyRows(t *testing.T, seed uint64) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	w := gaussians(rng, 1, 12)[0]
	var b strings.Builder
	for range 4000 {
		x := gaussians(rng, 1, 12)[0]
		size := math.Exp(2.5 * rng.NormFloat64())
		fmt.Fprint(&b, size*(inner(w, x)+rng.NormFloat64()))
		for _, v := range x {
			fmt.Fprintf(&b, ",%v", size*v)
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "heavy.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestALowEstimateOfTheStartIsNoLimit: where the first step has seen rows of less loss
// than most, steps cannot be expected to come below that at once.
func TestALowEstimateOfTheStartIsNoLimit(t *testing.T) {
	for seed := uint64(6); seed < 10; seed++ {
		c := usual(heavyRows(t, seed), Squared, 4000)
		c.Solver, c.Cut, c.Splits = solver.Descent, true, 24
		cfg, err := volley.ParseConfig("--sync", "absp", "--sync-ratio", "0.3", "--executors", "2",
			"--pace", "static:1,0.05", "--clock", "virtual", "--data-dir", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		_, err = volley.Run(context.Background(), cfg, "linear", c, Build,
			func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
				_, err := Train(ctx, s, c, p)
				return "", err
			})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestWhatIsChosenConverges: with defaults alone, a run that ends by its own rule has
// converged.
func TestWhatIsChosenConverges(t *testing.T) {
	plain := func(*rand.Rand, []float64) {}
	units := func(_ *rand.Rand, x []float64) {
		for j := range x {
			x[j] *= []float64{1e-6, 1e6, 1, 1e-3, 1e3}[j%5]
		}
	}
	for name, change := range map[string]func(*rand.Rand, []float64){"plain": plain, "units": units,
		"sized": sizedRows} {
		for _, loss := range []Loss{Logistic, Hinge, SquaredHinge} {
			path := testrows.Hard(t, 5000, 5, true, change)
			got, err := trainedBy(t, usual(path, loss, 5000), "bsp")
			if err != nil {
				t.Fatal(err)
			}
			// Newton's method for hinges, smoothed over ever less, is slow where rows or
			// columns are of very different size; it has to say so.
			if hard := loss == Hinge && name != "plain"; !got.Converged && !hard {
				t.Errorf("%s, %s: %s after %d iterations, stopped by %s: objective %v, gap %v (%s)",
					name, loss, got.Solver, got.Iterations, got.StoppedBy, got.Objective, got.Gap, got.GapBy)
			}
		}
	}
}

// TestSeveralClassesConverge, by defaults alone.
func TestSeveralClassesConverge(t *testing.T) {
	path, _, _ := classes(t, 3000, 6, false)
	for _, alpha := range []float64{0, 1} {
		c := usual(path, Softmax, 3000)
		c.Alpha = alpha
		if got := classified(t, c, 2); !got.Converged {
			t.Errorf("α=%v: stopped by %s after %d iterations, gap %v (%s)",
				alpha, got.StoppedBy, got.Iterations, got.Gap, got.GapBy)
		}
	}
}

// TestAGapIsNoMoreThanTheObjective: no loss is below zero.
func TestAGapIsNoMoreThanTheObjective(t *testing.T) {
	for _, loss := range []Loss{Logistic, Hinge, Squared} {
		for _, method := range []solver.Name{solver.Descent, solver.Adam, solver.SDCA} {
			c := usual(testrows.Hard(t, 2000, 4, loss != Squared, sizedRows), loss, 2000)
			c.Solver, c.MaxIterations = method, 20
			got, err := trainedBy(t, c, "bsp")
			if err != nil {
				t.Fatal(err)
			}
			if got.Gap > got.Objective {
				t.Errorf("%s by %s: objective %v, gap %v (%s)", loss, method, got.Objective, got.Gap, got.GapBy)
			}
		}
	}
}

// TestAGapByCurvatureHolds where classes can be told apart, so that the least objective
// is 0.
func TestAGapByCurvatureHolds(t *testing.T) {
	path := testrows.Hard(t, 500, 3, false, func(*rand.Rand, []float64) {})
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		_, row, _ := strings.Cut(line, ",")
		y := 1
		if strings.HasPrefix(row, "-") {
			y = 0
		}
		fmt.Fprintf(&b, "%d,%s\n", y, row)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tol := range []float64{0.1, 0.01, 1e-3} {
		for _, method := range []solver.Name{solver.Newton, solver.LBFGS, solver.Nesterov} {
			c := usual(path, Logistic, 500)
			c.Reg, c.Solver, c.Tol = 0, method, tol
			got, err := trainedBy(t, c, "bsp")
			if err != nil {
				t.Fatal(err)
			}
			if got.Gap < 0.999*got.Objective {
				t.Errorf("%s, tolerance %v: objective %v, least 0, gap %v (%s, converged: %v)",
					method, tol, got.Objective, got.Gap, got.GapBy, got.Converged)
			}
		}
	}
}

// TestAscentDoesNotRunAway behind an outlier: no result is worse than the beginning.
func TestAscentDoesNotRunAway(t *testing.T) {
	n := 0
	c := usual(testrows.Hard(t, 20_000, 5, false, func(_ *rand.Rand, x []float64) {
		if n++; n == 9000 {
			for j := range x {
				x[j] *= 1e6
			}
		}
	}), Squared, 20_000)
	c.Solver, c.MaxIterations = solver.SDCA, 60
	got, err := trainedBy(t, c, "bsp")
	if err != nil {
		t.Fatal(err)
	}
	first, most := c, 0.0
	first.Solver, first.MaxIterations = solver.Descent, 1
	if start, err := trainedBy(t, first, "bsp"); err != nil {
		t.Fatal(err)
	} else if most = start.Objective; got.Objective > 1.01*most {
		t.Errorf("objective %v, the best constant's is about %v", got.Objective, most)
	}
}

// TestAGapByCurvatureIsNoGuess: where two columns differ by a billionth, second
// derivatives do not show what their difference is good for.
func TestAGapByCurvatureIsNoGuess(t *testing.T) {
	path := testrows.Hard(t, 2000, 3, false, func(_ *rand.Rand, x []float64) { x[1] = x[0] + 1e-9*x[2] })
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		f := strings.Split(line, ",")
		fmt.Fprintf(&b, "%s,%s,%s\n", f[3], f[1], f[2]) // the third is what a billionth tells
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, method := range []solver.Name{solver.Auto, solver.LBFGS, solver.Nesterov} {
		c := usual(path, Squared, 2000)
		c.Reg, c.Solver = 0, method
		got, err := trainedBy(t, c, "bsp")
		if err != nil {
			t.Fatal(err)
		}
		if got.GapBy != train.ByGradient && got.Objective > 1e-3 {
			t.Errorf("%s: at %v the gap is %v (%s), but 0 is reached", method, got.Objective, got.Gap, got.GapBy)
		}
	}
}
