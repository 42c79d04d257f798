package host

import (
	"math"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// TestAJobSaysHowItStands: by its last turns, to the limit of its loop; what is no number is not its objective.
func TestAJobSaysHowItStands(t *testing.T) {
	t.Parallel()
	var s standing
	if s.now() != nil {
		t.Error("before the first turn there is something")
	}
	for k := range 100 {
		c := rdd.Commit{Iteration: k + 1, Most: 110, Values: map[string]float64{}}
		if k == 98 {
			c.Values["objective"] = 0.5
		}
		s.commit(c, uint64(k+1), time.Duration(k)*100*time.Millisecond)
	}
	at := s.now()
	if at.Iteration != 100 || at.GetObjective() != 0.5 || math.Abs(at.PerSecond-10) > 1e-9 ||
		time.Duration(at.LeftNs).Round(time.Millisecond) != time.Second {
		t.Errorf("%v", at)
	}
	s.evaluated(rdd.Evaluation{Objective: math.NaN()})
	if s.evaluated(rdd.Evaluation{Objective: 0.25}); s.now().GetObjective() != 0.25 || s.now().Iteration != 100 {
		t.Errorf("%v", s.now())
	}
	s.commit(rdd.Commit{Iteration: 110, Most: 110, Last: true}, 110, 11*time.Second)
	if s.now().LeftNs != 0 {
		t.Errorf("at its end %v are left", time.Duration(s.now().LeftNs))
	}
	s.commit(rdd.Commit{Loop: 1, Iteration: 1, Most: math.MaxInt}, 1, 12*time.Second) // another loop
	s.commit(rdd.Commit{Loop: 1, Iteration: 2, Most: math.MaxInt}, 2, 13*time.Second)
	if s.now().LeftNs != int64(mostLeft) || s.now().Iteration != 112 {
		t.Errorf("%v", s.now())
	}
	var resumed standing // in its second loop, after 70 turns of the first
	for k := range 2 {
		resumed.commit(rdd.Commit{Loop: 2, Iteration: 31 + k}, uint64(101+k), time.Duration(k)*time.Second)
	}
	if resumed.now().Iteration != 102 {
		t.Errorf("%v", resumed.now())
	}
}
