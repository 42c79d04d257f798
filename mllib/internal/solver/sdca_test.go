package solver

import (
	"math"
	"testing"
)

// TestDualAscentEasesItsProximalTerms where the gap stays, for a while, and not where
// it falls.
func TestDualAscentEasesItsProximalTerms(t *testing.T) {
	falling, staying := &Ascent{dualState: dualState{Share: 1}}, &Ascent{dualState: dualState{Share: 1}}
	var eased []int
	for i := 2; i <= 1000; i += 2 {
		if falling.watch(i, math.Pow(0.9, float64(i))) {
			t.Fatalf("eased at %d, though the gap falls", i)
		}
		if staying.watch(i, 1+math.Sin(float64(i))/20) {
			eased = append(eased, i)
		}
	}
	if len(eased) != 2 || eased[0] < fewSteps || eased[1] > 200 || staying.Share != 0 {
		t.Errorf("eased at %v to %v", eased, staying.Share)
	}
}

// TestTheCentreOfCutAscentsIsCareful once the gap has grown to a multiple of the least; that of whole steps goes on.
func TestTheCentreOfCutAscentsIsCareful(t *testing.T) {
	for _, cut := range []bool{false, true} {
		d := &Ascent{}
		d.Begin(DualProblem{Weight: 10, Rows: 10, Splits: 2, L2: []float64{0.1}, Lasso: []float64{0},
			Size:     []float64{1},
			Variable: func(w []float64) []float64 { return w }, Cut: cut}, &Point{X: make([]float64, 1),
			Y: make([]float64, 1)})
		for i, gap := range []float64{1, 0.5, 0.9} {
			if d.Look(2*i+2, 1, gap); d.Careful != 0 {
				t.Errorf("cut %v: careful after a gap of %v", cut, gap)
			}
		}
		if d.Look(8, 1, 1.1); d.Careful == 1 != cut {
			t.Errorf("cut %v: careful %v after the gap has doubled", cut, d.Careful)
		}
	}
}
