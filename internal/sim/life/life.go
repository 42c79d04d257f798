package life

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
)

// world is a driver's life: jobs, their processes, executors, a journal and disks, with
// faults, and the oracles that watch the lifecycle.
type world struct {
	w      *sim.World
	rng    *rand.Rand
	greed  *rand.Rand // who takes too much, and when
	opt    sim.Options
	result sim.Result
	law    laws
	cfg    daemon.LifeConfig
	life   *daemon.Life
	run    int // counts the driver's processes; odd while one is there
	watch  *watch

	journal daemon.State    // that is durable
	pending []*pending      // entries that are not, in order
	applied plan.Time       // when the last of them is
	full    plan.Time       // until when the journal's disk is
	dirs    map[string]bool // on the disk; whether it was made for a submission that goes on
	jobs    map[string]*work
	execs   []*exec
	number  uint64 // of tickets and connections
	asks    map[uint64]func(*daemon.LifeReply)
	wakes   map[plan.Time]bool
	calm    bool // no more faults
	over    bool
}

// laws are what a life has of its own.
type laws struct {
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

// work is a job as its own processes know it.
type work struct {
	need, done int // steps
	rotten     bool
	proc       *proc
}

// base is the first moment of the world.
var base = time.Unix(1_700_000_000, 0)

// calmBound is how long jobs may take to end once there are no more faults.
const calmBound = 3 * time.Minute

// Simulate runs a driver's life under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	s := &world{w: &sim.World{}, rng: rand.New(rand.NewPCG(seed, 0x6c696665)), opt: opt, dirs: map[string]bool{},
		greed: rand.New(rand.NewPCG(seed, 0x67726565)),
		jobs:  map[string]*work{},
		asks:  map[uint64]func(*daemon.LifeReply){}, wakes: map[plan.Time]bool{},
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	s.watch = newLifeWatch(s)
	s.draw()
	s.start()
	s.schedule()
	s.play()
	s.result.Virtual = s.w.Now()
	return &s.result
}

func (s *world) fired(kind string) { s.result.Faults[kind]++ }

func (s *world) between(lo, hi int) int { return lo + s.rng.IntN(hi-lo+1) }

// ms returns a time between two numbers of milliseconds.
func (s *world) ms(lo, hi int) plan.Time {
	return time.Duration(lo)*time.Millisecond + time.Duration(s.rng.Int64N(int64(hi-lo)*int64(time.Millisecond)+1))
}

// chance reports true a given number of times in a thousand, while there are faults.
func (s *world) chance(permille int) bool { return !s.calm && s.rng.IntN(1000) < permille }

func (s *world) now() time.Time { return base.Add(s.w.Now()) }

func (s *world) draw() {
	s.law = laws{jobs: s.between(4, 8), trouble: s.ms(5_000, 70_000), deaths: s.between(0, 4),
		rotten: s.rng.IntN(2) == 0, wholly: s.rng.IntN(3) == 0,
		journal: s.between(0, 5), crashes: max(0, s.between(-2, 3))}
	if s.rng.IntN(2) == 0 {
		s.law.deaths = 0
	}
	if s.law.rotUntil = s.law.trouble; s.rng.IntN(2) == 0 {
		s.law.rotUntil = s.ms(500, 10_000)
	}
	s.law.noRoom = s.ms(0, int(s.law.trouble/time.Millisecond))
	if s.rng.IntN(6) == 0 { // long enough to be asked again after having been left alone
		s.law = laws{jobs: 4, trouble: 75 * time.Second, rotten: true, rotUntil: s.ms(1000, 8000),
			noRoom: 80 * time.Second, long: true}
	}
	s.cfg = daemon.LifeConfig{Restarts: uint32(s.between(0, 3)),
		Keep: daemon.Keep{Count: s.between(0, 3), Age: -1, Bytes: -1}}
	if s.rng.IntN(4) == 0 {
		s.cfg.Keep.Bytes = int64(s.between(0, 5000))
	}
	if s.rng.IntN(3) == 0 {
		s.dirs[fmt.Sprintf("job-%06d", s.between(1, 4))] = false // of a submission that could not be kept
	}
	if s.rng.IntN(2) == 0 {
		s.cfg.MaxJobs = s.between(1, 4)
	}
	for i := range s.between(1, 4) {
		s.execs = append(s.execs, &exec{s: s, name: fmt.Sprintf("e%d", i), runners: map[string]uint64{}})
	}
}

// start starts the driver from what the journal durably has.
func (s *world) start() {
	s.run++
	s.asks, s.wakes = map[uint64]func(*daemon.LifeReply){}, map[plan.Time]bool{}
	s.watch.restarted()
	s.life = daemon.NewLife(s.cfg, s.journal.Clone())
	s.step(daemon.LifeEvent{Began: true})
	for _, e := range s.execs {
		s.later(s.ms(0, 300), e.join)
	}
}

// up reports whether there is a driver.
func (s *world) up() bool { return s.run%2 == 1 }

// crash ends the driver's process. Of the entries that are not durable some may yet be, in
// order.
func (s *world) crash(kind string) {
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
	s.w.At(s.w.Now()+s.ms(1, 1000), s.start)
}

// later has something happen, if the driver's process is the same then.
func (s *world) later(after plan.Time, do func()) {
	run := s.run
	s.w.At(s.w.Now()+after, func() {
		if s.run == run && s.up() {
			do()
		}
	})
}

// ask asks the driver, and hands on its reply.
func (s *world) ask(a daemon.LifeRequest, then func(*daemon.LifeReply)) {
	if s.up() {
		a.From = s.ticket(then)
		s.step(daemon.LifeEvent{Ask: &a})
	}
}

func (s *world) ticket(then func(*daemon.LifeReply)) uint64 {
	s.number++
	s.asks[s.number] = then
	return s.number
}

// step lets the lifecycle see an event and carries out what it says.
func (s *world) step(ev daemon.LifeEvent) {
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

func (s *world) carryOut(c daemon.LifeCommand) {
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

func (s *world) exec(name string) *exec {
	return s.execs[slices.IndexFunc(s.execs, func(e *exec) bool { return e.name == name })]
}

func (s *world) wake(at time.Time) {
	t := at.Sub(base)
	if s.wakes[t] {
		return
	}
	s.wakes[t] = true
	wakes := s.wakes
	s.later(max(0, t-s.w.Now()), func() {
		delete(wakes, t)
		s.step(daemon.LifeEvent{})
	})
}

// play lets things happen until all jobs have ended, and then until the driver has looked for
// those that it need not keep.
func (s *world) play() {
	s.w.At(s.law.trouble, s.becomeCalm)
	s.w.At(s.law.trouble+calmBound, func() { s.watch.allEnded() })
	end := s.law.trouble + calmBound + 13*time.Minute
	for s.w.Now() < end && !s.found() {
		if s.w.Stuck() {
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
func (s *world) found() bool {
	return slices.ContainsFunc(s.result.Violations,
		func(v sim.Violation) bool { return s.opt.Until == "any" || s.opt.Until == v.Oracle })
}

// violate notes what an oracle has found.
func (s *world) violate(oracle, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.tell("!!! %s: %s", oracle, text)
	if len(s.result.Violations) < 10 || oracle == s.opt.Until {
		s.result.Violations = append(s.result.Violations,
			sim.Violation{Oracle: oracle, Text: fmt.Sprintf("at %v: %s", s.w.Now(), text)})
	}
}

func (s *world) tell(format string, args ...any) {
	if s.opt.Trace != nil {
		s.opt.Trace(fmt.Sprintf("%v: ", s.w.Now()) + fmt.Sprintf(format, args...))
	}
}

func (s *world) trace(ev daemon.LifeEvent, cmds []daemon.LifeCommand) {
	if s.opt.Trace == nil {
		return
	}
	s.tell("%s", eventText(ev))
	for _, c := range cmds {
		s.opt.Trace("    " + commandText(c))
	}
}
