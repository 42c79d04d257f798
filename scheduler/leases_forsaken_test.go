package scheduler

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// alone has some executors fold whatever they are given until nothing is left, or a
// time has come: nobody else says anything.
func (w *leaseWorld) alone(until plan.Time, ids ...plan.ExecutorID) {
	for w.now < until && w.l.left > 0 {
		w.now += time.Millisecond
		for _, id := range ids {
			w.fold(id)
		}
		for _, c := range w.gets {
			w.s.Held(c.Executor, c.Split)
		}
		if got := len(w.gets) > 0; got || w.wake > 0 && w.now >= w.wake {
			w.gets, w.wake = nil, 0
			w.step()
		}
	}
}

// TestASplitThatDoesNotArriveIsGotElsewhere: the executor that is to take over a split
// has stopped, which nobody has noticed; another one that has nothing to do gets it.
func TestASplitThatDoesNotArriveIsGotElsewhere(t *testing.T) {
	w := newLeaseWorld(3, 3)
	w.l.Lost("2")
	_, cmds := w.s.Lost("2")
	if len(cmds) != 1 || cmds[0].Split != 2 {
		t.Fatalf("2 is lost: %+v", cmds)
	}
	well := map[plan.ExecutorID]plan.ExecutorID{"0": "1", "1": "0"}[cmds[0].Executor]
	w.step()
	w.alone(500*time.Millisecond, well)
	if w.s.Owner(2) != well || w.l.left > 0 {
		t.Errorf("after half a second split 2 is with %q, and %d pieces are left", w.s.Owner(2), w.l.left)
	}
}

// TestWhoHasCopiesEnoughGetsWhatNobodyElseHolds: a copy more than it may have for the
// sake of leases, where the only holder has stopped.
func TestWhoHasCopiesEnoughGetsWhatNobodyElseHolds(t *testing.T) {
	w := newLeaseWorld(3, 18)
	w.l.cfg.CopyBytes = 1
	for i := range plan.SplitID(16) { // all but one of those of the third
		w.s.Held("0", i)
		w.s.Held("1", i)
	}
	w.step()
	w.alone(500*time.Millisecond, "0", "1")
	if w.l.left > 0 {
		t.Errorf("after half a second %d pieces are left", w.l.left)
	}
}

// TestCopiesAreBoundedByTheirBytes: one who has as many as it owns, and eight, gets more while they are small.
func TestCopiesAreBoundedByTheirBytes(t *testing.T) {
	for bytes, want := range map[int64]bool{16_001: true, 16_000: false, 1: false} { // of 1,000 a split
		w := newLeaseWorld(3, 27)
		w.l.cfg.CopyBytes = bytes
		for i := range plan.SplitID(27) {
			if 9 <= i && i < 25 {
				w.s.Held("0", i)
			}
		}
		w.l.look(w.now)
		if got := !w.l.hasFill(0); got != want {
			t.Errorf("%d copies, %d bytes may be had: more are got: %v", len(w.l.view.copies[0]), bytes, got)
		}
	}
}

// TestWhatCannotBeGotFromOthersIsGotFromItsSource: copies of a split fail again and again
// where its holder has stopped and is not known to be silent.
func TestWhatCannotBeGotFromOthersIsGotFromItsSource(t *testing.T) {
	w := newLeaseWorld(2, 2)
	for failed := range copiesTried + 1 {
		c := w.l.get(1, 0, w.now)
		if want := failed < copiesTried; (c.From != "") != want {
			t.Errorf("after %d failures it is got from %q", failed, c.From)
		}
		w.s.executors[0].getting = 1
		w.l.Unsent("0", 1, w.now)
	}
}

// TestAnExecutorThatCannotGetASplitIsNotWaitedFor: its owner has stopped; the one that was asked for a
// copy says that it could not get it, or is lost, and the next one is asked at once.
func TestAnExecutorThatCannotGetASplitIsNotWaitedFor(t *testing.T) {
	for how, fails := range map[string]func(w *leaseWorld, asked plan.ExecutorID){
		"fails": func(w *leaseWorld, asked plan.ExecutorID) { w.l.Unsent(asked, 17, w.now) },
		"lost":  func(w *leaseWorld, asked plan.ExecutorID) { w.s.Lost(asked); w.l.Lost(asked) },
	} {
		w := newLeaseWorld(3, 18)
		w.l.cfg.CopyBytes = 1
		for i := range plan.SplitID(17) { // copies enough
			w.s.Held("0", i)
			w.s.Held("1", i)
		}
		w.step()
		for w.now < time.Second && len(w.gets) == 0 {
			w.now += time.Millisecond
			w.fold("0")
			w.fold("1")
			if w.wake > 0 && w.now >= w.wake {
				w.step()
			}
		}
		if len(w.gets) != 1 || w.gets[0].Split != 17 {
			t.Fatalf("%s: asked to get %+v", how, w.gets)
		}
		fails(w, w.gets[0].Executor)
		w.step()
		for w.fold("1") { // what the lost one had
			w.step()
		}
		if len(w.gets) != 2 || w.gets[1].Split != 17 || w.gets[1].Executor == w.gets[0].Executor {
			t.Errorf("%s: asked to get %+v", how, w.gets)
		}
	}
}

// TestWhoWasGivenUpIsNotWaitedForAgain: the result of the owner of a split is given up; others
// get a copy of the split and fold it, until the owner says something, or is the only one.
func TestWhoWasGivenUpIsNotWaitedForAgain(t *testing.T) {
	w := newLeaseWorld(3, 3)
	for w.now += 30 * time.Millisecond; w.fold("2"); { // so fast that others would rather wait for it
		w.now += 30 * time.Millisecond
	}
	for w.fold("0") || w.fold("1") {
		w.now += 300 * time.Millisecond
	}
	w.hand("0")
	w.hand("1")
	if len(w.ask["2"]) == 0 {
		t.Fatal("2 is asked for nothing")
	}
	for _, c := range w.gets {
		w.l.Unsent(c.Executor, c.Split, w.now)
	}
	w.gets = nil
	w.now += time.Minute
	w.step()
	if len(w.gets) == 0 || w.gets[0].Split != 2 {
		t.Fatalf("others are to get %v", w.gets)
	}
	w.s.Held(w.gets[0].Executor, 2)
	if w.step(); len(w.queue[w.gets[0].Executor]) == 0 {
		t.Errorf("who has got a copy is given nothing")
	}
	for _, id := range []plan.ExecutorID{"0", "1"} {
		w.s.Lost(id)
		w.l.Lost(id)
	}
	if w.step(); len(w.queue["2"]) == 0 {
		t.Error("the only one left is given nothing")
	}
}
