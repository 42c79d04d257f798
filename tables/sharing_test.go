package tables

import (
	"runtime"
	"testing"
	"time"

	"github.com/volley-engine/volley/tables/reassign"
)

// waiting returns a run of two workers on one slot, of which the first waits for helpers and the second was asked to
// help: by a function.
func waiting(do func(r *run)) (r *run, w, o *worker) {
	r = newRun(castOf(2, 1, 1), everyone, 0, 5, 1)
	r.timeout = time.Hour
	r.reassigns(DefaultHelp(), &hands{do: func(*worker, Part, []byte) ([]byte, error) {
		do(r)
		return nil, nil
	}})
	w, o = r.workers[0], r.workers[1]
	w.running, w.pacing, o.running = true, &pacing{}, true
	t := reassign.Task{Helpee: 0, Life: 1, Clock: 1, Range: reassign.Range{From: 3, To: 5}}
	o.sharing.todo = append(o.sharing.todo, task{Command: reassign.Command{Help: &t}})
	return r, w, o
}

// TestAWorkerThatWaitsIsNotStuckWhileAnotherHelps: the watch looks on while the other one is at it.
func TestAWorkerThatWaitsIsNotStuckWhileAnotherHelps(t *testing.T) {
	looked := 0
	r, w, o := waiting(func(r *run) {
		look := r.newWatch()
		for range 2 * looks {
			look.lookAt(r.executors[0], r.workers[0])
			looked++
		}
	})
	r.attendMeanwhile(w, o)
	if err := r.failed(); err != nil || looked == 0 || o.running || w.waits.Load() {
		t.Errorf("%v after %d looks", err, looked)
	}
}

// TestAHelperThatEndsItsGoroutineEndsTheRun, in the goroutine of another worker that waits, too.
func TestAHelperThatEndsItsGoroutineEndsTheRun(t *testing.T) {
	r, w, _ := waiting(func(*run) { runtime.Goexit() })
	r.workers[1].running = false
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.shared(w)
	}()
	<-over
	if r.failed() == nil {
		t.Error("the run goes on")
	}
}

// TestAMessageBetweenWorkersThatCannotBeIsRefused: numbers that are none, and ranges that end before they begin.
func TestAMessageBetweenWorkersThatCannotBeIsRefused(t *testing.T) {
	r, _, _ := waiting(func(*run) {})
	for _, task := range []reassign.Task{
		{Helpee: 1, Life: 1, Number: -1}, {Helpee: 7, Life: 1}, {Helpee: 1, Life: 9}, {Helpee: 1, Life: 1, Clock: 99},
		{Helpee: 1, Life: 1, Range: reassign.Range{From: 3, To: 1}},
		{Helpee: 1, Life: 1, Range: reassign.Range{From: -3, To: 1}},
	} {
		to := &writer{}
		to.help(0, reassign.Begun{Helper: 1, Task: task}, nil)
		from := &reader{}
		if err := from.feed(to.buf, func(_ kind, _, to int) { r.receiveHelp(from, to) }); err == nil {
			t.Errorf("%+v is taken", task)
		}
	}
	to, from := &writer{}, &reader{}
	to.help(0, reassign.Begun{Helper: 1, Task: reassign.Task{Helpee: 0, Life: 1, Clock: 1}}, []byte{1})
	if err := from.feed(to.buf, func(_ kind, _, to int) { r.receiveHelp(from, to) }); err != nil {
		t.Error(err)
	}
}

// elapsed counts the rows whose time has passed, and looks around before it does.
type elapsed struct {
	rows int64
	look func()
}

func (e *elapsed) Worked(rows int64)    { e.look(); e.rows += rows }
func (*elapsed) Waited(_ time.Duration) {}

// TestWorkHasTakenItsTimeBeforeMessagesAreLookedAt: a slot of few rows a clock would be late by all of them, and would
// tell of them before they are done.
func TestWorkHasTakenItsTimeBeforeMessagesAreLookedAt(t *testing.T) {
	r, w, o := waiting(func(r *run) { r.workers[1].did(r, 7) })
	passed := &elapsed{look: func() {
		if o.done.Taken > 0 || w.sharing.finished {
			t.Error("what takes time yet is told")
		}
	}}
	w.pacing.Pacer = passed
	r.attendMeanwhile(w, o)
	if passed.rows != 7 || o.done.Taken == 0 {
		t.Errorf("a helper has folded 7 rows, and time for %d has passed when it says so", passed.rows)
	}
	passed.rows, o.done.Taken = 0, 0
	r.share(w, 20, func(from, to int) {
		if int(passed.rows) != from {
			t.Errorf("time for %d rows has passed at row %d", passed.rows, from)
		}
		w.did(r, float64(to-from))
	})
	if err := r.failed(); err != nil || passed.rows != 20 || !w.sharing.finished {
		t.Errorf("time for %d of 20 rows has passed, %v", passed.rows, err)
	}
	w.sharing.finished = false
	back := task{Command: reassign.Command{Own: &reassign.Task{Range: reassign.Range{From: 15, To: 20}}}}
	if err := r.do(w, back, func(from, to int) { w.did(r, float64(to-from)) }); err != nil || passed.rows != 25 {
		t.Errorf("5 rows that came back take the time of %d, %v", passed.rows-20, err)
	}
}

// TestAClockEndsWhenItHasTakenItsTime: workers of all models are told of it then, and not before.
func TestAClockEndsWhenItHasTakenItsTime(t *testing.T) {
	r := newRun(castOf(1, 1, 1), everyone, 0, 5, 1)
	w := r.workers[0]
	passed := &elapsed{look: func() {
		if len(r.moments) > 0 {
			t.Error("a clock's end is told before it has taken its time")
		}
	}}
	w.pacing = &pacing{Pacer: passed}
	r.work = func(w *worker) ([]byte, error) {
		w.did(r, 9)
		return nil, nil
	}
	if err := r.clock(w); err != nil || passed.rows != 9 {
		t.Errorf("9 rows take the time of %d, %v", passed.rows, err)
	}
}

// TestAWorkerThatWaitsForSharedNotesIsNotStuck: another one makes them, and gives the signs.
func TestAWorkerThatWaitsForSharedNotesIsNotStuck(t *testing.T) {
	r := newRun(castOf(2, 1, 1), everyone, 0, 5, 1)
	w := r.workers[0]
	c := &Clock[int, int, int]{run: r, w: w}
	w.executor.noting.Lock()
	made := make(chan any)
	go func() { made <- c.SharedNotes(func() any { return 7 }) }()
	for end := time.Now().Add(time.Minute); !w.waits.Load(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it is taken for one that works")
		}
	}
	w.executor.noting.Unlock()
	if got := <-made; got != 7 || w.waits.Load() {
		t.Errorf("it has %v, and waits: %v", got, w.waits.Load())
	}
}
