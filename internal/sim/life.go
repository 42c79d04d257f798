package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// lifeSim is a driver's life: jobs, their processes, executors, a journal and disks, with
// faults, and the oracles that watch the lifecycle.
type lifeSim struct {
	w      *World
	rng    *rand.Rand
	opt    Options
	result Result
	law    lifeLaws
	cfg    driver.LifeConfig
	life   *driver.Life
	run    int // counts the driver's processes; odd while one is there
	watch  *lifeWatch

	journal driver.State    // that is durable
	pending []*lifePending  // entries that are not, in order
	applied plan.Time       // when the last of them is
	full    plan.Time       // until when the journal's disk is
	dirs    map[string]bool // on the disk; whether it was made for a submission that goes on
	jobs    map[string]*lifeWork
	execs   []*lifeExec
	number  uint64 // of tickets and connections
	asks    map[uint64]func(*driver.LifeReply)
	wakes   map[plan.Time]bool
	calm    bool // no more faults
	over    bool
}

// lifeLaws are what a life has of its own.
type lifeLaws struct {
	jobs     int
	trouble  plan.Time // how long there are faults
	deaths   int       // in a thousand steps of a process, of each kind
	rotten   bool      // the runners of some jobs end on some executors
	wholly   bool      // on all of them
	rotUntil plan.Time
	noRoom   plan.Time // when processes cannot be started for a while
	journal  int       // in a hundred entries, of each kind of fault
	crashes  int
	long     bool // all jobs take long
}

// lifeWork is a job as its own processes know it.
type lifeWork struct {
	need, done int // steps
	rotten     bool
	proc       *lifeProc
}

// lifeBase is the first moment of the world.
var lifeBase = time.Unix(1_700_000_000, 0)

// calmBound is how long jobs may take to end once there are no more faults.
const calmBound = 3 * time.Minute

// Both runs a seed's control plane and its driver's life, and adds up what they found.
func Both(seed uint64, opt Options) *Result {
	r, life := Simulate(seed, opt), SimulateLife(seed, opt)
	for k, n := range life.Faults {
		r.Faults[k] += n
	}
	r.Violations = append(r.Violations, life.Violations...)
	return r
}

// SimulateLife runs a driver's life under a seed.
func SimulateLife(seed uint64, opt Options) *Result {
	s := &lifeSim{w: &World{}, rng: rand.New(rand.NewPCG(seed, 0x6c696665)), opt: opt, dirs: map[string]bool{}, jobs: map[string]*lifeWork{},
		asks: map[uint64]func(*driver.LifeReply){}, wakes: map[plan.Time]bool{}, result: Result{Seed: seed, Faults: map[string]int{}}}
	s.watch = newLifeWatch(s)
	s.draw()
	s.start()
	s.schedule()
	s.play()
	s.result.Virtual = s.w.now
	return &s.result
}

func (s *lifeSim) fired(kind string) { s.result.Faults[kind]++ }

func (s *lifeSim) between(lo, hi int) int { return lo + s.rng.IntN(hi-lo+1) }

// ms is a time between two numbers of milliseconds.
func (s *lifeSim) ms(lo, hi int) plan.Time {
	return time.Duration(lo)*time.Millisecond + time.Duration(s.rng.Int64N(int64(hi-lo)*int64(time.Millisecond)+1))
}

// chance is true so many times in a thousand, while there are faults.
func (s *lifeSim) chance(permille int) bool { return !s.calm && s.rng.IntN(1000) < permille }

func (s *lifeSim) now() time.Time { return lifeBase.Add(s.w.now) }

func (s *lifeSim) draw() {
	s.law = lifeLaws{jobs: s.between(4, 8), trouble: s.ms(5_000, 70_000), deaths: s.between(0, 4), rotten: s.rng.IntN(2) == 0, wholly: s.rng.IntN(3) == 0,
		journal: s.between(0, 5), crashes: max(0, s.between(-2, 3))}
	if s.rng.IntN(2) == 0 {
		s.law.deaths = 0
	}
	if s.law.rotUntil = s.law.trouble; s.rng.IntN(2) == 0 {
		s.law.rotUntil = s.ms(500, 10_000)
	}
	s.law.noRoom = s.ms(0, int(s.law.trouble/time.Millisecond))
	if s.rng.IntN(6) == 0 { // long enough to be asked again after having been left alone
		s.law = lifeLaws{jobs: 4, trouble: 75 * time.Second, rotten: true, rotUntil: s.ms(1000, 8000), noRoom: 80 * time.Second, long: true}
	}
	s.cfg = driver.LifeConfig{Restarts: uint32(s.between(0, 3)), Keep: driver.Keep{Count: s.between(0, 3), Age: -1, Bytes: -1}}
	if s.rng.IntN(4) == 0 {
		s.cfg.Keep.Bytes = int64(s.between(0, 5000))
	}
	if s.rng.IntN(3) == 0 {
		s.dirs[fmt.Sprintf("job-%06d", s.between(1, 4))] = false // of a submission that could not be kept
	}
	for i := range s.between(1, 4) {
		s.execs = append(s.execs, &lifeExec{s: s, name: fmt.Sprintf("e%d", i), runners: map[string]uint64{}})
	}
}

// start starts the driver from what the journal durably has.
func (s *lifeSim) start() {
	s.run++
	s.asks, s.wakes = map[uint64]func(*driver.LifeReply){}, map[plan.Time]bool{}
	s.watch.restarted()
	s.life = driver.NewLife(s.cfg, s.journal.Clone())
	s.step(driver.LifeEvent{Began: true})
	for _, e := range s.execs {
		s.later(s.ms(0, 300), e.join)
	}
}

// up reports whether there is a driver.
func (s *lifeSim) up() bool { return s.run%2 == 1 }

// crash ends the driver's process. Of the entries that are not durable some may yet be, in
// order.
func (s *lifeSim) crash(kind string) {
	if !s.up() || s.over {
		return
	}
	s.fired(kind)
	s.tell("--- %s", kind)
	s.run++
	for _, p := range s.pending[:s.rng.IntN(len(s.pending)+1)] {
		s.apply(p.records)
	}
	s.pending, s.applied = nil, 0
	for _, j := range s.jobs {
		if j.proc != nil {
			j.proc.orphaned()
		}
	}
	for _, e := range s.execs {
		e.link, e.runners = 0, map[string]uint64{}
	}
	s.w.At(s.w.now+s.ms(1, 1000), s.start)
}

// later has something happen, if the driver's process is the same then.
func (s *lifeSim) later(after plan.Time, do func()) {
	run := s.run
	s.w.At(s.w.now+after, func() {
		if s.run == run && s.up() {
			do()
		}
	})
}

// ask asks the driver, and hands on its reply.
func (s *lifeSim) ask(a driver.LifeAsk, then func(*driver.LifeReply)) {
	if s.up() {
		a.From = s.ticket(then)
		s.step(driver.LifeEvent{Ask: &a})
	}
}

func (s *lifeSim) ticket(then func(*driver.LifeReply)) uint64 {
	s.number++
	s.asks[s.number] = then
	return s.number
}

// step lets the lifecycle see an event and carries out what it says.
func (s *lifeSim) step(ev driver.LifeEvent) {
	if !s.up() {
		return
	}
	s.watch.before(ev)
	cmds := s.life.Step(ev, s.now())
	s.trace(ev, cmds)
	s.watch.after(ev, cmds)
	for _, c := range cmds {
		s.carryOut(c)
	}
}

func (s *lifeSim) carryOut(c driver.LifeCommand) {
	switch {
	case c.Write != nil:
		s.write(c.Write)
	case c.MakeDir != "":
		s.later(s.ms(0, 3), func() { s.makeDir(c.MakeDir) })
	case c.Start != nil:
		s.startProcess(c.Start)
	case c.Kill != nil:
		s.kill(c.Kill)
	case c.Interrupt != nil:
		s.interrupt(c.Interrupt)
	case c.Tell != nil:
		s.told(c.Tell)
	case c.Open != nil:
		s.exec(c.Open.Executor).open(c.Open)
	case c.Close != nil:
		s.exec(c.Close.Executor).close(c.Close)
	case c.Drop != nil:
		s.exec(c.Drop.Executor).dropped(c.Drop)
	case c.Goodbye != "":
		s.exec(c.Goodbye).goodbye()
	case c.Remove != nil:
		s.remove(c.Remove)
	case c.Measure != nil:
		s.measure(c.Measure)
	case c.Reply != nil:
		if then := s.asks[c.Reply.To]; then != nil {
			delete(s.asks, c.Reply.To)
			s.later(0, func() { then(c.Reply) })
		}
	case !c.WakeAt.IsZero():
		s.wake(c.WakeAt)
	}
}

func (s *lifeSim) exec(name string) *lifeExec {
	return s.execs[slices.IndexFunc(s.execs, func(e *lifeExec) bool { return e.name == name })]
}

func (s *lifeSim) wake(at time.Time) {
	t := at.Sub(lifeBase)
	if s.wakes[t] {
		return
	}
	s.wakes[t] = true
	wakes := s.wakes
	s.later(max(0, t-s.w.now), func() {
		delete(wakes, t)
		s.step(driver.LifeEvent{})
	})
}

// play lets things happen until all jobs have ended, and then until the driver has looked for
// those that it need not keep.
func (s *lifeSim) play() {
	s.w.At(s.law.trouble, s.becomeCalm)
	s.w.At(s.law.trouble+calmBound, func() { s.watch.allEnded() })
	end := s.law.trouble + calmBound + 13*time.Minute
	for s.w.now < end && !s.found() {
		if s.w.turns > livelock {
			s.violate("life.bounded", "time stands still")
			return
		}
		if !s.w.Next() {
			break
		}
	}
	s.over = true
}

// found reports whether what is looked for has been found.
func (s *lifeSim) found() bool {
	return slices.ContainsFunc(s.result.Violations, func(v Violation) bool { return s.opt.Until == "any" || s.opt.Until == v.Oracle })
}

// violate notes what an oracle has found.
func (s *lifeSim) violate(oracle, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.tell("!!! %s: %s", oracle, text)
	if len(s.result.Violations) < 10 || oracle == s.opt.Until {
		s.result.Violations = append(s.result.Violations, Violation{oracle, fmt.Sprintf("at %v: %s", s.w.now, text)})
	}
}

func (s *lifeSim) tell(format string, args ...any) {
	if s.opt.Trace != nil {
		s.opt.Trace(fmt.Sprintf("%v: ", s.w.now) + fmt.Sprintf(format, args...))
	}
}

func (s *lifeSim) trace(ev driver.LifeEvent, cmds []driver.LifeCommand) {
	if s.opt.Trace == nil {
		return
	}
	s.tell("%s", lifeEventText(ev))
	for _, c := range cmds {
		s.opt.Trace("    " + lifeCommandText(c))
	}
}
