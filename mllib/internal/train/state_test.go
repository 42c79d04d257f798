package train

import (
	"reflect"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
)

// adamAt has taken a step, so that it has something to keep.
func adamAt(p *solver.Point) solver.Solver {
	s := solver.Of(solver.Adam).New()
	s.Step(p, &solver.Seen{G: []float64{1, -2}})
	return s
}

func TestStateSurvivesItsEncoding(t *testing.T) {
	s := NewState(2, 6, nil)
	s.Solver = adamAt(&s.Point)
	s.Rules = StopState{Last: 34, Streak: 35, Recent: []float64{36, 37}, Looked: 38, LookedAt: 39, NextLook: 40}
	s.Held = heldState{Least: 41, Since: 42, Point: []float64{43}}
	s.Guard = guardState{Point: []float64{44, 45}, F: 46, Sure: 1, Start: 47, Next: 48, Halts: 49}
	raw, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	r := NewState(0, 0, solver.Of(solver.Adam).New())
	if err := r.UnmarshalBinary(raw); err != nil || !reflect.DeepEqual(r, s) {
		t.Errorf("%+v, %v, want %+v", r, err, s)
	}
	for cut := range len(raw) / 8 {
		if err := r.UnmarshalBinary(raw[:8*cut]); err == nil && cut < len(raw)/8-2 {
			t.Errorf("a state of %d numbers is taken", cut)
		}
	}
}
