package scheduler

import (
	"errors"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// cluster places splits on executors a, b, c and lets them all be held.
func cluster(t *testing.T, splits int) *State {
	t.Helper()
	s := New(Config{}, splits)
	for _, id := range []plan.ExecutorID{"a", "b", "c"} {
		s.Joined(id, 1)
	}
	for _, c := range s.Place() {
		s.Held(c.Executor, c.Split)
	}
	if !s.Ready() {
		t.Fatal("not ready")
	}
	return s
}

func TestSplitIStartsOnExecutorIModE(t *testing.T) {
	s := cluster(t, 7)
	for i := range 7 {
		if want := s.Executors()[i%3]; s.Owner(plan.SplitID(i)) != want {
			t.Errorf("split %d is with %s, want %s", i, s.Owner(plan.SplitID(i)), want)
		}
	}
}

func TestALostExecutorsSplitsGoToReplicasFirst(t *testing.T) {
	s := cluster(t, 6)
	s.Move(0, "b")
	s.Held("b", 0)
	s.Boundary()
	if s.Owner(0) != "b" || !s.Holds(0, 0) {
		t.Fatal("the old copy must stay as a replica")
	}
	orphans, cmds := s.Lost("b")
	if len(orphans) != 3 {
		t.Fatalf("orphans %v", orphans)
	}
	if s.Owner(0) != "a" {
		t.Errorf("split 0 is with %q, its replica is with a", s.Owner(0))
	}
	for _, c := range cmds {
		if c.From != "" || c.Executor == "b" {
			t.Errorf("%+v: nobody else holds it, so it is made from its source", c)
		}
		s.Held(c.Executor, c.Split)
	}
	if !s.Ready() {
		t.Error("not ready again")
	}
}

func TestARoleMoveSurvivesTheLossOfTheOwner(t *testing.T) {
	s := cluster(t, 3)
	s.Move(0, "b")
	s.Held("b", 0)
	s.Lost("a")
	if s.Owner(0) != "b" {
		t.Errorf("split 0 is with %q", s.Owner(0))
	}
}

func TestANewcomerGetsItsShare(t *testing.T) {
	s := cluster(t, 12)
	cmds := s.Joined("d", 1)
	if len(cmds) != 3 {
		t.Fatalf("%d splits move, want 3", len(cmds))
	}
	for _, c := range cmds {
		if c.From == "" {
			t.Errorf("%+v: it should be copied from its owner", c)
		}
		s.Held("d", c.Split)
	}
	if got := len(s.Boundary()); got != 3 {
		t.Errorf("%d changed owner", got)
	}
}

func TestOlderEpochsAreStale(t *testing.T) {
	s := cluster(t, 3)
	s.NextEpoch()
	_, first, _ := s.Assign(0, 0)
	s.NextEpoch()
	_, second, _ := s.Assign(0, 0)
	if s.Current(0, first.Attempt, first.Epoch) || !s.Current(0, second.Attempt, second.Epoch) {
		t.Error("only the latest assignment is current")
	}
	if s.Current(99, 1, 1) {
		t.Error("a split that does not exist is not current")
	}
}

func TestEveryKindOfFailureHasItsResponse(t *testing.T) {
	for _, k := range fault.Kinds() {
		s := cluster(t, 3)
		cmds := s.Failed("a", 0, fault.New(k, "fold", "split", errors.New("x")))
		aborted := len(cmds) > 0 && cmds[0].Kind == Abort
		if aborted == fault.Policy(k).Retry {
			t.Errorf("%v: aborted %v", k, aborted)
		}
		if fault.Policy(k).Remake && s.Holds(0, 0) {
			t.Errorf("%v: the damaged copy is still held", k)
		}
	}
}

func TestRetriesAreBounded(t *testing.T) {
	s := cluster(t, 3)
	err := fault.New(fault.Corrupt, "fold", "split", errors.New("x"))
	for n := 1; ; n++ {
		cmds := s.Failed("a", 0, err)
		if len(cmds) > 0 && cmds[0].Kind == Abort {
			if n != 4 {
				t.Errorf("aborted after %d failures", n)
			}
			return
		}
		for _, c := range cmds {
			s.Held(c.Executor, c.Split)
		}
		if n > 10 {
			t.Fatal("never aborts")
		}
	}
}
