package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/runner"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// rack is a cluster in this process: a driver, and executors that speak the real
// protocol with it, of unequal memory and speed, to which harm is done.
type rack struct {
	*driver.Driver
	packs // what lies on this machine
	dir   string
	build func() *rdd.Graph
	ctx   context.Context
	end   context.CancelFunc
	wg    sync.WaitGroup
	tasks atomic.Int64 // that have begun
	drive sync.Mutex   // guards harm, made and machines
	harm  []harm
	made  int
	all   map[plan.ExecutorID]*machine
	draws *rand.Rand
	done  []string // what harm was done
}

// harm is something that is done when a number of tasks have begun.
type harm struct {
	at   int64
	what string
}

// The harms.
const (
	kill = "kill"      // an executor is gone, and another one joins
	stop = "stop"      // it does nothing for a while
	full = "full disk" // its next task cannot write
)

// machine is an executor.
type machine struct {
	id      plan.ExecutorID
	engine  *executor.Engine
	memory  int
	slots   int
	rate    int // rows a second, 0 being as many as it can
	link    int // bytes a second that it can be sent, 0 being as many as are there
	conn    wire.ExecutorConn
	end     context.CancelFunc
	dead    atomic.Bool
	stopped atomic.Pointer[chan struct{}] // closed when it goes on
	full    atomic.Int64                  // tasks that find the disk full
}

// Unequal machines.
var (
	memories = []int{1 << 12, 1 << 15, 1 << 18, 1 << 22, 256 << 20}
	rates    = []int{0, 0, 0, 50_000, 400_000}
	links    = []int{0, 0, 0, 1 << 20, 16 << 20}
)

// newRack starts the rack of a seed.
func newRack(ctx context.Context, dir string, seed uint64, g *rdd.Graph, build func() *rdd.Graph) (*rack, error) {
	r := &rack{dir: dir, build: build, all: map[plan.ExecutorID]*machine{}, draws: rand.New(rand.NewPCG(seed, 4))}
	r.ctx, r.end = context.WithCancel(ctx)
	executors := 1 + r.draws.IntN(4)
	for range r.draws.IntN(4) {
		r.harm = append(r.harm, harm{at: 1 + r.draws.Int64N(60), what: []string{kill, stop, full}[r.draws.IntN(3)]})
	}
	sources, err := g.Resolve(context.Background())
	if err != nil {
		return nil, err
	}
	r.Driver = driver.NewDriver(driver.JobConfig{ID: "soak", Fingerprint: g.Fingerprint(), Sources: sources,
		Executors: executors, MaxWait: time.Minute}, hclog.NewNullLogger())
	for range executors {
		if err := r.join(); err != nil {
			return nil, err
		}
	}
	return r, r.Start(ctx)
}

// join has another executor join.
func (r *rack) join() error {
	r.drive.Lock()
	defer r.drive.Unlock()
	pick := func(of []int) int { return of[r.draws.IntN(len(of))] }
	m := &machine{id: plan.ExecutorID(fmt.Sprint("e", r.made)), memory: pick(memories), slots: 1 + r.draws.IntN(2),
		rate: pick(rates), link: pick(links)}
	r.made++
	store, err := executor.OpenStore(filepath.Join(r.dir, string(m.id)))
	if err != nil {
		return err
	}
	m.engine = executor.NewEngine(m.id, slowed{r.build(), r, m}, store, r, reach{r, m})
	m.engine.TaskMemory, m.engine.Shared = m.memory, &executor.Shared{Room: int64(m.memory)}
	down, up := wire.Pipe()
	r.Attach(down)
	ctx, end := context.WithCancel(r.ctx)
	m.conn, m.end, r.all[m.id] = up, end, m
	e := executor.New(ctx, executor.Config{ID: m.id, Slots: m.slots}, m.engine, up)
	r.wg.Go(func() {
		_ = e.Serve() // it ends with the driver, or by force
		store.Close()
	})
	return nil
}

// String says what machines there were, and what was done to them.
func (r *rack) String() string {
	r.drive.Lock()
	defer r.drive.Unlock()
	out := ""
	for i := range r.made {
		m := r.all[plan.ExecutorID(fmt.Sprint("e", i))]
		out += fmt.Sprintf("  %s: %d bytes a task, %d slots, %d rows/s, link of %d bytes/s\n", m.id, m.memory, m.slots,
			m.rate, m.link)
	}
	return out + fmt.Sprintf("  harm: %v, done: %v, %d tasks\n", r.harm, r.done, r.tasks.Load())
}

// close ends everything and waits for it.
func (r *rack) close() {
	r.drive.Lock()
	for _, m := range r.all {
		m.goOn()
	}
	r.drive.Unlock()
	if r.Driver != nil {
		_ = r.Driver.Close()
	}
	r.end()
	r.wg.Wait()
}

// began does the harm that is due when a machine begins a task.
func (r *rack) began(m *machine) error {
	n := r.tasks.Add(1)
	r.drive.Lock()
	var due []string
	for _, h := range r.harm {
		if h.at == n {
			due = append(due, h.what)
			r.done = append(r.done, fmt.Sprint(h.what, " ", m.id, " at ", n))
		}
	}
	r.drive.Unlock()
	for _, what := range due {
		switch what {
		case kill:
			if err := r.join(); err != nil {
				return err
			}
			m.kill()
		case stop:
			m.stop(r.ctx)
		case full:
			m.full.Add(1)
		}
	}
	return nil
}

// kill ends a machine with all that it holds.
func (m *machine) kill() {
	m.dead.Store(true)
	m.conn.Close()
	m.end()
	m.goOn()
}

// stopFor is how long a machine does nothing.
const stopFor = 300 * time.Millisecond

func (m *machine) stop(ctx context.Context) {
	gate := make(chan struct{})
	if m.stopped.CompareAndSwap(nil, &gate) {
		context.AfterFunc(ctx, m.goOn)
		time.AfterFunc(stopFor, m.goOn)
	}
}

func (m *machine) goOn() {
	if gate := m.stopped.Swap(nil); gate != nil {
		close(*gate)
	}
}

// waits holds a task up for as long as its machine is stopped, and for a while.
func (m *machine) waits(ctx context.Context, d time.Duration) {
	if gate := m.stopped.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
		}
	}
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// slowed is the program as a machine runs it.
type slowed struct {
	executor.Program
	r *rack
	m *machine
}

func (p slowed) Task(ctx context.Context, node, part int, args []byte, packs runner.TaskContext) ([]byte, error) {
	if err := p.r.began(p.m); err != nil {
		return nil, err
	}
	p.m.waits(ctx, 0)
	if p.m.full.Load() > 0 && p.m.full.Add(-1) >= 0 {
		return nil, fault.New(fault.NoResources, "write", string(p.m.id), syscall.ENOSPC)
	}
	return p.Program.Task(ctx, node, part, args, watched{packs, ctx, p.m})
}

// watched is what a task reaches.
type watched struct {
	runner.TaskContext
	ctx context.Context
	m   *machine
}

func (w watched) Advance(rows int) {
	w.TaskContext.Advance(rows)
	var d time.Duration
	if w.m.rate > 0 {
		d = time.Duration(rows) * time.Second / time.Duration(w.m.rate)
	}
	w.m.waits(w.ctx, d)
}

// reach are the others as a machine reaches them.
type reach struct {
	*rack
	m *machine
}

func (r *rack) peer(id plan.ExecutorID) (*machine, error) {
	r.drive.Lock()
	defer r.drive.Unlock()
	if m := r.all[id]; m != nil && !m.dead.Load() {
		return m, nil
	}
	return nil, fault.Newf(fault.HolderLost, "reach", string(id), "it is gone")
}

// OpenMapOutput takes a copy of what a machine keeps, over a link.
func (r reach) OpenMapOutput(ctx context.Context, from executor.Peer, key shuffle.Key,
	span shuffle.Span) (io.ReadCloser, error) {
	m, err := r.peer(from.ID)
	if err != nil {
		return nil, err
	}
	in, err := m.engine.Store().Outputs.Open(key, span)
	if err != nil {
		return nil, fault.New(fault.LostInput, "read", string(from.ID), err)
	}
	defer in.Close()
	return r.m.engine.Store().Outputs.Spool(func(w io.Writer) error {
		_, err := io.Copy(w, linkReader{in, ctx, m, r.m})
		if errors.Is(err, errGone) {
			err = fault.New(fault.HolderLost, "reach", string(from.ID), err)
		}
		return err
	})
}

// FetchSplit sends a split.
func (r reach) FetchSplit(ctx context.Context, from executor.Peer, key pack.SplitKey, w io.Writer) error {
	m, err := r.peer(from.ID)
	if err != nil {
		return fault.New(fault.FetchFailed, "fetch from", string(from.ID), err)
	}
	return m.engine.Store().Splits.Send(key, w)
}

// linkReader reads what one machine sends another one.
type linkReader struct {
	in       io.Reader
	ctx      context.Context
	from, to *machine
}

var errGone = errors.New("the connection broke off")

func (l linkReader) Read(p []byte) (int, error) {
	l.from.waits(l.ctx, 0)
	if l.from.dead.Load() {
		return 0, errGone
	}
	n, err := l.in.Read(p[:min(len(p), 16<<10)])
	if l.to.link > 0 {
		l.to.waits(l.ctx, time.Duration(n)*time.Second/time.Duration(l.to.link))
	}
	return n, err
}
