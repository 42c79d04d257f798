package scheduler

import (
	"testing"
	"time"
)

// again begins another pass over the same splits.
func (w *leaseWorld) again(splits int) {
	tasks := make([]LeaseTask, splits)
	for i := range tasks {
		tasks[i] = LeaseTask{Rows: 400, Limit: 400, Pieces: 4, Bytes: 1000}
	}
	w.l = NewLeases(LeaseConfig{Grace: 10 * time.Millisecond}, w.s, tasks, w.now)
	w.step()
}

// idle has the first executor fold its own, and wait until the other one is late.
func (w *leaseWorld) idle() {
	for w.fold("0") {
		w.now += time.Millisecond
	}
	w.now = max(w.now, w.wake)
	w.step()
}

// finish has the other executor fold the rest, and both hand in what they have.
func (w *leaseWorld) finish(t *testing.T) {
	t.Helper()
	for w.fold("1") {
		w.now += time.Millisecond
	}
	if n := len(w.hand("0")) + len(w.hand("1")); n != 8 {
		t.Fatalf("%d of 8 pieces are merged", n)
	}
}

// TestWhatIsOnItsWayIsNotAskedForAgain: a copy that one pass has asked for, and that
// has not come when the pass is over, is on its way in the next one, too; where it
// could not be got, it is asked for again.
func TestWhatIsOnItsWayIsNotAskedForAgain(t *testing.T) {
	w := newLeaseWorld(2, 2)
	w.idle()
	if len(w.gets) != 1 {
		t.Fatalf("asked to get %v", w.gets)
	}
	w.finish(t)
	w.again(2)
	w.idle()
	if len(w.gets) != 1 {
		t.Errorf("while split 1 is on its way, asked to get %v", w.gets)
	}
	had := len(w.gets)
	w.l.Unsent("0", 1, w.now)
	w.now += 50 * time.Millisecond
	w.step()
	if len(w.gets) != had+1 {
		t.Errorf("after split 1 could not be got, asked to get %v", w.gets[had:])
	}
}
