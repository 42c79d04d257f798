package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
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
	Until     string            // ends when this oracle has found something; "any" is each
	Trace     func(line string) // is told of everything that the job sees and says; may be nil
}

// Result is what a simulated run came to.
type Result struct {
	Seed       uint64
	Steps      int
	Virtual    time.Duration
	Faults     map[string]int // how often each kind fired
	Violations []Violation
	Ended      string // why the job failed, as it had to
}

// Sim is one simulated cluster with faults, and the oracles that watch it.
type Sim struct {
	w        *World
	rng      *rand.Rand
	odd      *rand.Rand // of laws that came later, so that the worlds of seeds stay what they were
	opt      Options
	cfg      driver.JobConfig
	law      laws
	job      *driver.Job
	clock    clock // of the job's process
	nodes    map[plan.ExecutorID]*node
	order    []*node
	packs    []*simPack
	opening  int // pack that is opened next
	speed    map[plan.ExecutorID]float64
	wakes    map[plan.Time]bool
	last     map[string]plan.Time
	result   Result
	oracle   *oracle
	watch    *watch
	retold   *retellWatch
	opened   bool
	over     bool
	made     plan.Time // the job's present life
	began    plan.Time // of the step in progress
	busy     bool
	harmed   plan.Time // when the last harm was done, stalls apart
	getting  bool      // the one that was stalled last has been asked for a split
	stalled  plan.Time // until when some node is
	actions  int       // of all lives
	poisonAt plan.Time
	results  []driver.Message // the last ones
	kept     *kept            // what a restart of the job goes on from
	keptAt   plan.Time
}

// kept is a job's state as it is written down at a commit, at most every so
// often.
type kept struct {
	ledgers []*driver.Restored
	steps   int
	account [][]account // the oracle's at that time
}

// keepEvery is the shortest time between two states that are kept.
const keepEvery = 100 * time.Millisecond

// Simulate runs one seed.
func Simulate(seed uint64, opt Options) *Result {
	s := &Sim{w: &World{}, rng: rand.New(rand.NewPCG(seed, 0x766f6c6c6579)), odd: rand.New(rand.NewPCG(seed, 0x6f6464)),
		opt: opt, nodes: map[plan.ExecutorID]*node{},
		speed: map[plan.ExecutorID]float64{}, wakes: map[plan.Time]bool{}, last: map[string]plan.Time{}}
	s.result = Result{Seed: seed, Faults: map[string]int{}}
	s.draw()
	s.run()
	s.result.Virtual = s.w.now
	return &s.result
}

func (s *Sim) fired(kind string) { s.result.Faults[kind]++ }

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
	s.law = s.drawLaws()
	for i := range s.law.packs {
		s.packs = append(s.packs, s.drawPack(i, max(1, executors*per/(i+1))))
	}
	s.drawPolicy(executors)
	s.clock = s.skewed()
	s.newJob(nil)
	for i := range executors {
		s.addNode(i, s.between(1, 2))
	}
}

func (s *Sim) drawPolicy(executors int) {
	sync := abss.Config{Policy: abss.Policy(s.rng.IntN(5)), Ratio: 0.3 + 0.7*s.rng.Float64(),
		StepTimeout: 20 * time.Second, Grace: 5 * time.Millisecond}
	if s.rng.IntN(8) == 0 {
		sync.Ratio = 1
	}
	s.cfg = driver.JobConfig{ID: "sim", Fingerprint: plan.DigestOf([]byte("plan")),
		Executors: executors - s.between(0, 2), Sync: sync, FixedCursors: s.rng.IntN(6) == 0,
		Exchange: prioritizer.ExchangeConfig{Mode: prioritizer.Mode(s.rng.IntN(4)), Threshold: int64(s.between(1, 4))},
		MaxWait:  30 * time.Second}
	if !s.law.tight {
		s.cfg.Schedule.MaxTaskFailures, s.cfg.Schedule.MaxExecutorFailures = 50, 6
	}
	if (sync.Policy == abss.Steal || sync.Policy == abss.BSP) && s.rng.IntN(4) == 0 {
		s.cfg.BatchFraction = 0.2 + 0.6*s.rng.Float64()
	}
	if s.law.hangs {
		s.cfg.TaskTimeout = time.Second + plan.Time(s.odd.Int64N(int64(3*time.Second)))
	}
	s.cfg.Schedule.Exclusion = s.span(50*time.Millisecond, time.Second)
	if s.result.Seed%2 == 0 {
		s.cfg.Schedule.Few = 2 // so that a cluster counts as large
	}
	if s.result.Seed%5 == 0 {
		s.cfg.Exchange.Bandwidth = 3e5 // so that results count as large
	}
	s.cfg = s.cfg.EnsureDefaults()
}

// newJob starts the job's process, from what was kept where something was.
func (s *Sim) newJob(from *kept) {
	s.cfg.Record = !s.opt.Faultless
	s.job = driver.NewJob(s.cfg, s.clock.at(s.w.now))
	s.retold = newRetellWatch(s)
	s.oracle = newOracle(s)
	s.opened, s.busy, s.opening, s.result.Steps = false, false, 0, 0
	if from != nil {
		s.result.Steps = from.steps
		for i := range from.account {
			s.oracle.packs[i] = slices.Clone(from.account[i])
		}
	}
	s.watch = newWatch(s)
	s.made = s.w.now
	s.wake(s.clock.at(s.w.now) + s.cfg.EnsureDefaults().Gather)
}

func (s *Sim) addNode(i, slots int) {
	id := plan.ExecutorID(fmt.Sprintf("e%d", i))
	n := &node{w: s.w, id: id, slots: slots, runs: map[int]*run{}, cut: map[string]plan.Time{}, clock: s.skewed(),
		up: true}
	s.speed[id] = 50_000 * (0.5 + 3.5*s.rng.Float64())
	n.spend = func(_ int, at plan.Time, rows int64) plan.Time {
		return at + plan.Time(float64(rows)/s.speed[id]*float64(time.Second))
	}
	n.fetchT = func(h *wire.Hold) plan.Time { return s.fetchTime(n, h) }
	n.reports = func(r *run, sample *executor.Sample, p *wire.Progress) { s.reported(n, r, sample, p) }
	n.acts = func(t *wire.RunTask) { s.runTask(n, t) }
	n.send = func(m *wire.ToDriver) { s.toDriver(n, m) }
	s.nodes[id] = n
	s.order = append(s.order, n)
	s.boot(n)
	at := plan.Time(0)
	if i >= s.cfg.Executors {
		at = s.span(time.Millisecond, time.Second)
		n.foreign = s.law.foreign && at > 500*time.Millisecond
		s.fired("late join")
	}
	s.w.At(at, func() { s.join(n) })
}

// boot gives a node a fresh agent that holds nothing.
func (s *Sim) boot(n *node) {
	n.agent = executor.NewAgent(n.id, n.slots)
	w := &countingWorker{s: s, n: n, life: s.cfg.Life, held: map[splitOf]bool{}, rng: s.rng,
		states: map[splitOf][]countedState{}, sent: map[int][]*wire.Part{},
		bases: map[[2]int]uint64{}, getting: map[splitOf]int{}}
	if !s.opt.Faultless {
		w.failing = 0.1
	}
	n.work, n.link = w, 0
}

// join has a node register. As the job's process has it, a node that registers again while it is
// connected is lost before.
func (s *Sim) join(n *node) {
	if n.up && !s.over {
		if n.joined == s.job {
			s.step(driver.Event{Lost: &driver.Lost{Executor: n.id, Why: "it registered again"}})
		}
		n.joined = s.job
		s.step(driver.Event{Joined: &driver.Joined{Executor: n.id, Slots: n.slots}})
	}
}

// fetchTime returns how long a fetch takes: long on a slow disk or a slow link, which splits share.
func (s *Sim) fetchTime(n *node, h *wire.Hold) plan.Time {
	t := transfer(int(h.Bytes))
	if s.law.link > 0 && h.From != "" {
		s.fired("slow link")
		n.link = max(n.link, s.w.now) + plan.Time(float64(h.Bytes)/s.law.link*float64(time.Second))
		t = n.link - s.w.now
	}
	if !s.opt.Faultless && s.rng.IntN(20) == 0 {
		s.fired("slow disk")
		t += s.span(10*time.Millisecond, 400*time.Millisecond)
	}
	return t
}

// step lets the job see an event and carries out what it says.
func (s *Sim) step(ev driver.Event) {
	now := s.clock.at(s.w.now)
	s.watch.before(ev, now)
	cmds := s.job.Step(ev, now)
	s.trace(ev, cmds, now)
	for _, c := range cmds {
		if c.StepDone != nil {
			s.busy = false
			s.oracle.check(c.StepDone)
			if s.cfg.Record {
				s.retold.stepDone(c.StepDone)
			}
			if s.watch.lease != nil {
				s.watch.lease.done(c.StepDone.Took)
			}
		}
	}
	s.watch.after(ev, cmds, now)
	for _, c := range cmds {
		s.carryOut(c)
	}
}

func (s *Sim) carryOut(c driver.Command) {
	switch {
	case c.Send != nil:
		s.toExecutor(c.Send)
	case c.WakeAt > 0:
		s.wake(c.WakeAt)
	case c.Failed != nil:
		s.over = true
	case c.Ready:
		s.later(0, s.openPack)
	case c.PackOpen != nil:
		s.packOpen()
	case c.Excluded != nil && c.Excluded.Why == "":
		s.fired("readmission")
	case c.Excluded != nil:
		s.fired("exclusion")
	case c.Drained != "":
		s.leave(s.nodes[c.Drained])
	case c.CallDone != nil:
		s.later(100*time.Microsecond, s.nextStep)
	case c.StepDone != nil:
		s.stepDone(c.StepDone)
	}
}

func (s *Sim) wake(at plan.Time) {
	if s.wakes[at] {
		return
	}
	s.wakes[at] = true
	wakes := s.wakes
	s.w.At(s.clock.world(at), func() {
		delete(wakes, at)
		if !s.over {
			s.step(driver.Event{})
		}
	})
}

func (s *Sim) openPack() { s.step(driver.Event{Pack: s.packs[s.opening].info()}) }

// packOpen goes on with the next pack, or with the first step.
func (s *Sim) packOpen() {
	if s.kept != nil {
		s.retold.again.Resumed(s.kept.ledgers[s.opening])
		s.step(driver.Event{Restore: s.kept.ledgers[s.opening]})
	}
	if s.opening++; s.opening < len(s.packs) {
		s.later(0, s.openPack)
		return
	}
	s.opened = true
	s.later(0, s.nextStep)
}

// limit returns how many rows of a split a step folds when it is not cut.
func (s *Sim) limit(train bool, batch float64, rows int64) int64 {
	if f := s.batch(train, batch); f < 1 {
		return min(rows, max(1, int64(math.Ceil(f*float64(rows)))))
	}
	return rows
}

// batch returns the share of each split that a step folds which asks for one, or for none by 0.
func (s *Sim) batch(train bool, asked float64) float64 {
	switch {
	case !train:
		return 1
	case asked > 0:
		return asked
	case s.cfg.BatchFraction > 0:
		return s.cfg.BatchFraction
	}
	return 1
}

// floor returns the count below which a split of n rows is not cut.
func (s *Sim) floor(n int64) int64 {
	return min(n, max(s.cfg.Sync.MinRows, int64(s.cfg.Sync.MinShare*float64(n))))
}

// leases reports whether a step is leased.
func (s *Sim) leases(req *plan.StepRequest) bool {
	policy, there := s.cfg.Sync.Policy, 0
	for _, ok := range s.watch.place.prepared {
		if ok {
			there++
		}
	}
	if policy == abss.Automatic {
		return there > 1 && s.watch.choice.Lease
	}
	return there > 1 && (policy == abss.Steal || !req.Train && policy != abss.BSP)
}

// nextStep begins a step; every tenth is an uncut pass, and before every seventh
// comes an action.
func (s *Sim) nextStep() {
	if s.over {
		return
	}
	if s.law.calls && s.result.Steps%7 == 3 && s.actions <= s.result.Steps {
		s.action()
		return
	}
	s.began, s.busy = s.w.now, true
	train := s.result.Steps%10 != 9
	p := s.packs[0]
	if len(s.packs) > 1 && s.result.Steps%3 == 1 {
		p = s.packs[1]
	}
	req := &plan.StepRequest{Pack: p.id, Train: train, Pieces: p.pieces, Entries: p.upTo != nil,
		Weighted: p.weighed != nil}
	if train && p.stateful {
		req.Node, req.State = statefulNode, true
	}
	if train && s.cfg.Sync.Policy == abss.Automatic && s.result.Steps%4 == 2 {
		req.Batch, req.Sample = 0.5, s.result.Steps%8 == 2
	}
	s.step(driver.Event{Step: req})
}

func (s *Sim) stepDone(r *driver.StepReport) {
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
	if s.law.unkept && s.result.Steps < 12 {
		return
	}
	s.keptAt = s.w.now
	s.kept = &kept{ledgers: s.ledgers(), steps: s.result.Steps, account: s.oracle.copyPacks()}
}

func (s *Sim) ledgers() (out []*driver.Restored) {
	for i := range s.packs {
		out = append(out, s.job.Ledger(i))
	}
	return out
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
		if s.w.Stuck() {
			s.violate("10.9", "time stands still")
			return
		}
		if !s.w.Next() {
			s.violate("10.9", "nothing is left to happen")
			return
		}
		if !s.opened && s.w.now > s.made+2*s.cfg.MaxWait {
			s.violate("10.9", "it does not begin")
			return
		}
		if s.busy && s.w.now > s.began+limit {
			s.violate("10.9", "it lasts longer than every bound")
			return
		}
		if s.found() {
			return
		}
	}
}

// found reports whether what is looked for has been found.
func (s *Sim) found() bool {
	return slices.ContainsFunc(s.result.Violations,
		func(v Violation) bool { return s.opt.Until == "any" || s.opt.Until == v.Oracle })
}

// toExecutor and toDriver send over links that delay, and sometimes reorder,
// duplicate or lose.
func (s *Sim) toExecutor(m *driver.Outgoing) {
	n := s.nodes[m.To]
	life := n.life
	if m.Body.GetInclude() != nil && s.law.stallOnce && n.up && n.hung <= s.w.now && s.living() > 2 &&
		s.rng.IntN(20) == 0 {
		s.law.stallOnce = false
		s.stall(n) // when it is to hand in its result
	}
	s.carry("to "+string(m.To), m.Body, false, n, func() {
		if n.up && n.life == life {
			n.after(s.w.now, func() { n.step(executor.Event{Message: m.Body}) })
		}
	})
}

func (s *Sim) toDriver(n *node, m *wire.ToDriver) {
	_, progress := m.Body.(*wire.ToDriver_Progress)
	conn, life := n.conn, s.cfg.Life
	if m.GetResult() != nil && s.law.unkept {
		s.linger(n, m)
	}
	s.carry("from "+string(n.id), m, progress, n, func() {
		if (m.GetPrepared() != nil || life != s.cfg.Life && vouched(m)) && n.conn != conn {
			return // its connection is gone, and the executor with it
		}
		if !s.over {
			s.step(driver.Event{Message: &driver.Message{From: n.id, Body: m}})
		}
	})
}

// lingering is how many results are remembered that may be on their way when the
// job's process dies.
const lingering = 20

// linger remembers a result.
func (s *Sim) linger(n *node, m *wire.ToDriver) {
	if len(s.results) == lingering {
		s.results = s.results[1:]
	}
	s.results = append(s.results, driver.Message{From: n.id, Body: m})
}

// arriveLate has results of this life of the job arrive in the next one.
func (s *Sim) arriveLate() {
	for _, m := range s.results {
		for range 4 {
			s.w.At(s.w.now+s.span(0, 250*time.Millisecond), func() {
				if !s.over {
					s.step(driver.Event{Message: &m})
				}
			})
		}
	}
	s.results = nil
}

// vouched reports whether a message is about splits that a runner holds, or of an
// action, which have no epoch: its connection vouches for it.
func vouched(m *wire.ToDriver) bool {
	return m.GetHolding() != nil || m.GetTaskResult() != nil || m.GetTaskProgress() != nil
}

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
