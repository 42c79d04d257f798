package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStandardErrorsOfACourse: of a smooth course with normal errors they are found within a third, in the median, of a
// smooth one without errors they are next to nothing, and those of all rows have none.
func TestStandardErrorsOfACourse(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, sigma := range []float64{0, 1e-3, 0.1} {
		var points []Point
		for k := range 400 {
			p := Point{Objective: 1 + math.Exp(-float64(k)/40), Cut: k%10 != 0}
			if p.Cut {
				p.Objective += sigma * rng.NormFloat64()
			}
			points = append(points, p)
		}
		var all []float64
		for i, e := range scatter(points) {
			if points[i].Cut {
				all = append(all, e)
			} else if e != 0 {
				t.Errorf("a pass of all rows has an error of %v", e)
			}
		}
		if slices.Sort(all); all[len(all)/2] < sigma*2/3 || all[len(all)/2] > sigma*4/3+1e-4 {
			t.Errorf("of errors of %v it is %v", sigma, all[len(all)/2])
		}
	}
	if scatter(make([]Point, 100)) != nil {
		t.Error("a course without cut steps has errors")
	}
}
