package scheduler

import (
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// lasting is a world of two executors, the second of which takes ten times as long for a piece, and of splits that are
// dear to get.
type lasting struct {
	*leaseWorld
	tasks []LeaseTask
}

// pass begins a pass and has it folded in time: a piece takes the first executor a millisecond.
func (w *lasting) pass(t *testing.T) (took time.Duration) {
	t.Helper()
	w.l = NewLeases(LeaseConfig{Grace: time.Second}, w.s, w.tasks, w.now)
	began := w.now
	w.step()
	next := map[plan.ExecutorID]plan.Time{"0": w.now + time.Millisecond, "1": w.now + 10*time.Millisecond}
	for w.l.left > 0 {
		id := plan.ExecutorID("0")
		if len(w.queue["0"]) == 0 || len(w.queue["1"]) > 0 && next["1"] < next["0"] {
			id = "1"
		}
		w.now = max(w.now, next[id])
		if !w.fold(id) {
			t.Fatal("no executor has anything to fold")
		}
		next["0"] = max(next["0"], w.now)
		next[id] = w.now + map[plan.ExecutorID]plan.Time{"0": time.Millisecond, "1": 10 * time.Millisecond}[id]
	}
	took = w.now - began
	if n := len(w.hand("0")) + len(w.hand("1")); n != len(w.l.pieces) {
		t.Fatalf("%d of %d pieces are merged", n, len(w.l.pieces))
	}
	w.s.Observe("0", 1e5)
	w.s.Observe("1", 1e4)
	return took
}

// TestACopyIsMadeOnceItsLackHasCostAsMuch: not for one short pass, but once it would have paid; then it is
// used.
func TestACopyIsMadeOnceItsLackHasCostAsMuch(t *testing.T) {
	w := &lasting{leaseWorld: newLeaseWorld(2, 2)}
	for range 2 { // 100 ms a copy, there and back
		w.tasks = append(w.tasks, LeaseTask{Rows: 400, Limit: 400, Pieces: 4, Bytes: 50_000_000})
	}
	w.gets = nil
	w.pass(t) // speeds are not known
	var each, all time.Duration
	for len(w.gets) == 0 && all < time.Second {
		each = w.pass(t)
		all += each
	}
	if cost := 100 * time.Millisecond; all < cost || all > 2*cost {
		t.Fatalf("after passes of %v, %v in all, asked to get %v", each, all, w.gets)
	}
	if g := w.gets[0]; g.Executor != "0" || g.Split != 1 || g.From != "1" {
		t.Errorf("asked to get %+v", g)
	}
	w.s.Held("0", 1)
	if later := w.pass(t); later > each*2/3 {
		t.Errorf("with a copy a pass takes %v, without %v", later, each)
	}
	if len(w.gets) > 1 {
		t.Errorf("asked again: %v", w.gets)
	}
}

// TestLargeResultsAreNotSentForLittle: a piece folded elsewhere is another part of the result, and all parts share the
// driver's link.
func TestLargeResultsAreNotSentForLittle(t *testing.T) {
	for bytes, moved := range map[int64]bool{0: true, 1_000_000: true, 10_000_000: false} {
		w := newLeaseWorld(2, 2)
		w.s.Observe("0", 1e5)
		w.s.Observe("1", 2e4) // its split takes it 20 ms, the other one 4 ms
		w.s.Held("0", 1)
		tasks := []LeaseTask{{Rows: 400, Limit: 400, Pieces: 4, Bytes: 1000}, {Rows: 400, Limit: 400, Pieces: 4,
			Bytes: 1000}}
		w.l = NewLeases(LeaseConfig{Grace: time.Second, Part: bytes}, w.s, tasks, w.now)
		w.step()
		for w.fold("0") {
			w.now += time.Millisecond
		}
		if got := w.l.undone[1] < 400; got != moved {
			t.Errorf("parts of %d bytes: another's split is begun: %v", bytes, got)
		}
		w.l.Lost("1")
		w.s.Lost("1")
		w.step()
		for w.fold("0") {
			w.now += time.Millisecond
		}
		if w.l.left > 0 {
			t.Errorf("parts of %d bytes: a lost executor's split is left", bytes)
		}
	}
}
