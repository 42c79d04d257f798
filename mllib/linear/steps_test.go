package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
)

// TestStepsSuitRowsThatNoSampleHas: gradient descent with momentum, the default where
// steps may be cut, comes near the optimum where columns are each other's opposites, so that
// equal numbers see nothing of their difference, and where one row in 40,000, which
// no sample has, is far from all others.
func TestStepsSuitRowsThatNoSampleHas(t *testing.T) {
	for name, path := range map[string]string{
		"opposite columns": testrows.Lines(t, 400, func(i int, rng *rand.Rand) string {
			on := i % 2
			return fmt.Sprintf("%v,%d,%d,%d,%d", 3*float64(on)+rng.NormFloat64(), on, 1-on, i/2%2, 1-i/2%2)
		}),
		"an outlier": testrows.Lines(t, 40_000, func(i int, rng *rand.Rand) string {
			far := 1.0
			if i == 39_000 {
				far = 1e4
			}
			a, b := far*rng.NormFloat64(), far*rng.NormFloat64()
			return fmt.Sprintf("%v,%v,%v,%v", a-b+rng.NormFloat64(), a, b, far*rng.NormFloat64())
		}),
	} {
		c := defaults(path)
		c.Loss, c.Reg, c.MaxIterations, c.Tol = Squared, 1e-3, 400, 1e-9
		c.Solver = solver.Newton
		want := fitted(t, c).Objective
		c.Solver = solver.Nesterov
		if got := fitted(t, c).Objective; !(got <= want+0.02*math.Max(1, want)) {
			t.Errorf("%s: %v, newton has %v", name, got, want)
		}
	}
}
