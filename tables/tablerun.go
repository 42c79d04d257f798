package tables

import (
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// tableOf is a table's part of a run, whatever its type.
type tableOf interface {
	access(w *worker) any
	receive(r *reader, k kind, to int)
	writeSnapshot(w *writer, k kind, shard int, snapshot any)
	shape() Shape
	mayBegin(w *worker) bool
	used(w *worker) (consistency.Spread, tableUse, int64)
	sentBy(process int) [plan.SentKinds]int64
	size(snapshots []any) (rows, bytes int64)
	name() string
	finish(w *worker)
	start()
	tick()
	encode(snapshots []any) ([]byte, error)
	cells(snapshots []any) [][]float64
	restore(raw []byte) error
	restored() []any
	slack() int
	exact() bool
	eager() bool
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
	looks   []looking[T]                    // by shard
	sent    []traffic                       // by executor, and at the end by the job's process
}

// clientRun is the client of an executor. Its workers use it, too, under the lock.
type clientRun[T Number] struct {
	mailbox
	executor int
	mu       sync.Mutex
	machine  *consistency.ClientOf[Row[T]]
	acts     bool                          // a goroutine carries out what it has decided
	todo     []consistency.Command[Row[T]] // and this next
}

const (
	patience = 5 * time.Minute
	forGood  = 100 * 365 * 24 * time.Hour // a wait on a virtual clock ends, or nothing is left to happen
	ticks    = 2 * time.Millisecond       // between flushes of eager models
)

// batchBytes is how large a batch of updates is between processes, about; tests have smaller ones.
var batchBytes = 512 << 10

// again returns until when a message is sent again. None is lost, as the run ends with its first connection; over a
// slow link it may be long until one is answered.
func (r *run) again() time.Duration {
	if r.computed != nil {
		return forGood
	}
	if r.self == everyone {
		return time.Second
	}
	return time.Minute
}

// patience returns how long a worker waits at the most.
func (r *run) patience() time.Duration {
	if r.computed != nil {
		return forGood
	}
	return patience
}

// cacheShare is which part of a process's memory limit the rows that its clients have cached may take, all together.
const cacheShare = 4

// cacheOf returns how many bytes a client's cache of a table may take; 0 is no bound. On a virtual clock there is none,
// as when rows are asked for would follow from the machine's memory.
func (r *run) cacheOf() int {
	limit, clients := debug.SetMemoryLimit(-1), 0
	for _, x := range r.executors {
		if x.here {
			clients++
		}
	}
	if limit == math.MaxInt64 || r.computed != nil || clients == 0 {
		return 0
	}
	return max(1, int(limit/cacheShare)/(clients*max(1, len(r.tables))))
}

func newTableRun[T Number](r *run, index int, t *Table[T]) *tableRun[T] {
	of := &tableRun[T]{run: r, index: index, table: t, sums: newSums[T](t.shape.Columns, t.shape.Sparse)}
	of.o = consistency.Options{Model: t.model, Workers: len(r.workers), Shards: len(r.executors), Together: true,
		Every: consistency.Clock(r.every), Last: consistency.Clock(r.last)}
	if !t.shape.Sparse {
		of.blank = make([]T, t.shape.Columns)
	}
	of.from = make([]*consistency.Snapshot[Row[T]], of.o.Shards)
	of.sent = make([]traffic, len(r.executors)+1)
	of.looks = make([]looking[T], of.o.Shards)
	return of
}

// start begins all machines, at the clock that the run begins with.
func (of *tableRun[T]) start() {
	of.o.Again, of.o.Patience, of.o.Cache = of.run.again(), of.run.patience(), of.run.cacheOf()
	if of.run.self != everyone {
		of.o.Batch = batchBytes
	}
	if of.run.self < 0 {
		of.startBookkeeper()
	}
	for e, x := range of.run.executors {
		if !x.here {
			of.clients, of.machine, of.shards = append(of.clients, nil), append(of.machine, nil), append(of.shards, nil)
			continue
		}
		c := &clientRun[T]{executor: e, machine: consistency.NewClient(consistency.Client(e), of.o, of.sums)}
		c.step = func(msg any) {
			of.ask(c, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
				return m.Step(msg, of.run.now())
			})
		}
		of.clients = append(of.clients, c)
		of.startShard(e)
	}
	for _, w := range of.run.workers {
		if !w.executor.here {
			continue
		}
		of.clients[w.executor.id].post(consistency.Assignment{Client: consistency.Client(w.executor.id),
			Restart:  consistency.Restart{Worker: w.id, Life: 1, Clock: consistency.Clock(of.run.first)},
			Complete: consistency.Complete{Age: consistency.Clock(of.run.first)}})
	}
}

// startBookkeeper begins the one that knows how far all are: in the job's process.
func (of *tableRun[T]) startBookkeeper() {
	var ids []consistency.Client
	for e := range of.run.executors {
		ids = append(ids, consistency.Client(e))
	}
	of.book = consistency.NewBookkeeper(of.o, ids, func(w consistency.Worker) consistency.Client {
		return consistency.Client(of.run.workers[w].executor.id)
	})
	of.keeper = &mailbox{step: func(m any) { of.send(of.book.Step(m, of.run.now())) }}
}

// startShard begins the shard of an executor.
func (of *tableRun[T]) startShard(s int) {
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

// toShard, toClient and toBookkeeper pass a message on to a machine, wherever it is.
func (of *tableRun[T]) toShard(from, s int, m any) {
	if of.shards[s] != nil {
		of.hand(from, s, s, of.shards[s], m, kindOf[T](m, false))
		return
	}
	of.post(s, kindOf[T](m, false), func(w *writer) { of.write(w, s, m) })
}

func (of *tableRun[T]) toClient(from, c int, m any, unasked bool) {
	kind := kindOf[T](m, unasked)
	if of.clients[c] != nil {
		of.hand(from, c, c, &of.clients[c].mailbox, m, kind)
		return
	}
	of.post(c, kind, func(w *writer) { of.write(w, c, m) })
}

func (of *tableRun[T]) toBookkeeper(from int, m any) {
	if of.keeper != nil {
		of.hand(from, rdd.Leader, 0, of.keeper, m, plan.SentProgress)
		return
	}
	of.post(rdd.Leader, plan.SentProgress, func(w *writer) { of.write(w, 0, m) })
}

func (of *tableRun[T]) shape() Shape { return of.table.shape }

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

// ask has a client's machine decide, and carries out what it does, in the order in which that is decided, whichever
// goroutine asks: a shard takes the batches of a worker in their order only.
func (of *tableRun[T]) ask(c *clientRun[T], do func(*consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]]) {
	for out := c.decide(do); len(out) > 0; out = c.next() {
		of.carryOut(c, out)
	}
}

// decide returns what is to be carried out; nothing where another goroutine is at it, which does this next.
func (c *clientRun[T]) decide(do func(*consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]]) (
	out []consistency.Command[Row[T]]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out = do(c.machine)
	if c.acts {
		c.todo = append(c.todo, out...)
		return nil
	}
	c.acts = len(out) > 0
	return out
}

// next returns what was decided meanwhile.
func (c *clientRun[T]) next() (out []consistency.Command[Row[T]]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, c.todo = c.todo, nil
	c.acts = len(out) > 0
	return out
}

// hand gives a machine of this process a message of another's: at once, or when it has arrived on a virtual clock.
func (of *tableRun[T]) hand(from, to, machine int, box *mailbox, m any, kind plan.SentKind) {
	if of.run.computed == nil {
		box.post(m)
		return
	}
	bytes := func() int {
		n := of.bytes(machine, m)
		of.counts(from, kind, n)
		return n
	}
	of.run.computed.deliver(from, to, bytes, func() { box.post(m) })
}

// bytes returns how long a message is between processes.
func (of *tableRun[T]) bytes(machine int, m any) int {
	switch m.(type) {
	case consistency.Batch[Row[T]], consistency.Value[Row[T]]:
		w := &writer{}
		of.write(w, machine, m)
		return len(w.buf)
	}
	return shortBytes
}

// shortBytes is about how long messages are that have no rows.
const shortBytes = 32

// eager reports whether updates leave as bandwidth allows.
func (of *tableRun[T]) eager() bool { return of.o.Model.Eager }

// exact reports whether reads see the clocks before their own and nothing newer.
func (of *tableRun[T]) exact() bool { return of.o.Exact() }

// slack returns how many clocks a worker may be ahead.
func (of *tableRun[T]) slack() int { return int(of.o.Slack) }

// halt has workers find out that the run has ended, whatever they do with the table next.
func (of *tableRun[T]) halt() {
	for _, c := range of.here() {
		c.mu.Lock()
		c.machine.AskToFlush()
		c.mu.Unlock()
	}
}

// tick lets time pass.
func (of *tableRun[T]) tick() {
	for _, c := range of.here() {
		of.ask(c, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] { return m.Tick(of.run.now()) })
	}
	for s, m := range of.machine {
		if m == nil {
			continue
		}
		of.shards[s].post(func() []consistency.Command[Row[T]] { return m.Tick(of.run.now()) })
	}
}

// carryOut does what a client decides.
func (of *tableRun[T]) carryOut(c *clientRun[T], all []consistency.Command[Row[T]]) {
	for _, cmd := range all {
		switch {
		case cmd.ToShard != nil:
			of.toShard(c.executor, cmd.ToShard.To, cmd.ToShard.Message)
		case cmd.ToBookkeeper != nil:
			of.toBookkeeper(c.executor, cmd.ToBookkeeper)
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
			of.toClient(s, cmd.ToClient.To, cmd.ToClient.Message, cmd.ToClient.Unasked)
		case cmd.ToBookkeeper != nil:
			of.toBookkeeper(s, cmd.ToBookkeeper)
		case cmd.Save != nil:
			of.save(s, cmd.Save)
			of.carryOutShard(s, of.machine[s].SnapshotKept(cmd.Save.Age))
		}
	}
}

// save hands out what a shard is after a number of clocks.
func (of *tableRun[T]) save(s int, snapshot *consistency.Snapshot[Row[T]]) {
	if of.run.self == everyone {
		of.run.saved(int(snapshot.Age), func(m *moment) { m.snapshots[of.index][s] = snapshot })
		return
	}
	of.post(rdd.Leader, plan.SentSnapshots, func(w *writer) { of.writeSnapshot(w, aSnapshot, s, snapshot) })
}

// here returns the clients of this process.
func (of *tableRun[T]) here() (all []*clientRun[T]) {
	for _, c := range of.clients {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// send does what the bookkeeper decides: with tables whose machines end together it says only how far all are.
func (of *tableRun[T]) send(all []consistency.Send) {
	for _, m := range all {
		what, complete := m.What.(consistency.Complete)
		switch {
		case m.Client != nil && of.clients[*m.Client] != nil:
			of.hand(rdd.Leader, int(*m.Client), 0, &of.clients[*m.Client].mailbox, m.What, plan.SentProgress)
		case m.Shard != nil && of.shards[*m.Shard] != nil:
			of.hand(rdd.Leader, *m.Shard, 0, of.shards[*m.Shard], m.What, plan.SentProgress)
		case !complete:
		case m.Client != nil:
			to := int(*m.Client)
			of.post(to, plan.SentProgress, func(w *writer) { of.writeComplete(w, completeForClient, to, what) })
		case m.Shard != nil:
			to := *m.Shard
			of.post(to, plan.SentProgress, func(w *writer) { of.writeComplete(w, completeForShard, to, what) })
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
