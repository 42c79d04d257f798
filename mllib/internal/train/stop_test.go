package train

import "testing"

func TestStopRules(t *testing.T) {
	target := 0.5
	s := Stopper{Rule: ByObjective, Tol: 1e-3, Target: &target, State: &StopState{}}
	if v := s.Check(Observation{Iteration: 1, Objective: 0.49, Exact: true}); v.Stop != "target" {
		t.Errorf("%+v", v)
	}
	if v := s.Check(Observation{Iteration: 1, Objective: 0.49}); !v.Look {
		t.Errorf("an estimate only decides when to look: %+v", v)
	}
	s = Stopper{Rule: ByObjective, Tol: 1e-3, State: &StopState{}}
	for k := 1; k <= 6; k++ {
		v := s.Check(Observation{Iteration: k, Objective: 1, Exact: true})
		if (v.Stop == "tolerance") != (k == 6) {
			t.Errorf("check %d: %+v", k, v)
		}
	}
	s = Stopper{Rule: ByObjective, Tol: 0, State: &StopState{}}
	for k := range 50 {
		if v := s.Check(Observation{Iteration: k + 1, Objective: 1, Exact: true}); v.Stop != "" {
			t.Errorf("tol 0 stops: %+v", v)
		}
	}
}
