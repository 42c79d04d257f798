package scheduler

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/internal/plan"
)

// leaseWorld is a pass on executors that fold, hang and are lost as a test says.
type leaseWorld struct {
	s      *State
	l      *Leases
	now    plan.Time
	epochs map[plan.ExecutorID]plan.Epoch
	queue  map[plan.ExecutorID][]*Lease
	ask    map[plan.ExecutorID][]uint32
	gets   []Command
	wake   plan.Time
}

// newLeaseWorld places splits of four pieces of 100 rows, one on each executor in
// turn.
func newLeaseWorld(executors, splits int) *leaseWorld {
	w := &leaseWorld{s: New(Config{}, splits), epochs: map[plan.ExecutorID]plan.Epoch{},
		queue: map[plan.ExecutorID][]*Lease{}, ask: map[plan.ExecutorID][]uint32{}}
	for e := range executors {
		w.s.Joined(plan.ExecutorID(fmt.Sprint(e)), 1)
	}
	tasks := make([]LeaseTask, splits)
	for i := range tasks {
		tasks[i] = LeaseTask{Rows: 400, Limit: 400, Pieces: 4, Bytes: 1000}
	}
	for _, c := range w.s.Place(nil) {
		w.s.Held(c.Executor, c.Split)
	}
	w.l = NewLeases(LeaseConfig{Grace: 10 * time.Millisecond}, w.s, tasks, 0)
	w.step()
	return w
}

func (w *leaseWorld) step() {
	for _, c := range w.l.Step(w.now) {
		switch c.Kind {
		case LeaseStart:
			w.epochs[c.Executor], w.queue[c.Executor] = c.Epoch, nil
		case LeaseGrant:
			w.queue[c.Executor] = append(w.queue[c.Executor], c.Leases...)
		case LeaseInclude:
			w.queue[c.Executor] = nil
			for _, l := range c.Leases {
				w.ask[c.Executor] = append(w.ask[c.Executor], l.ID)
			}
		case LeaseGet:
			w.gets = append(w.gets, c.Get)
		case LeaseWakeAt:
			w.wake = c.At
		}
	}
}

// fold has an executor fold the first lease of its queue.
func (w *leaseWorld) fold(id plan.ExecutorID) bool {
	q := w.queue[id]
	if len(q) == 0 {
		return false
	}
	w.queue[id] = q[1:]
	w.l.Folded(id, w.epochs[id], []uint32{q[0].ID}, w.now)
	w.step()
	return true
}

// hand has an executor send what it was asked for.
func (w *leaseWorld) hand(id plan.ExecutorID) (pieces [][2]int) {
	ids := w.ask[id]
	delete(w.ask, id)
	if len(ids) > 0 && w.l.Accept(id, w.epochs[id], ids) {
		for _, k := range ids {
			l := w.l.lease(k)
			pieces = append(pieces, [2]int{l.Split, l.Part})
		}
	}
	w.step()
	return pieces
}

// TestEveryPieceIsMergedOnce, whichever executor folds what, however late, however large results are, and whichever is
// lost.
func TestEveryPieceIsMergedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		executors, splits := rapid.IntRange(2, 5).Draw(t, "executors"), rapid.IntRange(1, 6).Draw(t, "splits")
		w := newLeaseWorld(executors, splits)
		w.l.cfg.Part = rapid.SampledFrom([]int64{0, 1_000_000, 100_000_000}).Draw(t, "part")
		for e := range executors {
			w.s.Observe(plan.ExecutorID(fmt.Sprint(e)), rapid.SampledFrom([]float64{0, 1e3, 1e5}).Draw(t, "speed"))
		}
		merged := map[[2]int]int{}
		name := func(label string) plan.ExecutorID {
			return plan.ExecutorID(fmt.Sprint(rapid.IntRange(0, executors-1).Draw(t, label)))
		}
		for turn := 0; len(merged) < 4*splits; turn++ {
			if turn > 3000 {
				t.Fatalf("%d of %d pieces after %d turns", len(merged), 4*splits, turn)
			}
			w.now += time.Duration(rapid.IntRange(0, 8).Draw(t, "ms")) * time.Millisecond
			what := rapid.IntRange(0, 20).Draw(t, "what")
			if turn > 300 && what == 0 {
				what = 20 // nobody is lost for ever
			}
			switch id := name("who"); what {
			case 0:
				orphans, cmds := w.s.Lost(id)
				_ = orphans
				w.l.Lost(id)
				delete(w.ask, id)
				w.s.Joined(id, 1)
				for _, c := range cmds {
					w.s.Held(c.Executor, c.Split)
				}
				w.step()
			case 1, 2:
				for _, g := range w.gets {
					w.s.Held(g.Executor, g.Split)
				}
				w.gets = nil
				for i := range splits { // who was given a split holds it by now
					if n := w.s.splits[i].next; n >= 0 {
						w.s.Held(w.s.executors[n].id, plan.SplitID(i))
					}
				}
				w.step()
			case 3, 4, 5, 6, 7, 8:
				for _, p := range w.hand(id) {
					merged[p]++
				}
			default:
				w.fold(id)
			}
		}
		for p, n := range merged {
			if n != 1 {
				t.Fatalf("piece %v is merged %d times", p, n)
			}
		}
	})
}

// TestAnExpiredLeaseIsGrantedAgain, to an executor that first gets the split, from
// its source, since its owner does not answer.
func TestAnExpiredLeaseIsGrantedAgain(t *testing.T) {
	w := newLeaseWorld(2, 2)
	for w.fold("0") { // the other one is silent from the start
		w.now += time.Millisecond
	}
	w.now = max(w.now, w.wake)
	w.step()
	if len(w.gets) != 1 || w.gets[0].Executor != "0" || w.gets[0].Split != 1 {
		t.Fatalf("asked to get %v", w.gets)
	}
	w.s.Held("0", 1)
	w.step()
	for w.fold("0") {
		w.now += time.Millisecond
	}
	if got := w.hand("0"); len(got) != 8 {
		t.Fatalf("%d of 8 pieces are merged", len(got))
	}
	if w.l.Whole(0) != true || w.l.Whole(1) != true {
		t.Error("the pass is not whole")
	}
}

// TestAResultThatComesTooLateIsDropped: others fold what its sender was given up
// for.
func TestAResultThatComesTooLateIsDropped(t *testing.T) {
	w := newLeaseWorld(2, 2)
	w.s.Held("0", 1)
	w.s.Held("1", 0)
	for more := true; more; {
		first := w.fold("0")
		more = w.fold("1") || first
		w.now += time.Millisecond
	}
	if len(w.ask["1"]) == 0 {
		t.Fatal("nothing was asked of executor 1")
	}
	late, epoch := w.ask["1"], w.epochs["1"]
	mine := len(w.hand("0"))
	w.now = w.wake
	w.step()
	for w.fold("0") {
		w.now += time.Millisecond
	}
	if w.l.Accept("1", epoch, late) {
		t.Error("the late result was merged")
	}
	if mine += len(w.hand("0")); mine != 8 {
		t.Errorf("%d of 8 pieces are merged", mine)
	}
}

// TestAResultIsOfWhatWasLeased: a lease is over one split, and a number of its rows.
func TestAResultIsOfWhatWasLeased(t *testing.T) {
	w := newLeaseWorld(2, 2)
	w.step()
	l := w.l.all[0]
	rows := uint64(l.Rows)
	for _, c := range []struct {
		id, split uint32
		rows      uint64
		want      bool
	}{{l.ID, uint32(l.Split), rows, true}, {l.ID, uint32(l.Split) + 1, rows, false},
		{l.ID, uint32(l.Split), rows - 1, false}, {0, uint32(l.Split), rows, false},
		{9999, uint32(l.Split), rows, false}} {
		if got := w.l.Covers(c.id, c.split, c.rows); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
