package tables

import (
	"runtime"
	"testing"
)

// TestARunThatEndsWhileAWorkerFlushes: the worker finds out with the next thing that it does, though it had begun to
// send what it has added when the run ended, which takes away the sign that it is to look.
func TestARunThatEndsWhileAWorkerFlushes(t *testing.T) {
	for range 200 {
		p := tally(ASP())
		p.counts.Reshape(gangRows, gangColumns)
		p.sums.Reshape(gangRows, gangColumns)
		r, err := p.newRun(castOf(gangWorkers, 1, 1), everyone, 0, 5, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.startTables()
		w := r.workers[0]
		w.pacing = &pacing{}
		counts := r.tables[0].(*tableRun[int32])
		at, client := counts.access(w).(*Access[int32]), counts.clients[0]
		at.Row(0)
		client.machine.AskToFlush()
		client.mu.Lock() // the worker comes as far as this
		looked, over := w.moved.Load(), make(chan any)
		go func() {
			defer func() { over <- recover() }()
			at.Row(0)
			at.Row(0)
		}()
		for w.moved.Load() == looked {
			runtime.Gosched()
		}
		for range 50 {
			runtime.Gosched()
		}
		close(r.stopped)
		client.machine.AskToFlush()
		client.mu.Unlock()
		if what := <-over; what != (halt{}) {
			t.Fatalf("the worker goes on in a run that has ended: %v", what)
		}
	}
}
