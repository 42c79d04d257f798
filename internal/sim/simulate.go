package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/prioritizer"
)

// Options of a simulated run. The zero value of a field is drawn from the
// seed.
type Options struct {
	Steps     int // default 50
	Executors int
	PerNode   int // splits an executor
	Faultless bool
	Bug       mutant.Bug
}

// Result is what a simulated run came to.
type Result struct {
	Seed       uint64
	Steps      int
	Virtual    time.Duration
	Faults     map[string]int // how often each kind fired
	Violations []string
}

// Sim is one simulated cluster with faults, and the oracle that watches it.
type Sim struct {
	w        *World
	rng      *rand.Rand
	opt      Options
	cfg      driver.JobConfig
	job      *driver.Job
	upTo     [][]int64 // entries of the rows before each position, by split; nil where progress is counted in rows
	clock    clock     // of the job's process
	nodes    map[plan.ExecutorID]*node
	order    []*node
	rows     []int64
	bytes    []int64
	pieces   []int
	stateful bool // something lives with the rows
	speed    map[plan.ExecutorID]float64
	link     float64 // bytes per second between executors, where links are slow
	wakes    map[plan.Time]bool
	last     map[string]plan.Time
	result   Result
	oracle   *oracle
	opened   bool
	over     bool
	began    plan.Time // of the step in progress
	busy     bool
	kept     *kept // what a restart of the job goes on from
	keptAt   plan.Time
}

// kept is a job's state as it is written down at a commit, at most every so
// often.
type kept struct {
	ledger *driver.Restored
	steps  int
	merged []int64 // the oracle's account at that time
}

// keepEvery is the shortest time between two states that are kept.
const keepEvery = 100 * time.Millisecond

// Simulate runs one seed.
func Simulate(seed uint64, opt Options) *Result {
	s := &Sim{w: &World{}, rng: rand.New(rand.NewPCG(seed, 0x766f6c6c6579)), opt: opt, nodes: map[plan.ExecutorID]*node{},
		speed: map[plan.ExecutorID]float64{}, wakes: map[plan.Time]bool{}, last: map[string]plan.Time{}}
	s.result = Result{Seed: seed, Faults: map[string]int{}}
	s.draw()
	if seed%3 == 0 {
		s.drawEntries()
	}
	s.oracle = newOracle(s)
	s.run()
	s.result.Virtual = s.w.now
	return &s.result
}

func (s *Sim) fired(kind string) { s.result.Faults[kind]++ }

func (s *Sim) violate(format string, args ...any) {
	if len(s.result.Violations) < 10 {
		s.result.Violations = append(s.result.Violations, fmt.Sprintf(format, args...))
	}
}

func (s *Sim) between(lo, hi int) int { return lo + s.rng.IntN(hi-lo+1) }

func (s *Sim) span(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)+1))
}

// draw makes the cluster, the data and the policy from the seed.
func (s *Sim) draw() {
	if s.opt.Steps == 0 {
		s.opt.Steps = 50
	}
	executors := s.opt.Executors
	if executors == 0 {
		executors = s.between(8, 14)
	}
	per := s.opt.PerNode
	if per == 0 {
		per = s.between(1, 4)
	}
	s.stateful = s.rng.IntN(2) == 0
	for range executors * per {
		n := int64(s.between(100, 3000))
		if s.rng.IntN(12) == 0 {
			n = int64(s.between(0, 15))
		}
		s.rows, s.bytes = append(s.rows, n), append(s.bytes, n*100)
		s.pieces = append(s.pieces, 1<<s.rng.IntN(5))
		if s.stateful {
			s.pieces[len(s.pieces)-1] = 1
		}
	}
	sync := abss.Config{Policy: abss.Policy(s.rng.IntN(5)), Ratio: 0.3 + 0.7*s.rng.Float64(), StepTimeout: 20 * time.Second, Grace: 5 * time.Millisecond}
	if s.rng.IntN(8) == 0 {
		sync.Ratio = 1
	}
	s.cfg = driver.JobConfig{ID: "sim", Executors: executors - s.between(0, 2), Sync: sync, FixedCursors: s.rng.IntN(6) == 0,
		Exchange: prioritizer.ExchangeConfig{Mode: prioritizer.Mode(s.rng.IntN(4)), Threshold: int64(s.between(1, 4))},
		MaxWait:  30 * time.Second, Mutant: s.opt.Bug}
	s.cfg.Schedule.MaxTaskFailures, s.cfg.Schedule.MaxExecutorFailures, s.cfg.Schedule.Mutant = 50, 6, s.opt.Bug
	if sync.Policy == abss.Steal && s.rng.IntN(4) == 0 {
		s.cfg.BatchFraction = 0.2 + 0.6*s.rng.Float64()
	}
	if s.rng.IntN(3) == 0 {
		s.link = 1e5 * (1 + 20*s.rng.Float64())
	}
	s.cfg.Schedule.Exclusion = s.span(50*time.Millisecond, time.Second)
	s.cfg = s.cfg.EnsureDefaults()
	s.clock = s.skewed()
	s.job = driver.NewJob(s.cfg, s.clock.at(0))
	for i := range executors {
		s.addNode(i, s.between(1, 2))
	}
}

func (s *Sim) addNode(i, slots int) {
	id := plan.ExecutorID(fmt.Sprintf("e%d", i))
	n := &node{w: s.w, id: id, slots: slots, runs: map[int]*run{}, fetches: map[uint32]int{}, cut: map[string]plan.Time{}, clock: s.skewed(), up: true}
	s.speed[id] = 50_000 * (0.5 + 3.5*s.rng.Float64())
	n.spend = func(_ int, at plan.Time, rows int64) plan.Time {
		return at + plan.Time(float64(rows)/s.speed[id]*float64(time.Second))
	}
	n.fetchT = func(h *wire.Hold) plan.Time { return s.fetchTime(h) }
	n.send = func(m *wire.ToDriver) { s.toDriver(n, m) }
	n.overlap = func(h *wire.Hold) {
		s.violate("one fetch: %s fetches split %d a second time while it is on its way", id, h.Split)
	}
	s.nodes[id] = n
	s.order = append(s.order, n)
	s.boot(n)
	at := plan.Time(0)
	if i >= s.cfg.Executors {
		at = s.span(time.Millisecond, time.Second)
		s.fired("late join")
	}
	s.w.At(at, func() { s.join(n) })
}

// boot gives a node a fresh agent that holds nothing.
func (s *Sim) boot(n *node) {
	n.agent = executor.NewAgent(n.id, n.slots, s.opt.Bug)
	w := &countingWorker{s: s, n: n, held: map[uint32]bool{}, rng: s.rng, states: map[uint32][]countedState{}, sent: map[int][]*wire.Part{}, bases: map[[2]int]uint64{}}
	if !s.opt.Faultless {
		w.failing = 0.1
	}
	n.work = w
}

func (s *Sim) join(n *node) {
	if n.up && !s.over {
		s.step(driver.Event{Joined: &driver.Joined{Executor: n.id, Slots: n.slots}})
	}
}

// fetchTime is long on a slow disk, and over a slow link.
func (s *Sim) fetchTime(h *wire.Hold) plan.Time {
	t := transfer(int(h.Bytes))
	if h.From != "" && s.link > 0 {
		s.fired("slow link")
		t += plan.Time(float64(h.Bytes) / s.link * float64(time.Second))
	}
	if !s.opt.Faultless && s.rng.IntN(20) == 0 {
		s.fired("slow disk")
		t += s.span(10*time.Millisecond, 400*time.Millisecond)
	}
	return t
}

// step lets the job see an event and carries out what it says.
func (s *Sim) step(ev driver.Event) {
	for _, c := range s.job.Step(ev, s.clock.at(s.w.now)) {
		switch {
		case c.Send != nil:
			s.toExecutor(c.Send)
		case c.WakeAt > 0:
			s.wake(c.WakeAt)
		case c.Failed != nil:
			s.over = true
			s.violate("step %d: the job failed: %v", s.result.Steps, c.Failed)
		case c.Ready:
			s.later(0, s.openPack)
		case c.PackOpen != nil:
			s.opened = true
			if s.kept != nil {
				s.step(driver.Event{Restore: s.kept.ledger})
			}
			s.later(0, s.nextStep)
		case c.Excluded != nil:
			if c.Excluded.Why == "" {
				s.fired("readmission")
			} else {
				s.fired("exclusion")
			}
		case c.StepDone != nil:
			s.stepDone(c.StepDone)
		}
	}
}

func (s *Sim) wake(at plan.Time) {
	if s.wakes[at] {
		return
	}
	s.wakes[at] = true
	s.w.At(s.clock.world(at), func() {
		delete(s.wakes, at)
		if !s.over {
			s.step(driver.Event{})
		}
	})
}

func (s *Sim) openPack() {
	info := &driver.PackInfo{Rows: s.rows, Entries: s.entries(), Bytes: s.bytes, SHA256: make([]plan.Digest, len(s.rows))}
	for i := range info.SHA256 {
		info.SHA256[i] = plan.DigestOf([]byte{byte(i), byte(i >> 8)})
	}
	s.step(driver.Event{Pack: info})
}

// drawEntries gives rows from one to nine entries each, in which progress is counted.
func (s *Sim) drawEntries() {
	for i, n := range s.rows {
		sums := make([]int64, n+1)
		for p := range n {
			sums[p+1] = sums[p] + 1 + (p*p+int64(i))%9
		}
		s.upTo = append(s.upTo, sums)
	}
}

// entries are those of each split; nil where progress is counted in rows.
func (s *Sim) entries() (out []int64) {
	for i, sums := range s.upTo {
		out = append(out, sums[s.rows[i]])
	}
	return out
}

// progress is what n rows of a split count for, from a cursor on.
func (s *Sim) progress(step *wire.StartStep, split int, cursor, n int64) int64 {
	if !step.Entries {
		return n
	}
	sums, rows := s.upTo[split], s.rows[split]
	end := cursor + n
	return sums[min(end, rows)] - sums[cursor] + sums[max(0, end-rows)]
}

// nextStep begins a step; every tenth is an uncut pass.
func (s *Sim) nextStep() {
	if s.over {
		return
	}
	s.began, s.busy = s.w.now, true
	train := s.result.Steps%10 != 9
	req := &driver.StepRequest{Train: train, Pieces: s.pieces, Entries: s.upTo != nil}
	if train && s.stateful {
		req.Node, req.State = statefulNode, true
	}
	s.step(driver.Event{Step: req})
}

func (s *Sim) stepDone(r *driver.StepReport) {
	s.busy = false
	s.oracle.check(r)
	if r.Train {
		s.step(driver.Event{Signal: &driver.Signal{Spread: s.rng.Float64(), Norm: s.rng.Float64()}})
	}
	s.result.Steps++
	if s.result.Steps >= s.opt.Steps {
		s.over = true
		return
	}
	if s.keptAt == 0 || s.w.now-s.keptAt >= keepEvery {
		s.keep()
	}
	s.later(100*time.Microsecond, s.nextStep)
}

// keep writes the job's state down.
func (s *Sim) keep() {
	s.keptAt = s.w.now
	s.kept = &kept{ledger: s.job.Ledger(0), steps: s.result.Steps, merged: slices.Clone(s.oracle.merged)}
}

// later schedules something that the job's process does, unless that has died
// by then.
func (s *Sim) later(after plan.Time, do func()) {
	life := s.cfg.Life
	s.w.At(s.w.now+after, func() {
		if s.cfg.Life == life {
			do()
		}
	})
}

// run lets things happen until the job is over. A world in which nothing
// happens any more, or in which a step lasts longer than all its bounds, hangs.
func (s *Sim) run() {
	if !s.opt.Faultless {
		s.scheduleFaults()
	}
	limit := 3*s.cfg.Sync.StepTimeout + s.cfg.MaxWait
	for !s.over {
		if !s.w.Next() {
			s.violate("invariant 9: nothing is left to happen in step %d", s.result.Steps)
			return
		}
		if s.busy && s.w.now > s.began+limit {
			s.violate("invariant 9: step %d lasts longer than every bound", s.result.Steps)
			return
		}
		if len(s.result.Violations) > 0 && s.opt.Bug != mutant.None {
			return
		}
	}
}

// toExecutor and toDriver send over links that delay, and sometimes reorder,
// duplicate or lose.
func (s *Sim) toExecutor(m *driver.Outgoing) {
	n := s.nodes[m.To]
	life := n.life
	s.carry("to "+string(m.To), m.Body, false, n, func() {
		if n.up && n.life == life {
			n.after(s.w.now, func() { n.step(executor.Event{Message: m.Body}) })
		}
	})
}

func (s *Sim) toDriver(n *node, m *wire.ToDriver) {
	_, progress := m.Body.(*wire.ToDriver_Progress)
	_, prepared := m.Body.(*wire.ToDriver_Prepared)
	conn, life := n.conn, s.cfg.Life
	s.carry("from "+string(n.id), m, progress, n, func() {
		if (prepared || life != s.cfg.Life && s.opt.Bug != mutant.TermUnchecked && holding(m)) && n.conn != conn {
			return // its connection is gone, and the executor with it
		}
		if !s.over {
			s.step(driver.Event{Message: &driver.Message{From: n.id, Body: m}})
		}
	})
}

// holding says whether a message is about splits that a runner holds, which
// has no epoch: its connection vouches for it.
func holding(m *wire.ToDriver) bool { return m.GetHolding() != nil }

// carry delivers a message. Progress is lost silently, since the next report
// makes up for it; the loss of any other message breaks the connection.
func (s *Sim) carry(link string, m proto.Message, progress bool, n *node, deliver func()) {
	at := s.w.now + transfer(proto.Size(m))
	if until := n.cut[link[:2]]; until > at {
		at = until // the system sends again until the way is open
	}
	if s.opt.Faultless {
		at = max(at, s.last[link])
		s.last[link] = at
		s.w.At(at, deliver)
		return
	}
	switch k := s.rng.IntN(400); {
	case k < 4:
		s.fired("duplicate")
		s.w.At(at+s.span(0, 3*time.Millisecond), deliver)
	case k < 12:
		s.fired("reorder")
		at += s.span(0, 5*time.Millisecond)
	case k < 20:
		s.fired("delay")
		at += s.span(time.Millisecond, 60*time.Millisecond)
	case k < 24 && progress:
		s.fired("loss")
		return
	case k == 24 && s.opened:
		s.fired("connection lost")
		s.breakConnection(n)
		return
	}
	s.w.At(at, deliver)
}
