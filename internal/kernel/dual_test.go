package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestDualStepsAreTheBest: ℓ*(−a) = max over m of −a·m − ℓ(m),
// and Ascend is where the dual is highest.
func TestDualStepsAreTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Loss{Kind: LossKind(rapid.IntRange(0, 3).Draw(t, "loss"))}
		y := float64(rapid.IntRange(0, 1).Draw(t, "label"))
		if rapid.Bool().Draw(t, "weighted") && l.Kind != SquaredLoss {
			l.Weights = [2]float64{0.5, 3}
		}
		z, q := rapid.Float64Range(-8, 8).Draw(t, "margin"), rapid.Float64Range(0.01, 50).Draw(t, "curvature")
		a := l.Ascend(0, rapid.Float64Range(-4, 4).Draw(t, "before"), 1, y)
		next := l.Ascend(a, z, q, y)
		gain := func(b float64) float64 { return -l.Conjugate(b, y) - (b-a)*z - q/2*(b-a)*(b-a) }
		for _, off := range []float64{1e-4, -1e-4, 1e-2, -1e-2} {
			b := next + off
			if f := (2*y - 1) * b / l.Weight(0, y); l.Kind != SquaredLoss &&
				(f < 0 || f > 1 && l.Kind != SquaredHingeLoss) {
				continue // outside of where the conjugate is finite
			}
			if gain(b) > gain(next)+1e-9 {
				t.Fatalf("loss %d: at %v the dual gains %v, at %v, near it, %v", l.Kind, next, gain(next), b, gain(b))
			}
		}
		most := math.Inf(-1)
		for m := -60.0; m <= 60; m += 0.01 {
			coef, loss := make([]float64, 1), make([]float64, 1)
			l.Derive(coef, loss, []float64{m}, 0, []float64{y})
			most = max(most, -next*m-loss[0])
		}
		if got := l.Conjugate(next, y); math.Abs(got-most) > 2e-3*max(1, math.Abs(most)) && math.Abs(next) < 50 {
			t.Fatalf("loss %d: conjugate of %v is %v, at least %v", l.Kind, next, got, most)
		}
	})
}
