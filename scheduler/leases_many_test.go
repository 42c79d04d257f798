package scheduler

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// TestListsFollowThePlacement: those that are kept up to date copy by copy are those rebuilt.
func TestListsFollowThePlacement(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newLeaseWorld(5, 12)
		for range 40 {
			e, i := plan.ExecutorID(fmt.Sprint(rng.IntN(5))), plan.SplitID(rng.IntN(12))
			switch rng.IntN(12) {
			case 0:
				w.s.Move(i, e)
			case 1:
				w.s.Boundary()
			case 2:
				w.s.Lost(e)
				w.l.Lost(e)
			case 3:
				w.s.Joined(e, 1)
			default:
				w.s.Held(e, i)
			}
			if rng.IntN(3) == 0 {
				w.l.lookAtPlacement()
			}
		}
		w.l.lookAtPlacement()
		got := [2][][]int{w.l.view.own, w.l.view.copies}
		w.l.view = view{}
		w.l.lookAtPlacement()
		if want := [2][][]int{w.l.view.own, w.l.view.copies}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %v, rebuilt %v", seed, got, want)
		}
	}
}

// TestHelpersSpread: of executors without work no two fetch of the same owner while others have as much left.
func TestHelpersSpread(t *testing.T) {
	w := newLeaseWorld(6, 24)
	for e := range 6 {
		w.s.executors[e].speed = 100
		if e < 3 {
			w.s.executors[e].speed = 100_000
		}
	}
	for more := true; more; w.now += time.Millisecond {
		more = false
		for e := range 3 {
			more = w.fold(plan.ExecutorID(fmt.Sprint(e))) || more
		}
	}
	owners := map[int]int{}
	for _, c := range w.gets {
		owners[w.s.splits[c.Split].owner]++
	}
	if !reflect.DeepEqual(owners, map[int]int{3: 1, 4: 1, 5: 1}) {
		t.Errorf("splits are fetched of %v", owners)
	}
}

// TestAnEventIsOfOneExecutor: where there are many, the others are looked at now and then, and within that time.
func TestAnEventIsOfOneExecutor(t *testing.T) {
	w := newLeaseWorld(8, 8)
	w.s.cfg.Few = 4
	w.step()
	w.s.Held("1", 0) // while it has enough of its own
	for w.fold("1") {
	}
	if w.l.nextLook <= w.now || w.wake > w.l.nextLook {
		t.Fatalf("now %v, all are looked at at %v, woken at %v", w.now, w.l.nextLook, w.wake)
	}
	granted := func() int { return len(w.l.all) }
	before := granted()
	w.s.Held("2", 0)
	w.step()
	if granted() != before {
		t.Error("executor 2 has work, and gets more")
	}
	for w.fold("2") {
	}
	if granted() == before {
		t.Error("executor 2 is free, holds a copy of what is left, and gets nothing")
	}
	before = granted()
	w.s.Held("3", 0)
	w.l.Lost("0")
	w.step()
	if granted() == before {
		t.Error("what a lost executor had is given to none")
	}
}

// TestManyExecutorsFoldAll: with glances alone nothing stays behind, in any order of events.
func TestManyExecutorsFoldAll(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newLeaseWorld(8, 20)
		w.s.cfg.Few = 1
		for turns := 0; w.l.left > 0; turns++ {
			if turns > 5000 {
				t.Fatalf("seed %d: %d pieces are left", seed, w.l.left)
			}
			if e := plan.ExecutorID(fmt.Sprint(rng.IntN(8))); !w.fold(e) && rng.IntN(3) == 0 {
				w.s.Held(e, plan.SplitID(rng.IntN(20)))
			}
			if w.now += plan.Time(rng.IntN(200)) * time.Microsecond; w.now >= w.wake {
				w.step()
			}
		}
	}
}
