package driver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
)

// obedient is an executor that does what it is told at once. Of steps and tasks of node 9 it
// says nothing.
type obedient struct {
	conn wire.ExecutorConn
	fail atomic.Pointer[fault.Error] // what becomes of its tasks
	done chan struct{}               // its connection has ended
}

func attach(t *testing.T, d *Driver, name, version string) *obedient {
	down, up := wire.Pipe()
	d.Attach(down)
	o := &obedient{conn: up, done: make(chan struct{})}
	o.say(&wire.ToDriver{Body: &wire.ToDriver_Register{Register: &wire.Register{Executor: name, Slots: 2,
		Version: version}}})
	go o.serve()
	return o
}

func (o *obedient) say(m *wire.ToDriver) { _ = o.conn.Send(m) }

func (o *obedient) failure() *wire.Fault {
	if err := o.fail.Load(); err != nil {
		return wire.FromError(err)
	}
	return nil
}

func (o *obedient) serve() {
	defer close(o.done)
	for {
		m, err := o.conn.Recv()
		if err != nil {
			return
		}
		switch b := m.Body.(type) {
		case *wire.ToExecutor_Prepare:
			made := &wire.Prepared{Fingerprint: b.Prepare.Fingerprint}
			o.say(&wire.ToDriver{Body: &wire.ToDriver_Prepared{Prepared: made}})
		case *wire.ToExecutor_Hold:
			o.say(&wire.ToDriver{Body: &wire.ToDriver_Holding{Holding: &wire.Holding{Pack: b.Hold.Pack,
				Split: b.Hold.Split}}})
		case *wire.ToExecutor_StartStep:
			r := &wire.Result{Step: b.StartStep.Step, Fault: o.failure()}
			for _, a := range b.StartStep.Tasks {
				r.Coverage = append(r.Coverage, &wire.Coverage{Split: a.Split, Attempt: a.Attempt, Epoch: a.Epoch,
					Cursor: a.Cursor, Count: 10, Folded: 10})
			}
			if b.StartStep.Node != 9 {
				o.say(&wire.ToDriver{Body: &wire.ToDriver_Result{Result: r}})
			}
		case *wire.ToExecutor_RunTask:
			if b.RunTask.Node != 9 {
				o.say(&wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Call: b.RunTask.Call,
					Partition: b.RunTask.Partition, Data: []byte("done"), Fault: o.failure()}}})
			}
		}
	}
}

func closed(t *testing.T, d *Driver) {
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func packOf(splits int) *PackInfo {
	p := &PackInfo{SHA256: make([]plan.Digest, splits)}
	for range splits {
		p.Rows, p.Bytes = append(p.Rows, 10), append(p.Bytes, 10)
	}
	return p
}

// TestADriverRunsAJob: everything that a session asks for is answered, and each connection ends with it.
func TestADriverRunsAJob(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := NewDriver(JobConfig{ID: "job", Executors: 2}, hclog.NewNullLogger())
	a := attach(t, d, "a", version.Oldest)
	if old := attach(t, d, "old", "volley/0"); <-old.done != struct{}{} {
		t.Error("another version is taken")
	}
	b := attach(t, d, "b", version.Oldest)
	if err := d.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := d.Slots(); n != 4 {
		t.Errorf("%d slots", n)
	}
	for want := range 2 {
		if n, err := openPack(ctx, d, packOf(4)); err != nil || n != want {
			t.Errorf("pack %d: %v", n, err)
		}
	}
	d.Restore(&Restored{Pack: 1, Steps: 7})
	d.Signal(Signal{Spread: 2, Norm: 1})
	if r, err := runStep(ctx, d, &plan.StepRequest{Train: true, Pack: 1}); err != nil || r.Merged != 40 ||
		r.Number != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	if l := d.Ledger(1); l.Steps != 8 || l.Entries[3].Merged != 10 {
		t.Errorf("%+v", l)
	}
	if out, err := runCall(ctx, d, &plan.CallRequest{Pack: -1, Args: make([][]byte, 9)}); err != nil ||
		len(out.Data) != 9 ||
		string(out.Data[8]) != "done" {
		t.Errorf("%+v, %v", out, err)
	}
	drained := make(chan plan.ExecutorID, 1)
	d.Drain("a", func(id plan.ExecutorID) { drained <- id })
	if id := <-drained; id != "a" {
		t.Errorf("%s is drained", id)
	}
	if r, err := runStep(ctx, d, &plan.StepRequest{Train: true, Pack: 0}); err != nil ||
		r.Executors[r.Placement[0]] != "b" {
		t.Errorf("%+v, %v", r, err)
	}
	again := attach(t, d, "b", version.Oldest)
	<-b.done
	closed(t, d)
	<-a.done
	<-again.done
	if _, err := runStep(ctx, d, &plan.StepRequest{}); fault.KindOf(err) != fault.Cancelled || d.Slots() != 0 ||
		d.Ledger(0) != nil {
		t.Errorf("closed, it says %v", err)
	}
}

// TestWhatIsGivenUpIsForgotten: its answer reaches nobody else.
func TestWhatIsGivenUpIsForgotten(t *testing.T) {
	d := NewDriver(JobConfig{ID: "job"}, hclog.NewNullLogger())
	defer closed(t, d)
	attach(t, d, "a", version.Oldest)
	ctx := context.Background()
	if _, err := openPack(ctx, d, packOf(1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		short, cancel := context.WithCancel(ctx)
		go d.onLoop(cancel) // after the request, or before
		if _, err := runStep(short, d, &plan.StepRequest{Node: 9}); fault.KindOf(err) != fault.Cancelled {
			t.Error(err)
		}
	}
	if r, err := runStep(ctx, d, &plan.StepRequest{Train: true}); err != nil || r.Merged != 10 {
		t.Errorf("%+v, %v", r, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	none := NewDriver(JobConfig{ID: "job"}, hclog.NewNullLogger())
	defer closed(t, none)
	if err := none.Start(over); fault.KindOf(err) != fault.Cancelled {
		t.Error(err)
	}
}

// TestAFailedJobSaysWhy, to those who wait and to those who ask later; an executor that fails too often
// is told of.
func TestAFailedJobSaysWhy(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cfg := JobConfig{ID: "job", Executors: 2}
	cfg.Schedule.MaxExecutorFailures, cfg.Schedule.Exclusion = 1, time.Nanosecond
	d := NewDriver(cfg, hclog.NewNullLogger())
	defer closed(t, d)
	bad, good := attach(t, d, "a", version.Oldest), attach(t, d, "b", version.Oldest)
	bad.fail.Store(fault.New(fault.NoResources, "fold", "it", errors.New("no memory")))
	if err := d.Start(ctx); err != nil {
		t.Fatal(err)
	}
	told := make(chan Exclusion, 8)
	d.OnExclusion(func(x *Exclusion) { told <- *x })
	if _, err := openPack(ctx, d, packOf(2)); err != nil {
		t.Fatal(err)
	}
	if r, err := runStep(ctx, d, &plan.StepRequest{Train: true}); err != nil || r.Retried != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if x := <-told; x.Executor != "a" || !strings.Contains(x.Why, "no memory") {
		t.Errorf("%+v", x)
	}
	if _, err := runStep(ctx, d, &plan.StepRequest{Train: true}); err != nil {
		t.Error(err)
	}
	if x := <-told; x.Executor != "a" || x.Why != "" {
		t.Errorf("%+v", x)
	}
	bad.fail.Store(fault.New(fault.UserCode, "run", "it", errors.New("a bug")))
	good.fail.Store(bad.fail.Load())
	for range 2 {
		if _, err := runCall(ctx, d, &plan.CallRequest{Pack: -1,
			Args: make([][]byte, 3)}); fault.KindOf(err) != fault.UserCode || !strings.Contains(err.Error(), "a bug") {
			t.Error(err)
		}
	}
}

// TestADriverWakesItsJob when that wants to be woken.
func TestADriverWakesItsJob(t *testing.T) {
	d := NewDriver(JobConfig{ID: "job", Gather: time.Millisecond, MaxWait: 2 * time.Millisecond}, hclog.NewNullLogger())
	defer closed(t, d)
	if err := d.Start(context.Background()); fault.KindOf(err) != fault.Timeout {
		t.Error(err)
	}
	attach(t, d, "late", version.Oldest)
}

// TestLateFailuresAreNoWarnings: of a task that another attempt has done, or of a call that is over.
func TestLateFailuresAreNoWarnings(t *testing.T) {
	var said strings.Builder
	d := NewDriver(JobConfig{ID: "job"}, hclog.New(&hclog.LoggerOptions{Output: &said, Level: hclog.Info}))
	a := attach(t, d, "a", version.Oldest)
	ctx := context.Background()
	if _, err := runCall(ctx, d, &plan.CallRequest{Pack: -1, Args: make([][]byte, 1)}); err != nil {
		t.Fatal(err)
	}
	gone := wire.FromError(fault.Newf(fault.LostInput, "read", "an output", "it is not here"))
	late := func(call uint64) *wire.ToDriver {
		return &wire.ToDriver{Body: &wire.ToDriver_TaskResult{TaskResult: &wire.TaskResult{Call: call, Fault: gone}}}
	}
	a.say(late(1))
	a.say(late(7))
	a.fail.Store(fault.New(fault.UserCode, "read", "a disk", errors.New("it hung")))
	_, _ = runCall(ctx, d, &plan.CallRequest{Pack: -1, Args: make([][]byte, 1)}) // messages are heard in order
	closed(t, d)
	if got := said.String(); strings.Contains(got, "it is not here") || !strings.Contains(got, "it hung") {
		t.Errorf("it says\n%s", got)
	}
}

func openPack(ctx context.Context, d *Driver, info *PackInfo) (int, error) {
	c, err := d.Ask(ctx, Event{Pack: info})
	if err != nil {
		return 0, err
	}
	return *c.PackOpen, nil
}

func runStep(ctx context.Context, d *Driver, req *plan.StepRequest) (*StepReport, error) {
	c, err := d.Ask(ctx, Event{Step: req})
	return c.StepDone, err
}

func runCall(ctx context.Context, d *Driver, req *plan.CallRequest) (*plan.CallOutcome, error) {
	c, err := d.Ask(ctx, Event{Call: req})
	return c.CallDone, err
}
