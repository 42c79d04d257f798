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
