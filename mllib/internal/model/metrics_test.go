package model

import (
	"math"
	"testing"
)

func TestAreas(t *testing.T) {
	rows := []Scored{{1, 1, 1}, {2, 0, 1}, {3, 1, 1}, {3, 0, 1}, {4, 1, 1}}
	// pairs won: 1 beats none of {2,3}; 3 beats 2 and ties 3; 4 beats both.
	// precision at the positives: 1 at 4, 2/3 at 3, 3/5 at 1.
	roc, pr, ok := areas(rows)
	if !ok || math.Abs(roc-3.5/6) > 1e-15 || math.Abs(pr-(1+2.0/3+3.0/5)/3) > 1e-15 {
		t.Errorf("%v, %v", roc, pr)
	}
	if _, _, ok := areas(rows[:1]); ok {
		t.Error("one class has no area")
	}
}
