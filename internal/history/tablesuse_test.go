package history

import (
	"testing"

	"github.com/volley-engine/volley/driver"
)

// TestUseOfSeveralLoopsAndProcesses: what workers have done adds up over loops, and over processes that have gone on
// with one; clocks add up over loops alone, as a resumed one has those of before.
func TestUseOfSeveralLoopsAndProcesses(t *testing.T) {
	t.Parallel()
	f := &Following{run: Run{Version: driver.LogVersion}}
	at := func(loop, iteration, clock int, reads int64) {
		f.turn(loop, iteration)
		f.used(&driver.LogTables{Clock: clock, Executors: []driver.LogTablesOn{{Name: "a", BusyNs: 10 * reads}},
			Workers: []driver.LogWorker{{0, int64(clock), reads, 1, 1}},
			Tables:  []driver.LogTable{{Name: "t", Reads: []int64{reads}, Sent: []int64{2}, Waits: 3}}})
	}
	check := func(clock int, reads, times int64) {
		t.Helper()
		u := f.run.Used
		if w := u.Workers[0]; u.Clock != clock || w[1] != int64(clock) || w[2] != reads || w[3] != times ||
			u.Tables[0].Reads[0] != reads || u.Tables[0].Waits != 3*times || u.Executors[0].BusyNs != 10*reads {
			t.Errorf("%+v, want clock %d and %d reads of %d processes", u, clock, reads, times)
		}
	}
	at(1, 1, 10, 100)
	at(1, 2, 20, 200)
	check(20, 200, 1)
	f.resumed()
	f.resumed() // of another pack, or of a process that came to nothing
	at(1, 3, 30, 90)
	check(30, 290, 2)
	at(2, 1, 5, 50)
	check(35, 340, 3)
	f.resumed()
	at(2, 2, 8, 20)
	check(38, 360, 4)
	f.turn(3, 1)
	at(3, 2, 4, 7)
	check(42, 367, 5)
}
