package driver

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// Driver is the shell around one job: it feeds the job machine with what
// executors send and carries its commands out. Its loop runs on one goroutine;
// everything else only enqueues.
type Driver struct {
	log    hclog.Logger
	began  time.Time
	events chan input
	ready  chan struct{}
	failed chan struct{} // closed once err is set
	done   chan struct{}
	stop   sync.Once
	wg     sync.WaitGroup
	runs   atomic.Pointer[[]Running]

	// What follows belongs to the loop.
	job   *Job
	conns map[plan.ExecutorID]wire.DriverConn
	timer *time.Timer
	due   plan.Time
	reply chan Command            // of the request that the session waits for
	calls map[uint64]chan Command // of the actions that it waits for
	err   error
	// drained is called with each executor that has no split left.
	drained  func(plan.ExecutorID)
	excluded func(*Exclusion)
}

// input is something for the loop: an event, or a function to be run there.
type input struct {
	event Event
	reply chan Command    // for the answer to the session's request
	conn  wire.DriverConn // that the event's message came by
	do    func()
}

// inHand is how many events may wait for the loop. The loop is fast, and events may be
// large: a sender blocks beyond that, and its messages stay in a queue that is bounded in
// bytes.
const inHand = 16

// NewDriver starts the loop of a job.
func NewDriver(cfg JobConfig, log hclog.Logger) *Driver {
	d := &Driver{log: log, began: time.Now(), events: make(chan input, inHand), ready: make(chan struct{}),
		failed: make(chan struct{}), done: make(chan struct{}), conns: map[plan.ExecutorID]wire.DriverConn{},
		calls: map[uint64]chan Command{}}
	d.job = NewJob(cfg, 0)
	d.due = cfg.EnsureDefaults().Gather
	d.timer = time.NewTimer(d.due)
	d.wg.Add(1)
	go d.loop()
	return d
}

// Now returns the time since the job began.
func (d *Driver) Now() time.Duration { return time.Since(d.began) }

// loop runs everything that touches the job.
func (d *Driver) loop() {
	defer d.wg.Done()
	for {
		var in input
		select {
		case in = <-d.events:
		case <-d.timer.C:
			d.due = 0
		case <-d.done:
			return
		}
		switch {
		case in.do != nil:
			in.do()
			continue
		case in.event.Call != nil:
			d.calls[d.job.calls+1] = in.reply // the number that the job gives it
		case in.reply != nil:
			d.reply = in.reply
		case in.conn != nil && d.conns[in.event.Message.From] != in.conn:
			continue // it has ended, or has been replaced
		}
		late := d.job.counters.StaleReports
		d.carryOut(d.job.Step(in.event, d.Now()))
		d.show(in.event)
		if in.conn != nil {
			d.logFault(in.event.Message, d.job.counters.StaleReports > late)
		}
	}
}

// show keeps which actions are in progress, for who asks while the loop is busy.
func (d *Driver) show(ev Event) {
	same := len(d.job.open) == len(d.Running())
	if same && ev.Call == nil && (ev.Message == nil || ev.Message.Body.GetTaskResult() == nil) {
		return
	}
	all := d.job.Running()
	d.runs.Store(&all)
}

// Running returns the actions in progress.
func (d *Driver) Running() []Running {
	if all := d.runs.Load(); all != nil {
		return *all
	}
	return nil
}

// enqueue passes a function to the loop; false once the driver is closed.
func (d *Driver) enqueue(do func()) bool {
	select {
	case d.events <- input{do: do}:
		return true
	case <-d.done:
		return false
	}
}

// step runs on the loop: it passes an event to the job and carries out its
// commands.
func (d *Driver) step(ev Event) { d.carryOut(d.job.Step(ev, d.Now())) }

// carryOut runs on the loop.
func (d *Driver) carryOut(cmds []Command) {
	for _, c := range cmds {
		switch {
		case c.Send != nil:
			if conn := d.conns[c.Send.To]; conn != nil {
				d.warnUnsent(c.Send.To, conn.Send(c.Send.Body))
			}
		case c.WakeAt > 0:
			d.wakeAt(c.WakeAt)
		case c.Ready:
			close(d.ready)
		case c.Drained != "":
			if d.drained != nil {
				d.drained(c.Drained)
			}
		case c.Excluded != nil:
			d.tellExcluded(c.Excluded)
		case c.Failed != nil:
			d.err = c.Failed
			close(d.failed)
		case c.CallDone != nil:
			d.answer(c.CallDone.ID, c)
		case c.PackGone != nil && c.PackGone.Call > 0:
			d.answer(c.PackGone.Call, c)
		case d.reply != nil:
			d.reply <- c
			d.reply = nil
		}
	}
}

// tellExcluded runs on the loop.
func (d *Driver) tellExcluded(x *Exclusion) {
	if x.Why == "" {
		d.log.Info("executor let back in", "executor", x.Executor)
	} else {
		d.log.Error("executor excluded", "executor", x.Executor, "why", x.Why)
	}
	if d.excluded != nil {
		d.excluded(x)
	}
}

// OnExclusion registers a function that is called when an executor is excluded
// or readmitted.
func (d *Driver) OnExclusion(do func(*Exclusion)) { d.enqueue(func() { d.excluded = do }) }

// warnUnsent logs that a message was not sent. A connection that refuses one is gone; its
// reader reports the loss.
func (d *Driver) warnUnsent(to plan.ExecutorID, err error) {
	if err != nil {
		d.log.Debug("cannot send", "executor", to, "error", err)
	}
}

// wakeAt runs on the loop: the earliest requested time is kept. Waking too
// early costs nothing, since the job requests it again.
func (d *Driver) wakeAt(at plan.Time) {
	if d.due > 0 && d.due <= at {
		return
	}
	d.due = at
	d.timer.Reset(max(0, at-d.Now()))
}

// Attach takes a connection to an executor over, reads it until it ends, and
// ends it with the driver.
func (d *Driver) Attach(conn wire.DriverConn) {
	ended := make(chan struct{})
	d.wg.Go(func() {
		defer close(ended)
		d.read(conn)
	})
	d.wg.Go(func() {
		select {
		case <-ended:
		case <-d.done:
		}
		conn.Close()
	})
}

func (d *Driver) read(conn wire.DriverConn) {
	var id plan.ExecutorID
	for {
		m, err := conn.Recv()
		if err != nil {
			if id != "" {
				d.enqueue(func() { d.lose(id, conn, err) })
			}
			return
		}
		if r, ok := m.Body.(*wire.ToDriver_Register); ok {
			id = plan.ExecutorID(r.Register.Executor)
			d.enqueue(func() { d.register(conn, r.Register) })
			continue
		}
		in := input{conn: conn, event: Event{Message: &Message{From: id, Body: m}}}
		select {
		case d.events <- in:
		case <-d.done:
		}
	}
}

// logFault logs a failure on an executor. A failure of work that is no longer needed, such as of a second
// attempt whose input was dropped when the first ended, is no warning.
func (d *Driver) logFault(m *Message, stale bool) {
	level := hclog.Warn
	if m.Body.GetTaskResult() != nil && stale {
		level = hclog.Debug
	}
	f := cmp.Or(m.Body.GetHolding().GetFault(), m.Body.GetResult().GetFault(), m.Body.GetTaskResult().GetFault())
	if err := f.AsError(); err != nil {
		d.log.Log(level, "work failed", "executor", m.From, "error", err)
	}
}

// register runs on the loop: it admits an executor, or refuses one of another
// version.
func (d *Driver) register(conn wire.DriverConn, r *wire.Register) {
	id := plan.ExecutorID(r.Executor)
	if _, err := r.Side().Agree(); err != nil {
		d.log.Error("executor refused", "executor", id, "error", err)
		conn.Close()
		return
	}
	if old := d.conns[id]; old != nil {
		old.Close()
		d.step(Event{Lost: &Lost{Executor: id, Why: "it registered again"}})
	}
	d.conns[id] = conn
	d.step(Event{Joined: &Joined{Executor: id, Slots: int(r.Slots)}})
}

// lose runs on the loop: a connection has ended.
func (d *Driver) lose(id plan.ExecutorID, conn wire.DriverConn, err error) {
	if d.conns[id] != conn {
		return
	}
	delete(d.conns, id)
	d.log.Warn("executor lost", "executor", id, "why", err)
	d.step(Event{Lost: &Lost{Executor: id, Why: err.Error()}})
}

// Ask passes a request of the session (a pack, a step or a call) to the job and returns
// its answer. A request that is given up is abandoned: its answer is dropped.
func (d *Driver) Ask(ctx context.Context, ev Event) (Command, error) {
	reply := make(chan Command, 1)
	select {
	case d.events <- input{event: ev, reply: reply}:
	case <-d.done:
	}
	select {
	case c := <-reply:
		return c, nil
	case <-d.failed:
		return Command{}, d.err
	case <-ctx.Done():
		select {
		case c := <-reply: // the job's results are not thrown away
			return c, nil
		default:
		}
		d.enqueue(func() { d.abandon(reply) })
		return Command{}, fault.New(fault.KindOf(ctx.Err()), "run", "the job", ctx.Err())
	case <-d.done:
		return Command{}, fault.Newf(fault.Cancelled, "run", "the job", "the driver is closed")
	}
}

// answer runs on the loop: an action has ended.
func (d *Driver) answer(call uint64, c Command) {
	if reply := d.calls[call]; reply != nil {
		reply <- c
		delete(d.calls, call)
	}
}

// abandon runs on the loop: the session no longer waits for an answer.
func (d *Driver) abandon(reply chan Command) {
	if d.reply == reply {
		d.reply = nil
		d.job.Abandon()
	}
	for id, r := range d.calls {
		if r == reply {
			delete(d.calls, id)
			d.carryOut(d.job.AbandonCall(id, d.Now()))
		}
	}
}

// Start waits until the executors have joined.
func (d *Driver) Start(ctx context.Context) error {
	select {
	case <-d.ready:
		return nil
	case <-d.failed:
		return d.err
	case <-ctx.Done():
		return fault.New(fault.KindOf(ctx.Err()), "wait for", "executors", ctx.Err())
	}
}

// Slots returns the number of slots of the executors that take part.
func (d *Driver) Slots() (n int) {
	d.onLoop(func() { n = d.job.Slots() })
	return n
}

// Restore takes a checkpoint's ledger over.
func (d *Driver) Restore(r *Restored) { d.onLoop(func() { d.step(Event{Restore: r}) }) }

// Signal passes a step's measurements of the gradient to the job.
func (d *Driver) Signal(s Signal) { d.onLoop(func() { d.step(Event{Signal: &s}) }) }

// Drain moves an executor's splits to others; done is called when it has none.
func (d *Driver) Drain(id plan.ExecutorID, done func(plan.ExecutorID)) {
	d.enqueue(func() {
		d.drained = done
		d.step(Event{Drain: id})
	})
}

// Ledger returns a pack's progress, for a checkpoint.
func (d *Driver) Ledger(pack int) *Restored {
	var r *Restored
	d.onLoop(func() { r = d.job.Ledger(pack) })
	return r
}

// Placement returns where work over a pack may go on now that is no step.
func (d *Driver) Placement(pack int) (at Placement) {
	d.onLoop(func() { at = d.job.Placement(pack) })
	return at
}

// onLoop runs something on the loop and waits for it.
func (d *Driver) onLoop(do func()) {
	ran := make(chan struct{})
	if d.enqueue(func() { do(); close(ran) }) {
		select {
		case <-ran:
		case <-d.done:
		}
	}
}

// Close ends the job and all connections, and waits for every goroutine.
func (d *Driver) Close() error {
	d.onLoop(func() {
		d.carryOut(d.job.Cancel())
		d.conns = map[plan.ExecutorID]wire.DriverConn{} // connections that end now are not lost executors
	})
	d.stop.Do(func() { close(d.done) })
	d.wg.Wait()
	return nil
}
