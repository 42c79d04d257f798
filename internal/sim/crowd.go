package sim

import (
	"fmt"
	"runtime"
	"slices"
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

// CrowdConfig describes a cluster without faults of any number of executors: what its steps cost beside the rows that
// they fold is what it is for. Decisions, messages and merges are real; rows are counted, and time is computed.
type CrowdConfig struct {
	Job         driver.JobConfig
	Executors   int
	Splits      int // in all
	Rows        int64
	Accumulator int // bytes of a result
	Law         *pace.Law
	FanIn       int // of a tree of executors that merge results on their way; 0: each sends its own to the driver
	// Clock measures what the driver's work takes on this machine: decisions, coding of messages, merging.
	Clock func() time.Duration
	// Over, where it is not nil, ends the steps with an error.
	Over func() error
}

// CrowdStep is what a step cost.
type CrowdStep struct {
	Took     time.Duration // computed, with what merging takes on its way
	Ideal    time.Duration // its rows, on executors that are always busy
	Deciding time.Duration // of the driver, measured
	Coding   time.Duration // of messages from and to the driver, measured
	Merging  time.Duration // of the driver, measured
	Sent     int64         // bytes, by the driver
	Received int64
	Messages int // to and from the driver
	Parts    int // subtrees that the driver merges
	Hops     int // of a result on its way to the driver
}

// crowd runs such a cluster.
type crowd struct {
	cfg   CrowdConfig
	w     *World
	job   *driver.Job
	nodes map[plan.ExecutorID]*node
	order []*node
	rows  []int64
	wakes map[plan.Time]bool
	last  map[string]plan.Time
	link  [2]plan.Time  // when the driver's has passed on what was sent before
	ideal time.Duration // of all rows
	step  CrowdStep
	got   driver.Command
	have  bool
	folds map[plan.ExecutorID]folded // results of the step, where others merge them
}

// Crowd runs steps over a cluster and returns what each cost, and how many bytes of memory the driver's state has.
func Crowd(c CrowdConfig, steps int) (out []CrowdStep, heap int64, err error) {
	before := heapOf()
	s := &crowd{cfg: c, w: &World{}, nodes: map[plan.ExecutorID]*node{}, wakes: map[plan.Time]bool{},
		last: map[string]plan.Time{}, job: driver.NewJob(c.Job, 0)}
	for range c.Splits {
		s.rows = append(s.rows, c.Rows)
	}
	s.ideal = c.Law.Balance(c.Rows*int64(c.Splits), c.Executors, 1)
	for i := range c.Executors {
		s.add(i)
	}
	if err := s.open(); err != nil {
		return nil, 0, err
	}
	pieces := slices.Repeat([]int{piecesOfCrowd}, c.Splits)
	for range steps {
		if err := s.one(pieces); err != nil {
			return nil, 0, err
		}
		out = append(out, s.step)
	}
	job := s.job
	*s = crowd{}
	heap = heapOf() - before
	runtime.KeepAlive(job)
	return out, heap, nil
}

// piecesOfCrowd is how many pieces a split has that may be leased.
const piecesOfCrowd = 4

func heapOf() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (s *crowd) add(i int) {
	id := plan.ExecutorID(fmt.Sprintf("e%d", i))
	n := &node{w: s.w, id: id, slots: 1, agent: executor.NewAgent(id, 1), runs: map[int]*run{}, up: true}
	n.work = &crowdWorker{s, n}
	n.spend = func(slot int, at plan.Time, rows int64) plan.Time { return s.cfg.Law.Spend(i, slot, 1, at, rows) }
	n.fetchT = func(h *wire.Hold) plan.Time { return fetchTime(s.cfg.Law, i, h) }
	n.send = func(m *wire.ToDriver) { s.toDriver(n, m) }
	s.nodes[id] = n
	s.order = append(s.order, n)
	s.w.At(0, func() { s.see(driver.Event{Joined: &driver.Joined{Executor: id, Slots: 1}}) })
}

// open opens the pack.
func (s *crowd) open() error {
	if err := s.await(); err != nil { // the executors
		return err
	}
	info := &driver.PackInfo{Node: 1, Rows: s.rows, SHA256: make([]plan.Digest, len(s.rows))}
	for i := range s.rows {
		info.Bytes, info.SHA256[i] = append(info.Bytes, s.cfg.Rows*bytesOfRow), splitHash(i)
	}
	s.see(driver.Event{Pack: info})
	return s.await()
}

// bytesOfRow is what a row is to send to another executor.
const bytesOfRow = 100

func splitHash(i int) plan.Digest { return plan.DigestOf(fmt.Appendf(nil, "split %d", i)) }

// one runs a step, and checks that each row is in its result once.
func (s *crowd) one(pieces []int) error {
	began := s.w.now
	s.step, s.folds = CrowdStep{}, map[plan.ExecutorID]folded{}
	s.see(driver.Event{Step: &plan.StepRequest{Train: true, Pieces: pieces}})
	if err := s.await(); err != nil {
		return err
	}
	report := s.got.StepDone
	if report == nil {
		return fault.Newf(fault.Internal, "run", "a step of the crowd", "the driver says something else")
	}
	root, err := s.merge(report)
	if err != nil {
		return err
	}
	want := float64(report.Merged)
	if !s.cfg.Job.Sync.Policy.Whole() {
		root, want = nil, 0 // its parts stand for all rows of their splits
	}
	if root != nil && root.Value.(*total).rows != want {
		return fault.Newf(fault.Internal, "merge", "the results", "%v of %v rows", root.Value.(*total).rows, want)
	}
	s.step.Took = s.w.now - began
	s.step.Ideal = s.ideal * plan.Time(report.Merged) / plan.Time(s.cfg.Rows*int64(s.cfg.Splits))
	return nil
}

// merge completes the merge tree, of what executors have sent or of what others have merged on the way.
func (s *crowd) merge(r *driver.StepReport) (*runner.Acc, error) {
	parts := r.Outcome.Parts
	if s.cfg.FanIn > 1 {
		parts = s.gather()
	}
	s.step.Parts = len(parts)
	var root *runner.Acc
	var err error
	s.step.Merging += s.timed(func() {
		all := make([]runner.Part, len(parts))
		for i, p := range parts {
			all[i] = runner.Part{Level: p.Level, Index: p.Index, Acc: &runner.Acc{Value: decodeTotal(p.Data)}}
		}
		root, err = runner.Complete(adder{s.cfg.Accumulator}, len(s.rows), all, func(int, *runner.Acc) {})
	})
	return root, err
}

// timed returns what something takes on this machine.
func (s *crowd) timed(do func()) time.Duration {
	began := s.cfg.Clock()
	do()
	return s.cfg.Clock() - began
}

func (s *crowd) see(ev driver.Event) {
	var cmds []driver.Command
	s.step.Deciding += s.timed(func() { cmds = s.job.Step(ev, s.w.now) })
	for _, c := range cmds {
		switch {
		case c.Send != nil:
			s.toExecutor(c.Send)
		case c.WakeAt > 0:
			s.wake(c.WakeAt)
		case c.Excluded != nil:
		default:
			s.got, s.have = c, true
		}
	}
}

func (s *crowd) wake(at plan.Time) {
	if s.wakes[at] {
		return
	}
	s.wakes[at] = true
	s.w.At(at, func() {
		delete(s.wakes, at)
		s.see(driver.Event{})
	})
}

// await lets things happen until the job answers.
func (s *crowd) await() error {
	for events := 0; !s.have; events++ {
		if s.cfg.Over != nil && events%1024 == 0 {
			if err := s.cfg.Over(); err != nil {
				return err
			}
		}
		if s.w.Stuck() || !s.w.Next() {
			return fault.Newf(fault.Internal, "run", "the crowd", "nothing is left to happen")
		}
	}
	s.have = false
	return s.got.Failed
}

// coded returns a message as it arrives, and its bytes, which the driver codes.
func coded[M proto.Message](s *crowd, m, empty M) (M, int) {
	var raw []byte
	var err error
	s.step.Coding += s.timed(func() {
		if raw, err = proto.Marshal(m); err == nil {
			err = proto.Unmarshal(raw, empty)
		}
	})
	if err != nil {
		panic(err) // they are the driver's own
	}
	return empty, len(raw)
}

// arrival returns when a message over the driver's link, and then an ordered one, arrives.
func (s *crowd) arrival(link string, way, bytes int) plan.Time {
	s.step.Messages++
	s.link[way] = max(s.link[way], s.w.now) + plan.Time(float64(bytes)/bandwidth*float64(time.Second))
	at := max(s.last[link], s.link[way]+messageDelay)
	s.last[link] = at
	return at
}

func (s *crowd) toExecutor(m *driver.Outgoing) {
	body, bytes := coded(s, m.Body, &wire.ToExecutor{})
	s.step.Sent += int64(bytes)
	n := s.nodes[m.To]
	s.w.At(s.arrival("to "+string(m.To), outward, bytes), func() { n.step(executor.Event{Message: body}) })
}

func (s *crowd) toDriver(n *node, m *wire.ToDriver) {
	if r := m.GetResult(); r != nil && s.cfg.FanIn > 1 {
		s.folds[n.id] = folded{at: s.w.now, parts: r.Parts}
		r.Parts = nil
	}
	body, bytes := coded(s, m, &wire.ToDriver{})
	s.step.Received += int64(bytes)
	s.w.At(s.arrival("from "+string(n.id), inward, bytes), func() {
		s.see(driver.Event{Message: &driver.Message{From: n.id, Body: body}})
	})
}
