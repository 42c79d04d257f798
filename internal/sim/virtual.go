package sim

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
)

// The virtual network: what a message costs, and the bytes it carries.
const (
	messageDelay = 200 * time.Microsecond
	bandwidth    = 1e9 // bytes per second
)

// transfer returns how long some bytes take on the virtual network.
func transfer(bytes int) plan.Time {
	return messageDelay + plan.Time(float64(bytes)/bandwidth*float64(time.Second))
}

// Virtual is a cluster in virtual time whose numerics are real.
type Virtual struct {
	w      *World
	job    *driver.Job
	law    *pace.Law
	nodes  map[plan.ExecutorID]*node
	number map[plan.ExecutorID]int
	arrive map[string]plan.Time // last arrival by link, so that links keep order
	link   [2]plan.Time         // when what the driver has sent, and is sent, has passed its link
	wakes  map[plan.Time]bool
	got    driver.Command // what the session waits for
	have   bool
	failed error
}

// VirtualConfig is the shape of a virtual cluster.
type VirtualConfig struct {
	Job       driver.JobConfig
	Executors int
	Slots     int
	Law       *pace.Law // never nil: virtual time comes from it
	Engine    func(i int) (*executor.Engine, error)
}

// NewVirtual makes a cluster; its executors join when the session starts it.
func NewVirtual(c VirtualConfig) (*Virtual, error) {
	v := &Virtual{w: &World{}, law: c.Law, nodes: map[plan.ExecutorID]*node{}, number: map[plan.ExecutorID]int{},
		arrive: map[string]plan.Time{}, wakes: map[plan.Time]bool{}}
	v.job = driver.NewJob(c.Job, 0)
	for i := range c.Executors {
		engine, err := c.Engine(i)
		if err != nil {
			return nil, err
		}
		id := plan.ExecutorID(fmt.Sprintf("executor-%d", i))
		n := &node{w: v.w, id: id, agent: executor.NewAgent(id, c.Slots), slots: c.Slots, runs: map[int]*run{},
			up: true,
			work: &engineWorker{engine: engine, slots: c.Slots, folds: map[int]*executor.Fold{},
				leased: map[int]*executor.LeasedFold{}}}
		n.spend = func(slot int, at plan.Time, rows int64) plan.Time { return c.Law.Spend(i, slot, c.Slots, at, rows) }
		n.fetchT = func(h *wire.Hold) plan.Time { return fetchTime(c.Law, i, h) }
		n.send = func(m *wire.ToDriver) { v.toDriver(n, m) }
		v.nodes[id], v.number[id] = n, i
		v.w.At(0, func() { v.step(driver.Event{Joined: &driver.Joined{Executor: id, Slots: c.Slots}}) })
	}
	return v, nil
}

// fetchTime returns how long getting a split takes: from its source on the same
// machine next to nothing, from a peer the bytes' way over the network.
func fetchTime(law *pace.Law, executor int, h *wire.Hold) plan.Time {
	if h.From == "" {
		return 0
	}
	return law.Send(executor, law.Latency(messageDelay), int64(h.Bytes), bandwidth)
}

// step lets the job see an event and carries out what it says.
func (v *Virtual) step(ev driver.Event) { v.carryOut(v.job.Step(ev, v.w.now)) }

func (v *Virtual) carryOut(cmds []driver.Command) {
	for _, c := range cmds {
		switch {
		case c.Send != nil:
			v.toExecutor(c.Send)
		case c.WakeAt > 0:
			v.wake(c.WakeAt)
		case c.Excluded != nil: // the job has moved its splits
		case c.Failed != nil:
			v.failed = c.Failed
		default:
			v.got, v.have = c, true
		}
	}
}

// wake schedules a tick, once for each time.
func (v *Virtual) wake(at plan.Time) {
	if v.wakes[at] {
		return
	}
	v.wakes[at] = true
	v.w.At(at, func() {
		delete(v.wakes, at)
		v.step(driver.Event{})
	})
}

// The driver's link has two ways.
const (
	outward = iota
	inward
)

// arrival returns when a message that leaves now arrives on an ordered link, after what else is on the driver's.
func (v *Virtual) arrival(id plan.ExecutorID, way int, m proto.Message) plan.Time {
	link, bytes := fmt.Sprint(way, id), int64(proto.Size(m))
	v.link[way] = max(v.link[way], v.w.now) + v.law.DriverLink(bytes)
	at := v.law.Send(v.number[id], v.link[way]+v.law.Latency(messageDelay), bytes, bandwidth)
	at = max(v.arrive[link], at)
	v.arrive[link] = at
	return at
}

func (v *Virtual) toExecutor(m *driver.Outgoing) {
	n := v.nodes[m.To]
	v.w.At(v.arrival(m.To, outward, m.Body), func() { n.step(executor.Event{Message: m.Body}) })
}

func (v *Virtual) toDriver(n *node, m *wire.ToDriver) {
	v.w.At(v.arrival(n.id, inward, m), func() {
		v.step(driver.Event{Message: &driver.Message{From: n.id, Body: m}})
	})
}

// await lets things happen until the job answers the session.
func (v *Virtual) await(ctx context.Context) (driver.Command, error) {
	for n := 0; !v.have; n++ {
		if v.failed != nil {
			return driver.Command{}, v.failed
		}
		if n%256 == 0 && ctx.Err() != nil {
			return driver.Command{}, fault.New(fault.Cancelled, "run", "the job", ctx.Err())
		}
		if v.w.Stuck() {
			return driver.Command{}, fault.Newf(fault.Internal, "run", "the virtual cluster", "time does not advance")
		}
		if !v.w.Next() {
			return driver.Command{}, fault.Newf(fault.Internal, "run", "the virtual cluster",
				"nothing is left to happen")
		}
	}
	got := v.got
	v.got, v.have = driver.Command{}, false
	return got, nil
}

// Start lets the executors join.
func (v *Virtual) Start(ctx context.Context) error {
	_, err := v.await(ctx)
	return err
}

// Ask hands the job a request of the session and returns its answer.
func (v *Virtual) Ask(ctx context.Context, request driver.Event) (driver.Command, error) {
	v.step(request)
	return v.await(ctx)
}

// Slots returns 0: time is computed, so that tasks cannot measure how long they take.
func (v *Virtual) Slots() int { return 0 }

// Restore takes a checkpoint's ledger over.
func (v *Virtual) Restore(r *driver.Restored) { v.step(driver.Event{Restore: r}) }

// Signal takes in what a step has shown of the gradient.
func (v *Virtual) Signal(s driver.Signal) { v.step(driver.Event{Signal: &s}) }

// Ledger returns a pack's progress, for a checkpoint.
func (v *Virtual) Ledger(pack int) *driver.Restored { return v.job.Ledger(pack) }

// Running returns none: an action takes no time in which it could be seen.
func (v *Virtual) Running() []driver.Running { return nil }

// Now returns the virtual time.
func (v *Virtual) Now() time.Duration { return v.w.now }

// Close ends the cluster.
func (v *Virtual) Close() error {
	v.carryOut(v.job.Cancel())
	return nil
}

// engineWorker folds for real what the timeline says has been folded.
type engineWorker struct {
	engine *executor.Engine
	slots  int
	folds  map[int]*executor.Fold
	leased map[int]*executor.LeasedFold
}

func (e *engineWorker) plan(p *wire.Prepare) *executor.Planned { return e.engine.Plan(p) }

func (e *engineWorker) fetch(h *wire.Hold) *executor.Fetched {
	return e.engine.Fetch(context.Background(), h)
}

func (e *engineWorker) act(t *wire.RunTask) *wire.TaskResult {
	r := e.engine.Act(context.Background(), t)
	r.BusyNs = 0 // how long it took is of another clock
	return r
}

func (e *engineWorker) begin(r *executor.Run) (func(int) (int64, int64), error) {
	f, err := e.engine.Begin(r, e.slots)
	if err != nil {
		return nil, err
	}
	e.folds[r.ID] = f
	return func(i int) (int64, int64) { return f.Tasks[i].Rows(), f.Tasks[i].Left() }, nil
}

func (e *engineWorker) progress(r *executor.Run, counts []int64) []int64 {
	f := e.folds[r.ID]
	if !r.Step.Entries {
		return counts
	}
	for i, n := range counts {
		counts[i] = f.Tasks[i].ProgressAt(n)
	}
	return counts
}

func (e *engineWorker) finish(r *executor.Run, counts []int64, skip map[plan.SplitID]bool,
	busy time.Duration) *executor.Folded {
	f := e.folds[r.ID]
	delete(e.folds, r.ID)
	for i, n := range counts {
		if _, err := f.Tasks[i].Advance(n); err != nil {
			return &executor.Folded{Run: r.ID, Err: err}
		}
	}
	for k := range f.BySlot {
		if err := f.FinishSlot(k, skip, busy/time.Duration(len(f.BySlot))); err != nil {
			return &executor.Folded{Run: r.ID, Err: err}
		}
	}
	return f.Result(r.ID, skip)
}

func (e *engineWorker) beginLeased(r *executor.Run) error {
	f, err := e.engine.BeginLeased(r, 1)
	e.leased[r.ID] = f
	return err
}

func (e *engineWorker) rowsOf(r *executor.Run, l *wire.Lease) int64 {
	rows, _ := e.leased[r.ID].RowsOf(l)
	return rows
}

func (e *engineWorker) failed(*executor.Run, *wire.Lease) *executor.Folded { return nil }

func (e *engineWorker) addStates(r *executor.Run, states []*wire.Part) { e.leased[r.ID].Add(states) }

func (e *engineWorker) finishLeased(r *executor.Run, had []*wire.Lease, include []uint32,
	busy time.Duration) *executor.Folded {
	f := e.leased[r.ID]
	delete(e.leased, r.ID)
	page := runner.NewPage(1, nil)
	wanted := map[uint32]bool{}
	for _, id := range include {
		wanted[id] = true
	}
	for _, l := range had {
		if !wanted[l.Id] {
			continue
		}
		if _, err := f.Fold(0, l, page, nil); err != nil {
			return f.Failed(r.ID, l, err)
		}
	}
	out := f.Result(r.ID, include)
	out.Busy = busy
	return out
}

// Arrival returns when a message that leaves at a time arrives at an executor, by its number, or at the driver (below
// 0), where it has all links to itself.
func (v *Virtual) Arrival(from, to int, at plan.Time, bytes int64) plan.Time {
	for _, end := range [2]int{from, to} {
		if end < 0 {
			at += v.law.DriverLink(bytes)
		} else {
			at = v.law.Send(end, at, bytes, 2*bandwidth) // each end has its link
		}
	}
	return at + v.law.Latency(messageDelay)
}

// Pass lets time pass in which no step is run.
func (v *Virtual) Pass(d time.Duration) {
	over := false
	v.w.At(v.w.now+d, func() { over = true })
	for !over && v.w.Next() {
	}
}
