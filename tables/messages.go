package tables

import (
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/tables/consistency"
)

// write encodes a message of a table's machine to one of another process.
func (of *tableRun[T]) write(w *writer, to int, message any) {
	switch m := message.(type) {
	case consistency.Batch[Row[T]]:
		w.begin(aBatch, of.index, to)
		of.writeBatch(w, m)
	case consistency.Read:
		w.begin(aRead, of.index, to)
		w.ints(int(m.Client), int(m.Row), int(m.Age), m.Watch)
	case consistency.Drop:
		w.begin(aDrop, of.index, to)
		w.ints(int(m.Client), int(m.Row), m.Watch)
	case consistency.Seen:
		w.begin(aSeen, of.index, to)
		w.ints(int(m.Client), int(m.Row), m.Watch, m.Version)
	case consistency.Value[Row[T]]:
		w.begin(aValue, of.index, to)
		w.ints(int(m.Row), m.Shard, m.Epoch, m.Watch, m.Version, int(m.Age))
		addRow(w, m.Value)
		w.all(m.Applied)
	case consistency.Taken:
		w.begin(aTaken, of.index, to)
		w.ints(m.Shard, m.Epoch, int(m.Worker), int(m.Life), m.Number)
	case consistency.Synced:
		w.begin(aSynced, of.index, to)
		w.ints(m.Shard, m.Epoch, int(m.Worker), int(m.Life), m.Number)
	case consistency.Have:
		w.begin(aHave, of.index, to)
		w.ints(m.Shard, m.Epoch, int(m.Worker), int(m.Life), int(m.Clock))
	case consistency.Saved:
		w.begin(aSaved, of.index, to)
		w.ints(m.Shard, m.Epoch, int(m.Age))
	case consistency.Passed:
		w.begin(aPassed, of.index, to)
		w.ints(m.Shard, m.Epoch, int(m.Age))
	default:
		of.run.fail(fault.Newf(fault.Internal, "send", "a message of a table", "%T is none", message))
		return
	}
	w.end()
}

// writeComplete encodes what the bookkeeper says of how far all are.
func (of *tableRun[T]) writeComplete(w *writer, k kind, to int, m consistency.Complete) {
	w.begin(k, of.index, to)
	w.ints(m.Era, int(m.Age), int(m.Kept))
	w.end()
}

func (w *writer) ints(all ...int) {
	for _, x := range all {
		w.int(x)
	}
}

func (of *tableRun[T]) writeBatch(w *writer, b consistency.Batch[Row[T]]) {
	ends := 0
	if b.Ends {
		ends = 1
	}
	w.ints(int(b.Client), int(b.Worker), int(b.Life), int(b.Clock), b.Number, ends, len(b.Updates))
	last := 0
	for _, u := range b.Updates { // in the order of their rows
		w.int(int(u.Row) - last)
		last = int(u.Row)
		addRow(w, u.Delta)
	}
}

// receive takes a message for a machine of this process.
func (of *tableRun[T]) receive(r *reader, k kind, to int) {
	switch k {
	case aBatch, aRead, aDrop, aSeen, completeForShard:
		if m := of.forShard(r, k); r.err == nil && of.hasShard(r, to) {
			of.shards[to].post(m)
		}
	case aValue, aTaken, aSynced, completeForClient:
		m := of.forClient(r, k)
		if to < 0 || to >= len(of.clients) || of.clients[to] == nil {
			_ = r.corrupt()
		} else if r.err == nil {
			of.clients[to].post(m)
		}
	case aHave, aSaved, aPassed:
		if m := of.forBookkeeper(r, k); r.err == nil && of.keeper != nil {
			of.keeper.post(m)
		}
	case aShard:
		if s := of.readSnapshot(r); r.err == nil && of.hasShard(r, to) {
			of.from[to] = s
		}
	case aLook:
		if number := r.int(); r.err == nil && of.hasShard(r, to) {
			of.look(to, number)
		}
	case aNewest:
		number := r.int()
		if s := of.readSnapshot(r); r.err == nil && to >= 0 && to < len(of.looks) {
			of.looks[to].answer(number, s.Values)
		}
	case aSnapshot:
		if s := of.readSnapshot(r); r.err == nil && to >= 0 && to < of.o.Shards {
			of.run.saved(int(s.Age), func(m *moment) { m.snapshots[of.index][to] = s })
		}
	default:
		_ = r.corrupt()
	}
}

func (of *tableRun[T]) hasShard(r *reader, s int) bool {
	if s < 0 || s >= of.o.Shards || !of.run.executors[s].here {
		_ = r.corrupt()
		return false
	}
	return true
}

func (of *tableRun[T]) forShard(r *reader, k kind) any {
	switch k {
	case aBatch:
		return of.readBatch(r)
	case aRead:
		return consistency.Read{Client: r.client(of.o), Row: of.readRow(r), Age: r.age(of.o), Watch: r.int()}
	case aDrop:
		return consistency.Drop{Client: r.client(of.o), Row: of.readRow(r), Watch: r.int()}
	case aSeen:
		return consistency.Seen{Client: r.client(of.o), Row: of.readRow(r), Watch: r.int(), Version: r.int()}
	}
	return r.complete(of.o)
}

func (of *tableRun[T]) forClient(r *reader, k kind) any {
	switch k {
	case aValue:
		return consistency.Value[Row[T]]{Row: of.readRow(r), Shard: r.within(of.o.Shards), Epoch: r.int(),
			Watch: r.int(), Version: r.int(), Age: r.age(of.o), Value: rowOf[T](r, of.table.shape.Columns),
			Applied: r.all()}
	case aTaken:
		return consistency.Taken{Shard: r.within(of.o.Shards), Epoch: r.int(), Worker: r.worker(of.o), Applied: r.one()}
	case aSynced:
		return consistency.Synced{Shard: r.within(of.o.Shards), Epoch: r.int(), Worker: r.worker(of.o),
			Applied: r.one()}
	}
	return r.complete(of.o)
}

func (of *tableRun[T]) forBookkeeper(r *reader, k kind) any {
	shard, epoch := r.within(of.o.Shards), r.int()
	switch k {
	case aHave:
		return consistency.Have{Shard: shard, Epoch: epoch, Worker: r.worker(of.o), Life: consistency.Life(r.within(2)),
			Clock: r.age(of.o)}
	case aSaved:
		return consistency.Saved{Shard: shard, Epoch: epoch, Age: r.age(of.o)}
	}
	return consistency.Passed{Shard: shard, Epoch: epoch, Age: r.age(of.o)}
}

func (r *reader) complete(o consistency.Options) consistency.Complete {
	return consistency.Complete{Era: r.within(1), Age: r.age(o), Kept: r.age(o)}
}

// age reads a number of clocks: none is greater than that of the run's last.
func (r *reader) age(o consistency.Options) consistency.Clock {
	return consistency.Clock(r.within(int(o.Last) + 1))
}

// client reads the number of a client: there is one for each shard.
func (r *reader) client(o consistency.Options) consistency.Client {
	return consistency.Client(r.within(o.Shards))
}

func (r *reader) worker(o consistency.Options) consistency.Worker {
	return consistency.Worker(r.within(o.Workers))
}

func (of *tableRun[T]) readRow(r *reader) consistency.Row {
	return consistency.Row(r.within(of.table.shape.Rows))
}

func (of *tableRun[T]) readBatch(r *reader) any {
	b := consistency.Batch[Row[T]]{Client: r.client(of.o), Worker: r.worker(of.o), Life: consistency.Life(r.within(2)),
		Clock: r.age(of.o), Number: r.int(), Ends: r.int() == 1}
	n := r.int()
	if n < 0 || n > len(r.in) {
		_ = r.corrupt()
		return b
	}
	b.Updates = make([]consistency.Update[Row[T]], n)
	row := 0
	for i := range b.Updates {
		if row += r.int(); row < 0 || row >= of.table.shape.Rows || r.err != nil {
			_ = r.corrupt()
			return b
		}
		b.Updates[i] = consistency.Update[Row[T]]{Row: consistency.Row(row), Delta: rowOf[T](r, of.table.shape.Columns)}
	}
	return b
}

// writeSnapshot encodes what a shard has after a number of clocks, or begins from.
func (of *tableRun[T]) writeSnapshot(w *writer, k kind, shard int, snapshot any) {
	w.begin(k, of.index, shard)
	of.addSnapshot(w, snapshot.(*consistency.Snapshot[Row[T]]))
	w.end()
}

func (of *tableRun[T]) addSnapshot(w *writer, s *consistency.Snapshot[Row[T]]) {
	rows := keptOf[T]([]any{s})
	w.ints(int(s.Age), len(rows.Rows))
	last := 0
	for i, row := range rows.Rows {
		w.int(int(row) - last)
		last = int(row)
		addRow(w, rows.Of[i])
	}
}

func (of *tableRun[T]) readSnapshot(r *reader) *consistency.Snapshot[Row[T]] {
	age, n := r.age(of.o), r.int()
	s := of.snapshot(age)
	row := 0
	for range n {
		if row += r.int(); row < 0 || row >= of.table.shape.Rows || r.err != nil {
			_ = r.corrupt()
			return s
		}
		s.Values[consistency.Row(row)] = rowOf[T](r, of.table.shape.Columns)
	}
	return s
}
