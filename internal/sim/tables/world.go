package tables

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/tables/consistency"
)

// world is a table with its workers, and the oracles that watch them.
type world struct {
	rng    *rand.Rand
	seed   uint64
	opt    sim.Options
	result sim.Result
	o      consistency.Options
	now    time.Duration
	agenda sim.World

	book    *consistency.Bookkeeper
	shards  []*consistency.Shard[set] // nil is one that is lost
	epochs  []int
	stored  map[consistency.Clock]map[int]*consistency.Snapshot[set]
	clients map[consistency.Client]*process
	nextOf  consistency.Client
	workers []*worker
	clocks  consistency.Clock // to be done
	rows    int
	net     network
	quiet   time.Duration // no more faults from then on
	updates []*update
}

// network is how messages fare.
type network struct {
	least, most time.Duration
	loss, twice float64
	// Calm is a network that loses nothing and keeps the order of what one process sends another: no message is to be
	// waited for that would be sent again.
	calm bool
	last map[way]time.Duration // that something arrives
}

// way is a connection: a client's number, a shard's, or that of the bookkeeper at each end.
type way struct{ from, to any }

const bookkeeper = "bookkeeper"

// process is a client, with whether it is there, and whether it is taken to be.
type process struct {
	machine   *consistency.ClientOf[set]
	id        consistency.Client
	up, known bool
	since     time.Duration
	sent      float64        // bytes, of its own accord
	pushed    map[[3]int]int // by worker, life and shard, the number of the last batch
}

// Simulate lets the workers of a table do their clocks under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x7461626c6573)), seed: seed, opt: opt,
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	w.draw()
	w.begin()
	for !w.found() && !w.done() && len(w.result.Violations) < 10 && w.agenda.Next() {
		w.bounds()
		if w.now > w.quiet+limit {
			w.violate("tables.ends", "not all clocks are done %v after the last fault: %s", limit, w.standing())
			break
		}
	}
	w.atEnd()
	w.result.Virtual = w.now
	return &w.result
}

// limit is how long a world may take once nothing is lost any more.
const limit = 20 * time.Second

func (w *world) after(d time.Duration, do func()) {
	at := w.now + d
	w.agenda.At(at, func() {
		w.now = at
		do()
	})
}

func (w *world) span(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

func (w *world) fired(kind string) { w.result.Faults["tables: "+kind]++ }

// models are those that worlds have.
func (w *world) model() consistency.Model {
	slack := consistency.Clock(1 + w.rng.IntN(3))
	bound := float64(2 + w.rng.IntN(6))
	return []consistency.Model{consistency.BSP(), consistency.SSP(slack), consistency.ASP(), consistency.CAP(slack),
		consistency.VAP(bound, false), consistency.VAP(bound, true), consistency.CVAP(slack, bound, false),
		consistency.CVAP(slack, bound, true)}[w.rng.IntN(8)]
}

func (w *world) draw() {
	w.o = consistency.Options{Model: w.model(), Workers: 2 + w.rng.IntN(4), Shards: 1 + w.rng.IntN(3),
		Again: 40 * time.Millisecond, Patience: 15 * time.Second}
	w.o.Prefetch = consistency.Prefetch(w.rng.IntN(3))
	if w.rng.IntN(2) == 0 {
		w.o.Budget = float64(500 + w.rng.IntN(20_000))
	}
	w.rows = 2 + w.rng.IntN(8)
	if w.rng.IntN(3) == 0 {
		w.o.Cache = w.rowBytes() * (1 + w.rng.IntN(w.rows))
	}
	if w.rng.IntN(3) == 0 {
		w.o.Every = consistency.Clock(1 + w.rng.IntN(4))
	}
	w.clocks = consistency.Clock(4 + w.rng.IntN(8))
	w.o.Batch = w.rowBytes() * int(w.clocks%3) // of some rows of a clock, or without a bound
	w.net = network{least: w.span(0, 2*time.Millisecond), most: w.span(2*time.Millisecond, 15*time.Millisecond)}
	if w.rng.IntN(3) > 0 {
		w.net.loss, w.net.twice = w.rng.Float64()*0.15, w.rng.Float64()*0.15
	}
	if w.rng.IntN(5) == 0 {
		w.net.calm, w.net.loss, w.net.twice, w.net.last = true, 0, 0, map[way]time.Duration{}
		w.o.Again, w.o.Together = time.Hour, true
		w.fired("calm")
	}
	w.quiet = w.span(200*time.Millisecond, 1500*time.Millisecond)
	w.tell("%v, %d workers, %d shards, %d rows, %d clocks", w.o.Model, w.o.Workers, w.o.Shards, w.rows, w.clocks)
}

// begin starts all processes.
func (w *world) begin() {
	w.stored, w.clients = map[consistency.Clock]map[int]*consistency.Snapshot[set]{}, map[consistency.Client]*process{}
	for range 1 + w.rng.IntN(min(3, w.o.Workers)) {
		w.join()
	}
	w.book = consistency.NewBookkeeper(w.o, w.living(), w.place)
	for s := range w.o.Shards {
		b := consistency.Beginning{Shard: s, Epoch: 1}
		w.shards, w.epochs = append(w.shards, consistency.NewShard(b, w.o, algebra{w}, nil)), append(w.epochs, 1)
	}
	for id := range consistency.Worker(w.o.Workers) {
		k := &worker{id: id, slow: 1 << w.rng.IntN(4), done: map[consistency.Clock][]*update{}}
		w.workers = append(w.workers, k)
	}
	for _, k := range w.workers {
		p := w.clients[w.place(k.id)]
		a := consistency.Assignment{Client: p.id, Restart: consistency.Restart{Worker: k.id, Life: 1}}
		w.assigned(a)
		w.fromClient(p, p.machine.Step(a, 0))
	}
	w.ticks()
	w.faults()
}

// join adds a process.
func (w *world) join() *process {
	w.nextOf++
	p := &process{machine: consistency.NewClient(w.nextOf, w.o, algebra{w}), id: w.nextOf, up: true, known: true,
		since: w.now, pushed: map[[3]int]int{}}
	w.clients[p.id] = p
	return p
}

// living returns the clients that the bookkeeper takes for alive.
func (w *world) living() (all []consistency.Client) {
	for id := consistency.Client(1); id <= w.nextOf; id++ {
		if p := w.clients[id]; p.known {
			all = append(all, id)
		}
	}
	return all
}

// place returns the client that runs a worker.
func (w *world) place(id consistency.Worker) consistency.Client {
	all := w.living()
	return all[int(id)%len(all)]
}

// ticks lets time pass for all.
func (w *world) ticks() {
	const every = 5 * time.Millisecond
	for id := consistency.Client(1); id <= w.nextOf; id++ {
		if p := w.clients[id]; p.up {
			w.fromClient(p, p.machine.Tick(w.now))
		}
	}
	for s, m := range w.shards {
		if m != nil {
			w.fromShard(s, m.Tick(w.now))
		}
	}
	w.send(w.book.Tick(w.now))
	w.after(every, w.ticks)
}

// post delivers a message to a process, perhaps never, late or twice.
func (w *world) post(by way, deliver func()) {
	if w.net.calm {
		at := max(w.now+w.span(w.net.least, w.net.most), w.net.last[by])
		w.net.last[by] = at
		w.after(at-w.now, deliver)
		return
	}
	faulty := w.now < w.quiet
	if faulty && w.rng.Float64() < w.net.loss {
		w.fired("message lost")
		return
	}
	w.after(w.span(w.net.least, w.net.most), deliver)
	if faulty && w.rng.Float64() < w.net.twice {
		w.fired("message twice, and late")
		w.after(w.span(w.net.least, 20*w.net.most), deliver)
	}
}

func (w *world) toShard(from any, s int, m any) {
	w.post(way{from, s}, func() {
		if w.shards[s] != nil {
			w.fromShard(s, w.shards[s].Step(m, w.now))
		}
	})
}

func (w *world) toClient(from any, id consistency.Client, m any) {
	p := w.clients[id]
	if p == nil {
		return
	}
	w.post(way{from, id}, func() {
		if p.up {
			w.fromClient(p, p.machine.Step(m, w.now))
		}
	})
}

// fromClient carries out what a client decides.
func (w *world) fromClient(p *process, all []consistency.Command[set]) {
	for _, c := range all {
		switch {
		case c.ToShard != nil:
			if b, ok := c.ToShard.Message.(consistency.Batch[set]); ok && len(b.Updates) > 0 {
				w.budget(p, b)
			}
			w.toShard(p.id, c.ToShard.To, c.ToShard.Message)
		case c.ToBookkeeper != nil:
			w.post(way{p.id, bookkeeper}, func() { w.send(w.book.Step(c.ToBookkeeper, w.now)) })
		case c.Run != nil:
			w.workers[c.Run.Worker].begin(w, p, *c.Run)
		case c.Stop != nil:
			if k := w.workers[*c.Stop]; k.on == p {
				w.fired("worker goes on elsewhere, and stops here")
				k.on = &process{}
			}
		case c.Wake != nil:
			if k := w.workers[*c.Wake]; k.on == p {
				k.wake(w)
			}
		case c.Fail != nil && p.known:
			w.violate("tables.wait", "worker %d has waited for %v for %s", c.Fail.Worker, c.Fail.Waited, c.Fail.For)
		}
	}
}

// fromShard carries out what a shard decides.
func (w *world) fromShard(s int, all []consistency.Command[set]) {
	for _, c := range all {
		switch {
		case c.ToClient != nil:
			w.toClient(s, consistency.Client(c.ToClient.To), c.ToClient.Message)
		case c.ToBookkeeper != nil:
			w.post(way{s, bookkeeper}, func() { w.send(w.book.Step(c.ToBookkeeper, w.now)) })
		case c.Save != nil:
			w.save(s, c.Save)
		}
	}
}

// save keeps a snapshot, which takes a while.
func (w *world) save(s int, n *consistency.Snapshot[set]) {
	w.pure(s, n)
	epoch := w.epochs[s]
	w.after(w.span(0, 30*time.Millisecond), func() {
		if w.shards[s] == nil || w.epochs[s] != epoch {
			w.fired("shard lost before its snapshot was kept")
			return
		}
		if w.stored[n.Age] == nil {
			w.stored[n.Age] = map[int]*consistency.Snapshot[set]{}
		}
		w.stored[n.Age][s] = n
		w.fired("snapshot kept")
		w.fromShard(s, w.shards[s].SnapshotKept(n.Age))
	})
}

// send carries out what the bookkeeper decides.
func (w *world) send(all []consistency.Send) {
	for _, m := range all {
		switch {
		case m.Begin != nil:
			w.beginShard(*m.Begin)
		case m.Client != nil:
			w.assigned(m.What)
			w.toClient(bookkeeper, *m.Client, m.What)
		case m.Shard != nil:
			w.toShard(bookkeeper, *m.Shard, m.What)
		}
	}
}

// assigned notes that a worker goes on elsewhere: what it has done since counts no more.
func (w *world) assigned(what any) {
	if a, ok := what.(consistency.Assignment); ok && a.Life > w.workers[a.Worker].assigned {
		w.workers[a.Worker].assigned = a.Life
		w.workers[a.Worker].takeBack(a.Clock)
	}
}

// beginShard begins a shard anew, elsewhere.
func (w *world) beginShard(b consistency.Beginning) {
	w.shards[b.Shard], w.epochs[b.Shard] = nil, b.Epoch
	w.after(w.span(0, 50*time.Millisecond), func() {
		if w.epochs[b.Shard] == b.Epoch {
			w.shards[b.Shard] = consistency.NewShard(b, w.o, algebra{w}, w.stored[b.Age][b.Shard])
		}
	})
}

// done reports whether all clocks are done, and all shards have them.
func (w *world) done() bool {
	if w.book.Complete() < w.clocks {
		return false
	}
	behind := func(s *consistency.Shard[set]) bool { return s == nil || s.Age() < w.clocks }
	return !slices.ContainsFunc(w.shards, behind)
}

// found reports whether what is looked for has been found.
func (w *world) found() bool {
	return slices.ContainsFunc(w.result.Violations, func(v sim.Violation) bool {
		return w.opt.Until == "any" || w.opt.Until == v.Oracle
	})
}

// violate notes what an oracle has found.
func (w *world) violate(oracle, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("!!! %s: %s", oracle, text)
	if len(w.result.Violations) < 10 || oracle == w.opt.Until {
		v := sim.Violation{Oracle: oracle, Text: fmt.Sprintf("at %v, %v: %s", w.now, w.o.Model, text)}
		w.result.Violations = append(w.result.Violations, v)
	}
}

func (w *world) tell(format string, args ...any) {
	if w.opt.Trace != nil {
		w.opt.Trace(fmt.Sprintf("tables: %v: ", w.now) + fmt.Sprintf(format, args...))
	}
}

// standing returns how far all are.
func (w *world) standing() (text string) {
	for _, k := range w.workers {
		what := "gone"
		if k.on.up {
			what, _ = k.on.machine.Waits(k.id)
		}
		text += fmt.Sprintf("worker %d of client %d at clock %d, step %d: %s; ", k.id, k.on.id, k.clock, k.step, what)
	}
	for s, m := range w.shards {
		if m != nil {
			text += fmt.Sprintf("shard %d has %d; ", s, m.Age())
		}
	}
	return text + fmt.Sprintf("complete are %d", w.book.Complete())
}
