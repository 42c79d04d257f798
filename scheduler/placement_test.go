package scheduler

import (
	"errors"
	"slices"
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
	for _, c := range s.Place(nil) {
		s.Held(c.Executor, c.Split)
	}
	if !s.Ready() {
		t.Fatal("not ready")
	}
	return s
}

func TestNeighboursStartTogether(t *testing.T) {
	s := cluster(t, 7)
	for i, want := range []plan.ExecutorID{"a", "a", "b", "b", "b", "c", "c"} {
		if got := s.Owner(plan.SplitID(i)); got != want {
			t.Errorf("split %d is with %s, want %s", i, got, want)
		}
	}
}

// TestBlocksHaveAsManyBytes: heavy splits count for more, none is idle beside another with several, none is skipped.
func TestBlocksHaveAsManyBytes(t *testing.T) {
	for _, c := range []struct {
		executors int
		sizes     []int64
		want      []int
	}{
		{3, []int64{100, 10, 10, 10, 10, 10, 10}, []int{0, 1, 1, 1, 2, 2, 2}},
		{2, []int64{10, 10, 10, 30}, []int{0, 0, 0, 1}},
		{4, []int64{1, 1, 10, 10}, []int{0, 1, 2, 3}},
		{3, []int64{1, 1, 1, 1, 100}, []int{0, 0, 0, 1, 2}},
		{4, []int64{0, 0, 0, 0, 0, 0, 0, 0}, []int{0, 0, 1, 1, 2, 2, 3, 3}},
		{4, []int64{7, 7}, []int{0, 1}},
		{4, []int64{1001, 1001, 1001, 1001, 1000, 1000, 1000, 1000}, []int{0, 0, 1, 1, 2, 2, 3, 3}},
	} {
		s := New(Config{}, len(c.sizes))
		for e := range c.executors {
			s.Joined(plan.ExecutorID(rune('a'+e)), 1)
		}
		if got := s.blocks(c.sizes); !slices.Equal(got, c.want) {
			t.Errorf("%d executors, %v: %v", c.executors, c.sizes, got)
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

// TestAnExecutorThatFailsIsExcludedForAWhile: its splits go elsewhere, and it
// gets some again when its time is over; each time is longer.
func TestAnExecutorThatFailsIsExcludedForAWhile(t *testing.T) {
	s := cluster(t, 6)
	broken := fault.New(fault.Corrupt, "fold", "a split", errors.New("again"))
	now, times := plan.Time(0), 0
	for term := s.cfg.Exclusion; times < 3; term *= 2 {
		for !s.Charge("b", broken, now) {
			now++
			if times++; times > 1000 {
				t.Fatal("it is never excluded")
			}
		}
		times = int(term / s.cfg.Exclusion) // 1, 2, 4
		if !s.Excluded("b") {
			t.Fatal("it is not excluded")
		}
		for i := range 6 {
			if s.Owner(plan.SplitID(i)) != "b" {
				continue
			}
			for _, c := range s.Failed("b", plan.SplitID(i), broken) {
				if c.Executor == "b" {
					t.Errorf("split %d goes to the excluded executor", i)
				}
				s.Held(c.Executor, c.Split)
			}
		}
		if ids, _ := s.Readmit(now + term - 1); len(ids) > 0 {
			t.Errorf("it is back before %v are over", term)
		}
		now += term
		ids, cmds := s.Readmit(now)
		if len(ids) != 1 || ids[0] != "b" || len(cmds) == 0 {
			t.Fatalf("after %v: %v, %v", term, ids, cmds)
		}
		for _, c := range cmds {
			s.Held(c.Executor, c.Split)
		}
		s.Boundary()
	}
}

// TestTheLastExecutorIsUsedThoughExcluded: rather one that fails than nobody.
func TestTheLastExecutorIsUsedThoughExcluded(t *testing.T) {
	s := cluster(t, 6)
	for !s.Charge("b", fault.New(fault.Corrupt, "fold", "a split", errors.New("again")), 0) {
	}
	s.Lost("a")
	_, cmds := s.Lost("c")
	for _, c := range cmds {
		if c.Executor != "b" {
			t.Errorf("%+v", c)
		}
		s.Held(c.Executor, c.Split)
	}
	if !s.Ready() {
		t.Error("not ready")
	}
}

// TestADamagedCopyIsNotMadeByWhoIsExcluded: the one to whom it was sent has failed too often
// while it was on its way.
func TestADamagedCopyIsNotMadeByWhoIsExcluded(t *testing.T) {
	s := cluster(t, 6)
	damaged := fault.New(fault.Corrupt, "fetch", "a split", errors.New("another hash"))
	_, cmds := s.Lost("c")
	to, split := cmds[0].Executor, cmds[0].Split
	for !s.Charge(to, damaged, 0) {
	}
	for _, c := range s.Failed(to, split, damaged) {
		if c.Split == split && (c.Executor == to || c.From != "") {
			t.Errorf("split %d, which has arrived damaged, is to be got by %s from %q", split, c.Executor, c.From)
		}
	}
	if !s.Moving(split) {
		t.Errorf("split %d is nobody's", split)
	}
}

// TestADamagedCopyIsMadeFromItsSource, by the one to whom it was sent.
func TestADamagedCopyIsMadeFromItsSource(t *testing.T) {
	s := cluster(t, 6)
	if cmds := s.Move(0, "b"); len(cmds) != 1 || cmds[0].From != "a" {
		t.Fatalf("%+v", cmds)
	}
	cmds := s.Failed("b", 0, fault.Newf(fault.Corrupt, "fetch", "split 0", "another hash"))
	if len(cmds) != 1 || cmds[0].Kind != Hold || cmds[0].Executor != "b" || cmds[0].From != "" {
		t.Fatalf("%+v", cmds)
	}
	s.Held("b", 0)
	s.Boundary()
	if s.Owner(0) != "b" {
		t.Errorf("it is with %s", s.Owner(0))
	}
}

// TestADrainedExecutorGetsNothingMore, not even what is on its way to it, and
// what it has goes elsewhere.
func TestADrainedExecutorGetsNothingMore(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		s := cluster(t, 6)
		s.Move(0, "b")
		if arrived {
			s.Held("b", 0)
		}
		for _, c := range s.Drain("b") {
			if c.Executor == "b" {
				t.Errorf("%+v", c)
			}
			s.Held(c.Executor, c.Split)
		}
		if !arrived {
			s.Held("b", 0) // too late to matter
		}
		s.Boundary()
		if !s.Drained("b") || s.Owner(0) != "a" {
			t.Errorf("arrived %v: drained %v, split 0 is with %s", arrived, s.Drained("b"), s.Owner(0))
		}
	}
}
