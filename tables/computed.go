package tables

import (
	"container/heap"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

// computed is the time of a run on a virtual clock. Slots take turns: each goes on until it waits, and while none can,
// time jumps to what is next, so that a run gives the same bytes every time, whatever the machine. All of it is on the
// goroutine that takes the run's moments.
type computed struct {
	rdd.Computed
	now     time.Duration
	queue   happenings
	seq     int
	idle    int // ticks in a row after which nothing else was to happen
	slots   []*coroutine
	current *coroutine               // that goes on; nil between them
	arrived map[[2]int]time.Duration // of the last message, by sender and receiver: they keep their order
	handed  map[[2]int]time.Duration // as arrived, of the last message that was read
	cores   [][]core                 // by executor and slot; nil where messages take none
}

// core is what a slot works on, and messages are written and read by where there are no others: these come first.
type core struct {
	works    time.Duration // until when, for its slot
	handles  time.Duration // until when, for messages
	blocked  time.Duration // until when messages keep it from work that has not begun
	deferred time.Duration // what messages have taken from work since it began; its slot's next is later by that
}

// begin returns from when a slot works that begins now.
func (k *core) begin(now time.Duration) time.Duration {
	later := k.deferred + max(0, k.blocked-now)
	k.deferred = 0
	return now + later
}

// handle returns when a message is written or read that takes some time.
func (k *core) handle(now, cost time.Duration) time.Duration {
	k.handles = max(k.handles, now) + cost
	if k.works > now {
		k.deferred += cost
	} else {
		k.blocked = max(k.blocked, now) + cost
	}
	return k.handles
}

// happening is what is due at a time; of several at the same time the first that was scheduled comes first.
type happening struct {
	at  time.Duration
	seq int
	do  func()
}

type happenings []happening

func (q happenings) Len() int { return len(q) }
func (q happenings) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q happenings) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *happenings) Push(x any)   { *q = append(*q, x.(happening)) }
func (q *happenings) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = happening{}
	*q = (*q)[:last]
	return h
}

// at schedules something.
func (c *computed) at(t time.Duration, do func()) {
	c.seq++
	heap.Push(&c.queue, happening{max(t, c.now), c.seq, do})
}

// next lets the next thing happen; it returns false where nothing is left.
func (c *computed) next() bool {
	if len(c.queue) == 0 {
		return false
	}
	h := heap.Pop(&c.queue).(happening)
	c.now = h.at
	h.do()
	return true
}

// coroutine is a slot's goroutine, which runs while the others wait.
type coroutine struct {
	of     *computed
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	over   bool
}

// spawn begins a slot, at the present time.
func (c *computed) spawn(body func()) {
	k := &coroutine{of: c}
	k.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		k.yield = yield
		body()
	})
	c.slots = append(c.slots, k)
	c.at(c.now, k.goOn)
}

// goOn lets a slot go on until it waits.
func (k *coroutine) goOn() {
	if k.over {
		return
	}
	before := k.of.current
	k.of.current = k
	_, more := k.resume()
	k.over, k.of.current = !more, before
}

// wait lets others go on until the slot is told to.
func (k *coroutine) wait() { k.yield(struct{}{}) }

// drain lets all slots come to their end, once the run has.
func (c *computed) drain() {
	for _, k := range c.slots {
		for !k.over {
			k.goOn()
		}
	}
}

// signal is what slots wait for, as on a sync.Cond.
type signal interface {
	Wait()
	Broadcast()
}

// parking is a signal of slots on a virtual clock.
type parking struct {
	of   *computed
	mu   *sync.Mutex
	here []*coroutine
}

func (p *parking) Wait() {
	k := p.of.current
	p.here = append(p.here, k)
	p.mu.Unlock()
	k.wait()
	p.mu.Lock()
}

func (p *parking) Broadcast() {
	for _, k := range p.here {
		p.of.at(p.of.now, k.goOn)
	}
	p.here = nil
}

// slotPacer has a slot work at the speed of its law.
type slotPacer struct {
	of             *computed
	executor, slot int
}

func (p slotPacer) Worked(rows int64) {
	k, begins := p.of.current, p.of.now
	if p.of.cores == nil {
		p.of.at(p.of.Spend(p.executor, p.slot, begins, rows), k.goOn)
	} else {
		core := &p.of.cores[p.executor][p.slot]
		core.works = p.of.Spend(p.executor, p.slot, core.begin(begins), rows)
		p.of.at(core.works, k.goOn)
	}
	k.wait()
}

func (slotPacer) Waited(time.Duration) {}

// deliver hands over a message once it has arrived: within an executor at once.
func (c *computed) deliver(from, to int, bytes func() int, hand func()) {
	if from == to {
		hand()
		return
	}
	link, n := [2]int{from, to}, int64(bytes())
	at := max(c.Arrive(from, to, c.handled(from, n), n), c.arrived[link])
	c.arrived[link] = at
	if c.cores == nil {
		c.at(at, hand)
		return
	}
	c.at(at, func() {
		c.handed[link] = max(c.handled(to, n), c.handed[link])
		c.at(c.handed[link], hand)
	})
}

// handled returns when an executor has written or read a message: on the core of a slot that does not work, or of one
// that goes on later for it. The job's process has cores to spare.
func (c *computed) handled(executor int, bytes int64) time.Duration {
	if c.cores == nil || executor == rdd.Leader {
		return c.now
	}
	free := &c.cores[executor][0]
	for i := range c.cores[executor] {
		k := &c.cores[executor][i]
		if busy, other := k.works > c.now, free.works > c.now; !busy && other ||
			busy == other && k.handles < free.handles {
			free = k
		}
	}
	return free.handle(c.now, c.Handle(bytes))
}

// compute puts a run on a virtual clock.
func (r *run) compute(by rdd.Computed) {
	r.computed = &computed{Computed: by, arrived: map[[2]int]time.Duration{},
		handed: map[[2]int]time.Duration{}}
	for _, x := range r.executors {
		x.changed = &parking{of: r.computed, mu: &x.mu}
		if by.Handle != nil {
			r.computed.cores = append(r.computed.cores, make([]core, x.slots))
		}
	}
	r.pacer = func(executor, slot int) rdd.Pacer { return slotPacer{r.computed, executor, slot} }
}

// awaitComputed lets things happen until there may be something to take. A worker that ends its goroutine ends this one
// as well, after it has failed the run. Once the context has ended, a worker has the run's timeout to come back.
func (r *run) awaitComputed(ctx context.Context) error {
	over := make(chan error, 1)
	go func() {
		var err error
		defer func() { over <- err }()
		err = r.happen(ctx)
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-over:
		return err
	case <-r.patienceOver():
		r.stuck.Store(true)
		return ctx.Err()
	}
}

// patienceOver returns what is sent to when workers have had the time that they may go without a sign; nil is never.
func (r *run) patienceOver() <-chan time.Time {
	if r.timeout <= 0 {
		return nil
	}
	return time.After(r.timeout)
}

func (r *run) happen(ctx context.Context) error {
	for len(r.ready) == 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !r.computed.next() {
			return fault.Newf(fault.Internal, "run", "workers of tables", "nothing is left to happen")
		}
	}
	<-r.ready
	return nil
}

// ticksComputed lets time pass for machines whose updates leave as bandwidth allows; those of others need no time.
func (r *run) ticksComputed() {
	for _, t := range r.tables {
		if t.eager() {
			r.computed.at(r.computed.now+r.computed.Tick, r.tickComputed)
			return
		}
	}
}

// mostIdle is how many ticks in a row may find nothing else to happen: workers that wait then wait for good.
const mostIdle = 1000

func (r *run) tickComputed() {
	for _, t := range r.tables {
		t.tick()
	}
	if r.computed.idle++; len(r.computed.queue) > 0 {
		r.computed.idle = 0
	}
	if r.computed.idle < mostIdle {
		r.ticksComputed()
	}
}
