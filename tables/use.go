package tables

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/tables/consistency"
)

// spending is how the slots of an executor have spent their time, what became of its workers' items, and what these
// have done with tables.
type spending struct {
	busy          time.Duration
	waited        time.Duration // for workers that may begin, or within their clocks
	items, helped int           // that its workers share, and of these what others have done
	consistency.Spread
	use
}

func (s spending) and(o spending) spending {
	return spending{s.busy + o.busy, s.waited + o.waited, s.items + o.items, s.helped + o.helped, s.Max(o.Spread),
		s.use.and(o.use)}
}

// use is what workers have done with tables.
type use struct {
	helping, states int              // bytes
	tables          []tableUse       // by table
	workers         []plan.WorkerUse // by worker, of those that have said it
	executors       []plan.ExecutorUse
	older           bool // some is of an older process, which does not say it
}

// tableUse is what workers have read of a table, and sent.
type tableUse struct {
	consistency.Reads
	sent [plan.SentKinds]int64
}

// and adds what was done in an earlier run, or by others.
func (u use) and(o use) use {
	u.helping, u.states, u.older = u.helping+o.helping, u.states+o.states, u.older || o.older
	u.tables = append(slices.Clone(u.tables), make([]tableUse, max(0, len(o.tables)-len(u.tables)))...)
	for i := range o.tables {
		t := &u.tables[i]
		for age, n := range o.tables[i].ByAge {
			t.ByAge[age] += n
		}
		for kind, n := range o.tables[i].sent {
			t.sent[kind] += n
		}
		t.Waited += o.tables[i].Waited
	}
	u.workers = append(slices.Clone(u.workers), make([]plan.WorkerUse, max(0, len(o.workers)-len(u.workers)))...)
	for i, w := range o.workers {
		u.workers[i] = workedBoth(u.workers[i], w)
	}
	return u
}

// workedBoth adds what a worker did in an earlier run, to what it has done in one that says where it is.
func workedBoth(w, before plan.WorkerUse) plan.WorkerUse {
	w.Worked, w.Waited, w.Waits = w.Worked+before.Worked, w.Waited+before.Waited, w.Waits+before.Waits
	w.Shared, w.Given, w.Taken = w.Shared+before.Shared, w.Given+before.Given, w.Taken+before.Taken
	return w
}

// noteUse notes, at the end of a clock, what its worker has done so far, and those of its executor with tables.
func (r *run) noteUse(w *worker) {
	x := w.executor
	x.mu.Lock() // another worker may note its own meanwhile
	defer x.mu.Unlock()
	var spread consistency.Spread
	var tables []tableUse
	waits := int64(0)
	for _, t := range r.tables {
		s, u, n := t.used(w)
		spread, tables, waits = spread.Max(s), append(tables, u), waits+n
	}
	x.Spread, x.tables = x.Spread.Max(spread), tables
	w.said = w.done
	w.said.Clock, w.said.Waits = w.clock+1, waits
	w.said.Worked, w.said.Waited = w.said.Worked+r.now()-w.began-w.paused, w.said.Waited+w.paused
}

// spent returns how executors have spent their time, and what their workers have done.
func (r *run) spent() (all spending) {
	for _, x := range r.executors {
		x.mu.Lock()
		all = all.and(x.spending)
		all.executors = append(all.executors, plan.ExecutorUse{Name: r.name(x.id), Slots: min(x.slots, len(x.workers)),
			Busy: x.busy, Waited: x.waited})
		for _, w := range x.workers {
			all.workers = append(all.workers, make([]plan.WorkerUse, max(0, int(w.id)+1-len(all.workers)))...)
			if all.workers[w.id] = w.said; w.executor.here { // also after its last clock
				all.workers[w.id].Taken = w.done.Taken
			}
			all.workers[w.id].Executor = x.id
		}
		x.mu.Unlock()
	}
	leader := use{}
	for _, t := range r.tables {
		leader.tables = append(leader.tables, tableUse{sent: t.sentBy(len(r.executors))})
	}
	all.use = all.use.and(leader)
	return all
}

// name returns that of an executor.
func (r *run) name(e int) string {
	if e < len(r.names) {
		return r.names[e]
	}
	return strconv.Itoa(e)
}

// used returns what was done in all runs, and what tables are, after a number of clocks; nil where a process has not
// said it.
func (r *run) used(m *moment, u use) *plan.TablesUse {
	if u.older {
		return nil
	}
	out := &plan.TablesUse{Clock: m.clock, Executors: u.executors, Workers: u.workers, Helping: int64(u.helping),
		States: int64(u.states)}
	for i, t := range r.tables {
		of := plan.TableUse{Name: t.name(), Slack: t.slack(), Reads: u.tables[i].ByAge, Waits: u.tables[i].Waited,
			Sent: u.tables[i].sent}
		if t.slack() >= int(consistency.Unbounded) {
			of.Slack = -1
		}
		of.Rows, of.Bytes = t.size(m.snapshots[i])
		out.Tables = append(out.Tables, of)
	}
	return out
}

// size returns how many rows snapshots of a table have, and how many bytes they take in memory.
func (of *tableRun[T]) size(snapshots []any) (rows, bytes int64) {
	for _, s := range snapshots {
		for _, v := range s.(*consistency.Snapshot[Row[T]]).Values {
			if v.Values != nil {
				rows, bytes = rows+1, bytes+int64(of.sums.Bytes(v))
			}
		}
	}
	return rows, bytes
}

// used returns how far the workers of a worker's executor were from each other, what they have read, and sent, of the
// table, and how often the worker had to wait for it.
func (of *tableRun[T]) used(w *worker) (consistency.Spread, tableUse, int64) {
	c := of.clients[w.executor.id]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Spread(), tableUse{c.machine.Reads(), of.sentBy(w.executor.id)}, c.machine.Seat(w.id).Waited()
}

func (of *tableRun[T]) name() string { return of.table.name }

// sentBy returns the bytes of the table that a process has sent: an executor, or after them the job's.
func (of *tableRun[T]) sentBy(process int) [plan.SentKinds]int64 { return of.sent[process].all() }

// counts notes that a process has sent a number of bytes.
func (of *tableRun[T]) counts(from int, kind plan.SentKind, bytes int) {
	if from < 0 { // the job's process
		from = len(of.sent) - 1
	}
	of.sent[from][kind].Add(int64(bytes))
}

// post sends a message of the table to another process.
func (of *tableRun[T]) post(to int, kind plan.SentKind, write func(w *writer)) {
	of.counts(of.run.self, kind, of.run.out.post(to, write))
}

// use writes what workers of a process, and the one that a message is of, have done.
func (w *writer) use(of plan.WorkerUse, u use) {
	w.ints(int(of.Worked), int(of.Waited), int(of.Waits), int(of.Shared), int(of.Given), int(of.Taken), u.helping,
		u.states)
	for _, t := range u.tables {
		for _, n := range t.ByAge {
			w.int(int(n))
		}
		w.int(int(t.Waited))
		for _, n := range t.sent {
			w.int(int(n))
		}
	}
}

// use reads what writer.use has written, of a number of tables; of an older process, which does not, nothing.
func (r *reader) use(tables int) (of plan.WorkerUse, u use) {
	if len(r.in) == 0 {
		return of, use{tables: make([]tableUse, tables), older: true}
	}
	of = plan.WorkerUse{Worked: time.Duration(r.count()), Waited: time.Duration(r.count()), Waits: r.count(),
		Shared: r.count(), Given: r.count(), Taken: r.count()}
	u = use{helping: int(r.count()), states: int(r.count())}
	for range tables {
		t := tableUse{}
		for age := range t.ByAge {
			t.ByAge[age] = r.count()
		}
		t.Waited = r.count()
		for kind := range t.sent {
			t.sent[kind] = r.count()
		}
		u.tables = append(u.tables, t)
	}
	return of, u
}

// count reads a number that is none below 0.
func (r *reader) count() int64 {
	n := r.int()
	if n < 0 {
		_ = r.corrupt()
		return 0
	}
	return int64(n)
}

// traffic counts the bytes that a process has sent of a table.
type traffic [plan.SentKinds]atomic.Int64

func (s *traffic) all() (out [plan.SentKinds]int64) {
	for kind := range s {
		out[kind] = s[kind].Load()
	}
	return out
}

// kindOf returns what a message of a table's machines is, and how it is counted.
func kindOf[T Number](message any, unasked bool) plan.SentKind {
	switch message.(type) {
	case consistency.Batch[Row[T]]:
		return plan.SentUpdates
	case consistency.Read, consistency.Drop, consistency.Seen:
		return plan.SentAsked
	case consistency.Value[Row[T]]:
		if unasked {
			return plan.SentPushed
		}
		return plan.SentRows
	}
	return plan.SentProgress
}
