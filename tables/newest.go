package tables

import (
	"context"
	"fmt"
	"sync"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// View is the rows of a table as its shards had them when they were asked.
type View[T Number] struct {
	table *Table[T]
	rows  map[consistency.Row]Row[T]
}

// At returns a row. It is not to be changed.
func (v *View[T]) At(row int) Row[T] {
	if uint(row) >= uint(v.table.shape.Rows) {
		v.table.missing("row", row, v.table.shape.Rows)
	}
	return v.table.whole(v.rows[consistency.Row(row)])
}

// Newest returns the table's rows as its shards have them now, which may be later than the tick's: with updates of
// clocks that not all workers have finished, of each worker those up to some point (an approximate snapshot: LazyTable,
// section 3.3). Workers do not wait meanwhile. It is for looking at how training goes on; results, and what a job goes
// on from, are of At, which has exactly the tick's clocks. Under an exact model each shard has whole clocks. Of shards
// that do not run any more, as where an executor was lost, and workers begin again from the tick, it is the same as At.
// Several may look at once. The error is that of the context, or of a run that goes on no more.
func (t *Table[T]) Newest(ctx context.Context, tick *Tick) (*View[T], error) {
	of := t.in(tick)
	v := &View[T]{table: t, rows: map[consistency.Row]Row[T]{}}
	for s := range of.o.Shards {
		rows, err := of.newest(ctx, tick, s)
		if err != nil {
			return nil, fault.New(fault.KindOf(err), "look at", fmt.Sprintf("table %q", t.name), err)
		}
		for k, row := range rows {
			v.rows[k] = row
		}
	}
	return v, nil
}

// newest returns the rows of a shard.
func (of *tableRun[T]) newest(ctx context.Context, tick *Tick, s int) (map[consistency.Row]Row[T], error) {
	then := tick.of.snapshots[of.index][s].(*consistency.Snapshot[Row[T]]).Values
	if s >= len(of.machine) { // it does not run any more
		return then, nil
	}
	number, got := of.looks[s].begin()
	defer of.looks[s].end(number)
	if m := of.machine[s]; m != nil {
		of.shards[s].post(func() []consistency.Command[Row[T]] {
			got <- m.Approximate()
			return nil
		})
	} else {
		of.run.out.post(s, func(w *writer) { w.begin(aLook, of.index, s); w.int(number); w.end() })
	}
	select {
	case rows := <-got:
		return rows, nil
	case <-of.run.stopped:
		if err := of.run.failed(); err != nil && !lost(err) {
			return nil, err
		}
		return then, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// looking is who waits for what a shard has, by the numbers of their looks.
type looking[T Number] struct {
	mu     sync.Mutex
	number int
	waits  map[int]chan map[consistency.Row]Row[T]
}

func (l *looking[T]) begin() (number int, got chan map[consistency.Row]Row[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits == nil {
		l.waits = map[int]chan map[consistency.Row]Row[T]{}
	}
	l.number++
	got = make(chan map[consistency.Row]Row[T], 1)
	l.waits[l.number] = got
	return l.number, got
}

func (l *looking[T]) end(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waits, number)
}

// answer takes what a shard of another process has.
func (l *looking[T]) answer(number int, rows map[consistency.Row]Row[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := l.waits[number]; got != nil && len(got) == 0 {
		got <- rows
	}
}

// look sends the job's process what a shard has now.
func (of *tableRun[T]) look(s, number int) {
	m := of.machine[s]
	of.shards[s].post(func() []consistency.Command[Row[T]] {
		now := &consistency.Snapshot[Row[T]]{Age: m.Age(), Values: m.Approximate()}
		of.post(rdd.Leader, plan.SentSnapshots, func(w *writer) {
			w.begin(aNewest, of.index, s)
			w.int(number)
			of.addSnapshot(w, now)
			w.end()
		})
		return nil
	})
}
