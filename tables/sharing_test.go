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
