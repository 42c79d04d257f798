package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
)

// TestARowsStepSolvesItsEquations: along a whole step products become what they are to be, but for the square of the
// step; what is said of products and of the longest step is what comes of moving.
func TestARowsStepSolvesItsEquations(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		a, loss := 1e-6+(1-2e-6)*rng.Float64(), math.Exp(4*rng.NormFloat64())
		beyond := math.Exp(3*rng.NormFloat64()) - loss // the slack is above nothing
		r := rowAt(a, loss, beyond)
		m, upper, lower := 3*rng.NormFloat64(), rng.Float64(), rng.Float64()
		s := r.along(m, upper, lower)
		size := 1 + math.Abs(a*s.slack) + math.Abs(s.a*r.slack) + math.Abs(s.a*loss) + math.Abs((1-a)*s.loss)
		if got := a*r.slack + a*s.slack + s.a*r.slack; math.Abs(got-upper) > 1e-9*size {
			t.Errorf("%+v, %+v: the upper product becomes %v, not %v", r, s, got, upper)
		}
		if got := (1-a)*loss + (1-a)*s.loss - s.a*loss; math.Abs(got-lower) > 1e-9*size {
			t.Errorf("%+v, %+v: the lower product becomes %v, not %v", r, s, got, lower)
		}
		if got := r.beyond + m + loss + s.loss - r.slack - s.slack; math.Abs(got) > 1e-9*size {
			t.Errorf("%+v, %+v: the slack is off by %v", r, s, got)
		}
		inside := func(t float64) bool {
			return a+t*s.a > 0 && a+t*s.a < 1 && loss+t*s.loss > 0 && r.slack+t*s.slack > 0
		}
		if most := r.longest(s); !inside(0.999*most) || most < 1e9 && inside(1.001*most) {
			t.Errorf("%+v, %+v: %v is not the longest step", r, s, most)
		}
		p, by := r.products(s), rng.Float64()
		got := p[0] + by*p[1] + by*by*p[2]
		want := (a+by*s.a)*(r.slack+by*s.slack) + (1-a-by*s.a)*(loss+by*s.loss)
		if math.Abs(got-want) > 1e-9*size*(1+math.Abs(s.a)) {
			t.Errorf("%+v, %+v: products come to %v, not %v", r, s, got, want)
		}
	}
}

// TestARowBeginsInTheMiddle: both products are what they are to be at first.
func TestARowBeginsInTheMiddle(t *testing.T) {
	for _, beyond := range []float64{-1e6, -3, -1e-9, 0, 1e-9, 2, 1e6} {
		for _, mu := range []float64{1e-3, 1, 3} {
			r := begun(beyond, mu)
			upper, lower := r.a*r.slack/mu, (1-r.a)*r.loss/mu
			if math.Abs(lower-1) > 1e-6 || math.Abs(upper-1) > 1e-3 || !(r.slack > 0 && r.loss > 0) {
				t.Errorf("beyond by %v, %v: products are %v and %v of it", beyond, mu, upper, lower)
			}
		}
	}
}

// fewInside is how many steps the interior-point method takes at the most.
const fewInside = 60

// TestAnSVMTakesFewSteps whatever its penalty, and ends where newton and lbfgs would, which take many.
func TestAnSVMTakesFewSteps(t *testing.T) {
	files := map[string]string{
		"noise":    testrows.Hard(t, 600, 6, true, func(*rand.Rand, []float64) {}),
		"far off":  testrows.Hard(t, 600, 6, true, testrows.FarOff(1e4)),
		"outliers": testrows.Hard(t, 600, 6, true, outliers),
		"twins":    testrows.Hard(t, 600, 6, true, func(_ *rand.Rand, x []float64) { x[1] = x[0] }),
	}
	for name, path := range files {
		for _, reg := range []float64{1, 1e-2, 1e-5, 1e-8, 0} {
			for _, intercept := range []bool{true, false} {
				c := defaults(path)
				c.Loss, c.Solver, c.Reg, c.Intercept, c.Tol = Hinge, solver.Interior, reg, intercept, 1e-6
				c.MaxIterations = fewInside
				got := fitted(t, c)
				what := fmt.Sprintf("%s, λ = %v, intercept %v", name, reg, intercept)
				if !got.Converged && got.Gap > 3e-5 || reg > 0 && got.GapBy != "duality" {
					t.Errorf("%s: gap %v by %s after %d steps", what, got.Gap, got.GapBy, got.Iterations)
				}
				c.Solver, c.MaxIterations = solver.Auto, fewInside+leadingSteps+fewSteps
				led := fitted(t, c)
				if got.Converged && !led.Converged || led.Objective > got.Objective+2e-6*math.Max(1, got.Objective) {
					t.Errorf("%s: led, it comes to %v by %s, gap %v, after %d steps; alone, to %v", what, led.Objective,
						led.Solver, led.Gap, led.Iterations, got.Objective)
				}
				c.Solver, c.MaxIterations = solver.Newton, 300
				if other := fitted(t, c); other.Objective < got.Objective-2e-6*math.Max(1, got.Objective) {
					t.Errorf("%s: objective %v, newton's %v", what, got.Objective, other.Objective)
				}
			}
		}
	}
}

// TestAnSVMIsLed by dual ascent to the method that it needs.
func TestAnSVMIsLed(t *testing.T) {
	path := testrows.Hard(t, 600, 6, true, func(*rand.Rand, []float64) {})
	for reg, want := range map[float64]solver.Name{1: solver.Newton, 1e-6: solver.Interior} {
		c := defaults(path)
		c.Loss, c.Solver, c.Reg, c.Tol = Hinge, solver.Auto, reg, 1e-6
		if got := fitted(t, c); got.Solver != want || !got.Converged {
			t.Errorf("λ = %v: by %s, %s; gap %v", reg, got.Solver, got.SolverWhy, got.Gap)
		}
	}
}

// outliers makes one row in thirty a thousand times as long.
func outliers(rng *rand.Rand, x []float64) {
	if rng.IntN(30) == 0 {
		for j := range x {
			x[j] *= 1e3
		}
	}
}

// TestTheInteriorPointIsTheSameEverywhere: rows keep their dual variables and slacks wherever they are folded.
func TestTheInteriorPointIsTheSameEverywhere(t *testing.T) {
	c := defaults(testrows.Hard(t, 900, 5, true, outliers))
	c.Loss, c.Reg, c.Tol, c.Splits = Hinge, 1e-4, 1e-8, 12
	for _, c.Solver = range []solver.Name{solver.Interior, solver.Auto} {
		var first *Trained
		for _, sync := range []string{"bsp", "steal"} {
			got, err := trainedBy(t, c, sync)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got.Model.Weights, first.Model.Weights) || got.Gap != first.Gap {
				t.Errorf("%s: %v, gap %v; %v, gap %v", sync, got.Model.Weights, got.Gap, first.Model.Weights, first.Gap)
			}
		}
	}
}
