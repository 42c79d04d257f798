package driver

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
)

// recordedUnder is a job of these options whose pack is open.
func recordedUnder(cfg JobConfig) *recorded {
	before := recordedConfig
	defer func() { recordedConfig = before }()
	recordedConfig = cfg
	return newRecorded()
}

// TestReportsAreToldWhileTheyAreAwaited: those of a step that goes on for much longer than a step may go without
// progress, since there is some, are gathered, but told in time.
func TestReportsAreToldWhileTheyAreAwaited(t *testing.T) {
	cfg := recordedConfig
	cfg.Sync.StepTimeout = 20 * time.Millisecond
	for _, rows := range []int{10, 19, 21, 60, 99} {
		r := recordedUnder(cfg)
		want := r.train(rows)
		if want == nil {
			t.Errorf("%d rows: the step does not end", rows)
			continue
		}
		for _, exact := range []bool{false, true} {
			again := NewRetelling(cfg, exact)
			again.Describe([]int64{100, 100}, nil, nil)
			steps, err := again.Tell(want.Reports)
			if err != nil || !reflect.DeepEqual(*StepLine(steps[0]), *StepLine(want)) {
				t.Errorf("%d rows, exactly %v: %v, %+v", rows, exact, err, steps)
			}
		}
	}
}

// TestActionsAreNotOnATape, but for what of them was stale.
func TestActionsAreNotOnATape(t *testing.T) {
	sizeOf := func(between ...Event) (*StepReport, int) {
		r := newRecorded()
		for _, ev := range between {
			r.now -= time.Millisecond // times are on the tape
			r.step(ev)
		}
		done := r.train(10)
		return done, len(done.Reports)
	}
	said := func(m *wire.ToDriver) Event { return Event{Message: &Message{From: "a", Body: m}} }
	_, want := sizeOf()
	done, got := sizeOf(Event{Call: &plan.CallRequest{Pack: -1, Args: make([][]byte, 1)}},
		said(&wire.ToDriver{Body: &wire.ToDriver_TaskProgress{TaskProgress: &wire.TaskProgress{Call: 1, Rows: 3}}}),
		said(&wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Call: 1}}}))
	if got != want || done.Counters.StaleReports != 0 {
		t.Errorf("%d bytes with an action, %d without", got, want)
	}
	stale := said(&wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Call: 7}}})
	done, _ = sizeOf(stale, stale, stale)
	again, err := retold(recordedConfig, done.Reports)
	if err != nil || done.Counters.StaleReports != 3 || again.Counters.StaleReports != 3 {
		t.Errorf("%+v, told again %+v (%v)", done.Counters, again, err)
	}
}

// TestWhatAPackGoesOnFromIsToldAgain: with its turns, where these are counted, and the row state.
func TestWhatAPackGoesOnFromIsToldAgain(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		cfg := recordedConfig
		cfg.FixedCursors = fixed
		r := recordedUnder(cfg)
		from := Restored{Steps: 4, Epoch: 9,
			Entries: []prioritizer.Entry{{Merged: 230, Whole: 2}, {Merged: 170, Whole: 1}},
			States:  []RestoredState{{Node: 3, Split: 1, Data: make([]byte, 5)}}}
		if !fixed {
			from.Entries[0].Cursor, from.Entries[1].Cursor = 30, 70
		}
		told := from
		r.step(Event{Restore: &told})
		want := r.train(10)
		again := NewRetelling(cfg, false)
		again.Describe([]int64{100, 100}, nil, nil)
		known := from
		known.Entries = slices.Clone(from.Entries)
		for i := range known.Entries {
			known.Entries[i].Whole = 0 // the log does not say
		}
		again.Resumed(&known)
		if _, err := again.Tell(want.Reports); err != nil || again.Awaits() != 0 {
			t.Errorf("fixed %v: %v", fixed, err)
			continue
		}
		got, all := again.job.Ledger(0), r.job.Ledger(0)
		if !fixed { // what is not counted in turns has none to go on from
			for i := range all.Entries {
				got.Entries[i].Whole, all.Entries[i].Whole = 0, 0
			}
		}
		if !reflect.DeepEqual(got, all) {
			t.Errorf("fixed %v: %+v, told again %+v", fixed, all, got)
		}
	}
}

// TestSoMuchIsKept of the reports of a step: an hundredth of what it sent, or a certain number of bytes; once a tape
// was full nothing is.
func TestSoMuchIsKept(t *testing.T) {
	for _, c := range []struct {
		size int
		sent int64
		kept bool
	}{
		{0, 0, true}, {leastKept, 0, true}, {leastKept + 1, 0, false},
		{leastKept + 1, (leastKept + 1) * keptShare, true},
		{leastKept + 1, (leastKept+1)*keptShare - 1, false}, {mostRecorded, mostRecorded * keptShare, true},
	} {
		tape := newTape(JobConfig{}, 0)
		tape.buf = make([]byte, c.size)
		buf, kept := tape.take(c.sent)
		if kept != c.kept || kept != (len(buf) == c.size) || tape.full == kept || tape.buf != nil {
			t.Errorf("%d bytes of a step that sent %d: %v", c.size, c.sent, kept)
		}
		tape.buf = []byte{1}
		if _, again := tape.take(0); again != c.kept {
			t.Errorf("after it: %v", again)
		}
	}
}

// TestAJobOfActionsAloneIsNotRecordedWithoutEnd.
func TestAJobOfActionsAloneIsNotRecordedWithoutEnd(t *testing.T) {
	for room, full := range map[int]bool{20: false, 0: true} {
		r := newRecorded()
		r.job.tape.buf = make([]byte, mostRecorded-room)
		r.step(Event{Drain: "nobody"})
		if tape := r.job.tape; tape.full != full || (tape.buf == nil) != full {
			t.Errorf("with room for %d bytes it is full: %v", room, tape.full)
		}
	}
}

// TestAttemptsOfLongAgoAreForgotten once there are many.
func TestAttemptsOfLongAgoAreForgotten(t *testing.T) {
	for n, want := range map[int]int{mostDropped: mostDropped, mostDropped + 1: 0} {
		r := newRecorded()
		for i := range n {
			r.job.dropped[attemptKey{attempt: i, step: 1 << 30}] = 1
		}
		r.step(Event{Step: &plan.StepRequest{Train: true}})
		if got := len(r.job.dropped); got != want {
			t.Errorf("of %d attempts %d are remembered", n, got)
		}
	}
}

// TestAClosedLogSaysThatLinesAreLost for which there was no room.
func TestAClosedLogSaysThatLinesAreLost(t *testing.T) {
	l, _ := markedLog(t)
	stop := disk.Fill(func(p string) bool { return p == l.f.Name() })
	defer stop()
	l.Write(&LogStep{Event: "step", Step: 4})
	if err := l.Err(); err != nil {
		t.Errorf("it may only wait: %v", err)
	}
	if err := l.Close(); fault.KindOf(err) != fault.NoResources {
		t.Errorf("%v", err)
	}
	if err := l.Err(); err == nil {
		t.Error("it says so once")
	}
}

// TestPassesOfTimeAreToldExactly where the clock is never late: what a job would have decided by itself is not
// left out.
func TestPassesOfTimeAreToldExactly(t *testing.T) {
	cfg := recordedConfig
	cfg.Sync.StepTimeout = 50 * time.Millisecond
	for late, same := range map[time.Duration]bool{10 * time.Millisecond: true, 49 * time.Millisecond: true,
		80 * time.Millisecond: false, time.Second: false} {
		r := recordedUnder(cfg)
		r.step(Event{Step: &plan.StepRequest{Train: true, Param: []byte("w")}})
		s := r.job.step
		r.now += late // nobody wakes the job
		var want *StepReport
		for split, id := range []plan.ExecutorID{"a", "b"} {
			a := s.assigned[split]
			c := &wire.Coverage{Split: uint32(split), Attempt: uint32(a.Attempt), Epoch: uint64(a.Epoch),
				Cursor: uint64(a.Cursor), Count: 100, Folded: 100}
			want = r.message(id, &wire.Result{Step: s.key, BusyNs: 1e6, Coverage: []*wire.Coverage{c}})
		}
		if want == nil {
			t.Fatalf("%v late: the step does not end", late)
		}
		for _, exact := range []bool{false, true} {
			again := NewRetelling(cfg, exact)
			again.Describe([]int64{100, 100}, nil, nil)
			steps, err := again.Tell(want.Reports)
			ok := err == nil && fmt.Sprintf("%+v", *StepLine(steps[0])) == fmt.Sprintf("%+v", *StepLine(want))
			if ok != (same || !exact) {
				t.Errorf("%v late, exactly %v: %v", late, exact, err)
			}
		}
	}
}
