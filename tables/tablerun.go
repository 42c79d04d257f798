package tables

import (
	"sync"
	"time"

	"github.com/volley-engine/volley/tables/consistency"
)

// tableOf is a table's part of a run, whatever its type.
type tableOf interface {
	access(w *worker) any
	mayBegin(w *worker) bool
	finish(w *worker)
	start()
	tick()
	encode(snapshots []any) ([]byte, error)
	cells(snapshots []any) [][]float64
	restore(raw []byte) error
	restored() []any
	slack() int
	halt()
}

// tableRun is a table that workers run on: a client for each executor, shards, and who knows how far all are. A machine
// has a mailbox: who posts to one that is idle steps it, so that nothing waits for another goroutine.
type tableRun[T Number] struct {
	run     *run
	index   int
	table   *Table[T]
	o       consistency.Options
	sums    *sums[T]
	clients []*clientRun[T]
	shards  []*mailbox
	machine []*consistency.Shard[Row[T]]
	book    *consistency.Bookkeeper
	keeper  *mailbox
	blank   []T                             // a dense row of zeros, which all share
	from    []*consistency.Snapshot[Row[T]] // of a run that is continued, by shard
}

// clientRun is the client of an executor. Its workers use it, too, under the lock.
type clientRun[T Number] struct {
	mailbox
	mu      sync.Mutex
	machine *consistency.ClientOf[Row[T]]
}

const (
	again    = time.Second // until a message is sent again; within a process none is lost
	patience = 5 * time.Minute
	ticks    = 2 * time.Millisecond // between flushes of eager models
)

func newTableRun[T Number](r *run, index int, t *Table[T]) *tableRun[T] {
	of := &tableRun[T]{run: r, index: index, table: t, sums: newSums[T](t.shape.Columns, t.shape.Sparse)}
	of.o = consistency.Options{Model: t.model, Workers: len(r.workers), Shards: len(r.executors), Again: again,
		Patience: patience, Together: true, Every: consistency.Clock(r.every), Last: consistency.Clock(r.last),
		Aggressive: true}
	if !t.shape.Sparse {
		of.blank = make([]T, t.shape.Columns)
	}
	of.from = make([]*consistency.Snapshot[Row[T]], of.o.Shards)
	return of
}

// start begins all machines, at the clock that the run begins with.
func (of *tableRun[T]) start() {
	var ids []consistency.Client
	for e := range of.run.executors {
		ids = append(ids, consistency.Client(e))
		c := &clientRun[T]{machine: consistency.NewClient(consistency.Client(e), of.o, of.sums)}
		c.step = func(msg any) {
			of.ask(c, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
				return m.Step(msg, of.run.now())
			})
		}
		of.clients = append(of.clients, c)
	}
	of.book = consistency.NewBookkeeper(of.o, ids, func(w consistency.Worker) consistency.Client {
		return consistency.Client(of.run.workers[w].executor.id)
	})
	of.keeper = &mailbox{step: func(m any) { of.send(of.book.Step(m, of.run.now())) }}
	for s := range of.o.Shards {
		b := consistency.Beginning{Shard: s, Epoch: 1, Age: consistency.Clock(of.run.first)}
		m := consistency.NewShard(b, of.o, of.sums, of.from[s])
		of.machine = append(of.machine, m)
		of.shards = append(of.shards, &mailbox{step: func(msg any) {
			if do, ok := msg.(func() []consistency.Command[Row[T]]); ok {
				of.carryOutShard(s, do())
			} else {
				of.carryOutShard(s, m.Step(msg, of.run.now()))
			}
		}})
	}
	for _, w := range of.run.workers {
		of.clients[w.executor.id].post(consistency.Assignment{Client: consistency.Client(w.executor.id),
			Restart:  consistency.Restart{Worker: w.id, Life: 1, Clock: consistency.Clock(of.run.first)},
			Complete: consistency.Complete{Age: consistency.Clock(of.run.first)}})
	}
}

func (of *tableRun[T]) access(w *worker) any {
	c := of.clients[w.executor.id]
	return &Access[T]{seat: c.machine.Seat(w.id), of: of, client: c, worker: w}
}

func (of *tableRun[T]) mayBegin(w *worker) (may bool) {
	of.ask(of.clients[w.executor.id], func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
		may = m.MayBegin(w.id, of.run.now())
		return nil
	})
	return may
}

func (of *tableRun[T]) finish(w *worker) {
	of.ask(of.clients[w.executor.id], func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
		return m.Finish(w.id, of.run.now())
	})
}

// ask has a client's machine decide, and carries out what it does.
func (of *tableRun[T]) ask(c *clientRun[T], do func(*consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]]) {
	of.carryOut(c, c.locked(do))
}

func (c *clientRun[T]) locked(do func(*consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]]) (
	out []consistency.Command[Row[T]]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return do(c.machine)
}

// slack returns how many clocks a worker may be ahead.
func (of *tableRun[T]) slack() int { return int(of.o.Slack) }

// halt has workers find out that the run has ended, whatever they do with the table next.
func (of *tableRun[T]) halt() {
	for _, c := range of.clients {
		c.locked(func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
			m.AskToFlush()
			return nil
		})
	}
}

// tick lets time pass.
func (of *tableRun[T]) tick() {
	for _, c := range of.clients {
		of.ask(c, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] { return m.Tick(of.run.now()) })
	}
	for s, m := range of.machine {
		of.shards[s].post(func() []consistency.Command[Row[T]] { return m.Tick(of.run.now()) })
	}
}

// carryOut does what a client decides.
func (of *tableRun[T]) carryOut(c *clientRun[T], all []consistency.Command[Row[T]]) {
	for _, cmd := range all {
		switch {
		case cmd.ToShard != nil:
			of.shards[cmd.ToShard.To].post(cmd.ToShard.Message)
		case cmd.ToBookkeeper != nil:
			of.keeper.post(cmd.ToBookkeeper)
		case cmd.Wake != nil:
			of.run.workers[*cmd.Wake].wake()
		case cmd.Fail != nil:
			of.run.fail(waited(of.table.name, cmd.Fail))
		}
	}
}

// carryOutShard does what a shard decides.
func (of *tableRun[T]) carryOutShard(s int, all []consistency.Command[Row[T]]) {
	for _, cmd := range all {
		switch {
		case cmd.ToClient != nil:
			of.clients[cmd.ToClient.To].post(cmd.ToClient.Message)
		case cmd.ToBookkeeper != nil:
			of.keeper.post(cmd.ToBookkeeper)
		case cmd.Save != nil:
			of.run.saved(int(cmd.Save.Age), func(m *moment) { m.snapshots[of.index][s] = cmd.Save })
			of.carryOutShard(s, of.machine[s].SnapshotKept(cmd.Save.Age))
		}
	}
}

// send does what the bookkeeper decides.
func (of *tableRun[T]) send(all []consistency.Send) {
	for _, m := range all {
		switch {
		case m.Client != nil:
			of.clients[*m.Client].post(m.What)
		case m.Shard != nil:
			of.shards[*m.Shard].post(m.What)
		}
	}
}

// mailbox hands messages to a machine one at a time, in their order.
type mailbox struct {
	lock  sync.Mutex
	queue []any
	busy  bool
	step  func(m any)
}

// post adds a message, and steps the machine unless another goroutine does.
func (b *mailbox) post(m any) {
	b.lock.Lock()
	if b.queue = append(b.queue, m); b.busy {
		b.lock.Unlock()
		return
	}
	b.busy = true
	for len(b.queue) > 0 {
		todo := b.queue
		b.queue = nil
		b.lock.Unlock()
		for _, m := range todo {
			b.step(m)
		}
		b.lock.Lock()
	}
	b.busy = false
	b.lock.Unlock()
}
