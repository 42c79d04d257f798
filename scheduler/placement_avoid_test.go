package scheduler

import (
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// holdAll has executors hold what they are asked to.
func (s *State) holdAll(cmds []Command) {
	for _, c := range cmds {
		s.Held(c.Executor, c.Split)
	}
}

// TestWhoFailedDoesNotInheritAtOnce: an executor that has failed with a split, was lost,
// joined again and was given a copy of it for the next step does not become its owner
// within this one, although it holds it, when the one that folds it is lost.
func TestWhoFailedDoesNotInheritAtOnce(t *testing.T) {
	s := cluster(t, 9)
	s.holdAll(s.Failed("a", 0, fault.Newf(fault.NoResources, "fold", "a split", "there is no memory")))
	_, cmds := s.Lost("a")
	s.holdAll(cmds)
	folds := s.Owner(0)
	s.holdAll(s.Joined("a", 1))
	if !s.Moving(0) || !s.Holds(0, s.byID["a"]) {
		t.Fatal("a has joined again and is not given split 0")
	}
	_, cmds = s.Lost(folds)
	s.holdAll(cmds)
	if got := s.Owner(0); got == "a" || got == "" {
		t.Errorf("split 0 goes to %q, which has failed with it", got)
	}
	for i := range 9 {
		if s.Owner(plan.SplitID(i)) == "" {
			t.Errorf("split %d goes to nobody", i)
		}
	}
}

// TestWhoFailedDoesNotInheritWhatIsOnItsWay: the same where the copy has not arrived when the
// one that folds the split is lost.
func TestWhoFailedDoesNotInheritWhatIsOnItsWay(t *testing.T) {
	s := cluster(t, 9)
	s.holdAll(s.Failed("a", 0, fault.Newf(fault.NoResources, "fold", "a split", "there is no memory")))
	_, cmds := s.Lost("a")
	s.holdAll(cmds)
	folds := s.Owner(0)
	coming := s.Joined("a", 1)
	_, cmds = s.Lost(folds)
	s.holdAll(coming)
	s.holdAll(cmds)
	if got := s.Owner(0); got == "a" || got == "" {
		t.Errorf("split 0 goes to %q, which has failed with it", got)
	}
}
