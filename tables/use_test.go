package tables

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/tables/consistency"
)

// possible checks what a run says of its workers at a tick.
func possible(t *testing.T, c *clocks[float64, int64, tallied], m *moment) {
	t.Helper()
	spent := m.spent.and(c.earlier)
	u := c.run.used(m, spent.use)
	if u.Clock != m.clock || len(u.Workers) != gangWorkers || len(u.Tables) != 2 {
		t.Fatalf("at clock %d: %+v", m.clock, u)
	}
	for k, w := range u.Workers {
		if w.Clock < m.clock || w.Executor >= len(u.Executors) || w.Worked < 0 || w.Waited < 0 || w.Given > w.Shared {
			t.Errorf("at clock %d worker %d: %+v", m.clock, k, w)
		}
	}
	oldest := 0
	for _, of := range u.Tables {
		reads := int64(0)
		for age, n := range of.Reads {
			if reads += n; n > 0 {
				oldest = max(oldest, age)
			}
		}
		if reads < int64(gangWorkers*m.clock) || of.Rows < gangRows/2 || of.Rows > gangRows || of.Bytes < 8*of.Rows {
			t.Errorf("at clock %d of the table %q: %d reads, %+v", m.clock, of.Name, reads, of)
		}
		here, apart := c.run.out == nil, c.run.out != nil && len(c.run.executors) > 1
		if here && of.Sent != [plan.SentKinds]int64{} || apart && of.Sent[plan.SentUpdates] == 0 {
			t.Errorf("at clock %d of the table %q, %d executors have sent %v", m.clock, of.Name,
				len(c.run.executors), of.Sent)
		}
	}
	if oldest != min(int(spent.Stale), plan.Ages-1) {
		t.Errorf("reads have missed %d clocks, and %d", oldest, spent.Stale)
	}
}

// TestUseAddsUp: what workers did in a run that was broken off counts, and where they are is as they say last.
func TestUseAddsUp(t *testing.T) {
	w := plan.WorkerUse{Executor: 1, Clock: 3, Worked: time.Second, Waited: 2, Waits: 3,
		Shared: 40, Given: 5, Taken: 6}
	before := plan.WorkerUse{Executor: 0, Clock: 4, Worked: time.Second, Waited: 1, Waits: 1,
		Shared: 4, Given: 1, Taken: 2}
	table := tableUse{Reads: consistency.Reads{ByAge: [consistency.Ages]int64{1, 2}, Waited: 3},
		sent: [plan.SentKinds]int64{7}}
	now := spending{use: use{helping: 1, workers: []plan.WorkerUse{w}}}
	got := now.and(spending{use: use{helping: 2, states: 3, tables: []tableUse{table},
		workers: []plan.WorkerUse{before}}})
	got = got.and(spending{use: use{tables: []tableUse{table}}})
	want := plan.WorkerUse{Executor: 1, Clock: 3, Worked: 2 * time.Second, Waited: 3, Waits: 4, Shared: 44, Given: 6,
		Taken: 8}
	if got.workers[0] != want {
		t.Errorf("%+v", got.workers[0])
	}
	if of := got.tables[0]; got.helping != 3 || got.states != 3 || of.ByAge[1] != 4 ||
		of.Waited != 6 || of.sent[0] != 14 {
		t.Errorf("%+v", got.use)
	}
	if table.ByAge[1] != 2 {
		t.Error("what is added is changed")
	}
}

// TestUseOverTheWire: what a member says of its workers is what the job's process reads; of an older member nothing.
func TestUseOverTheWire(t *testing.T) {
	said := plan.WorkerUse{Worked: 1, Waited: 2, Waits: 3, Shared: 4, Given: 5, Taken: 6}
	u := use{helping: 7, states: 8, tables: make([]tableUse, 2)}
	for k := range u.tables[1].ByAge {
		u.tables[1].ByAge[k] = int64(100 + k)
	}
	u.tables[0].Waited, u.tables[1].sent[plan.SentKinds-1] = 9, 1<<40
	w := &writer{}
	w.use(said, u)
	r := &reader{in: w.buf}
	got, of := r.use(2)
	if r.err != nil || len(r.in) > 0 || got != said || of.helping != 7 || of.states != 8 ||
		!slices.Equal(of.tables, u.tables) {
		t.Errorf("%+v and %+v with %d bytes left, %v", got, of, len(r.in), r.err)
	}
	if got, of = (&reader{}).use(2); got != (plan.WorkerUse{}) || len(of.tables) != 2 {
		t.Errorf("%+v and %+v of an older member", got, of)
	}
	for cut := 1; cut < len(w.buf); cut++ {
		if r := (&reader{in: w.buf[:cut]}); true {
			if r.use(2); r.err == nil {
				t.Errorf("%d bytes of %d are taken", cut, len(w.buf))
			}
		}
	}
	below := &writer{}
	below.ints(-1, 0, 0)
	if r := (&reader{in: below.buf}); true {
		if r.use(0); r.err == nil {
			t.Error("less than no time is taken")
		}
	}
}

// newest checks that what shards have now is what they had at a tick, and of each worker perhaps some of what came
// after.
func (p *tallies) newest(ctx context.Context, t *testing.T, c *clocks[float64, int64, tallied], m *moment) {
	t.Helper()
	tick := &Tick{run: c.run, of: m}
	looks := make(chan error, 4)
	for range cap(looks) - 1 { // beside each other
		go func() {
			_, err := p.counts.Newest(ctx, tick)
			looks <- err
		}()
	}
	v, err := p.counts.Newest(ctx, tick)
	looks <- err
	for range cap(looks) {
		if err := <-looks; err != nil {
			t.Fatal(err)
		}
	}
	all := tallyCounts()
	for row := range gangRows {
		sum := int32(0)
		for column := range gangColumns {
			now, then := v.At(row).At(column), p.counts.At(tick, row).At(column)
			if sum += now; now < then {
				t.Errorf("clock %d, row %d has %d now, and had %d", m.clock, row, now, then)
			}
		}
		if sum > all[row] {
			t.Errorf("clock %d, row %d has been seen %d times, of %d", m.clock, row, sum, all[row])
		}
	}
}
