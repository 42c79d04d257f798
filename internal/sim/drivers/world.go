package drivers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
)

// world is a cluster of three drivers, its jobs and an executor, with the oracles that watch them.
type world struct {
	w       *sim.World
	rng     *rand.Rand
	opt     sim.Options
	result  sim.Result
	drivers []*node
	cut     [3][3]bool // links that carry nothing, one way
	jobs    []*job
	exec    executor
	trouble plan.Time // how long there are faults
	calm    bool
	led     map[uint64]int // who led in a term
}

// job is a job as the world knows it.
type job struct {
	name  string
	slow  bool         // its steps take seconds
	need  int          // steps
	acked bool         // its submission was confirmed
	kept  mark         // the last step that was confirmed
	from  map[int]mark // that each process went on from
	procs []*process
	done  bool
}

// executor is one that drivers give orders to.
type executor struct {
	term   uint64
	runner map[string]int // the process of a job that its runner is for
}

const (
	calmBound = 2 * time.Minute // in which jobs end, once there are no more faults
	tick      = 40 * time.Millisecond
)

// Simulate runs drivers under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	s := &world{w: &sim.World{}, rng: rand.New(rand.NewPCG(seed, 0x64726976)), opt: opt, led: map[uint64]int{},
		exec:   executor{runner: map[string]int{}},
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	s.trouble = s.ms(5_000, 40_000)
	for n := range 3 {
		d := &node{s: s, id: n, rate: 1 + s.rng.Float64()/10}
		s.drivers = append(s.drivers, d)
		s.w.At(s.ms(0, 500), d.start)
	}
	for n := range s.between(1, 3) {
		j := &job{name: fmt.Sprint("job-", n+1), from: map[int]mark{}, need: s.between(20, 150)}
		if j.slow = s.rng.IntN(2) == 0; j.slow {
			j.need = s.between(2, 12)
		}
		s.jobs = append(s.jobs, j)
		s.w.At(s.ms(1000, 8000), func() { s.submit(j) })
	}
	s.w.At(s.ms(500, 3000), s.fault)
	s.play()
	s.result.Virtual = s.w.Now()
	return &s.result
}

func (s *world) fired(kind string) { s.result.Faults["drivers: "+kind]++ }

func (s *world) between(lo, hi int) int { return lo + s.rng.IntN(hi-lo+1) }

// ms returns a time between two numbers of milliseconds.
func (s *world) ms(lo, hi int) plan.Time {
	return time.Duration(lo)*time.Millisecond + time.Duration(s.rng.Int64N(int64(hi-lo)*int64(time.Millisecond)+1))
}

func (s *world) later(after plan.Time, do func()) { s.w.At(s.w.Now()+after, do) }

// play lets things happen until all jobs have ended.
func (s *world) play() {
	s.w.At(s.trouble, s.becomeCalm)
	end := s.trouble + calmBound
	for s.w.Now() < end && !s.found() && !(s.calm && s.allDone()) {
		if s.w.Stuck() {
			s.violate("drivers.bounded", "time stands still")
			return
		}
		if !s.w.Next() {
			break
		}
	}
	if !s.allDone() && !s.found() {
		s.violate("drivers.bounded", "jobs have not ended %v after the last fault: %s", calmBound, s.standing())
	}
}

func (s *world) allDone() bool {
	return !slices.ContainsFunc(s.jobs, func(j *job) bool { return !j.done })
}

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

func (s *world) standing() (out string) {
	for _, d := range s.drivers {
		out += fmt.Sprintf("%d up %v %v term %d entries %d files %v votes %v founded %v incomplete %v; ", d.id, d.up,
			d.role, d.term, len(d.log), d.files, d.mayVote(), d.founded, d.incomplete)
	}
	return out
}

// reaches reports whether a driver and another, both at work, reach each other.
func (s *world) reaches(a, b *node) bool {
	return a.works() && b.works() && !s.cut[a.id][b.id] && !s.cut[b.id][a.id]
}

// submit submits a job to whichever driver leads, again and again until that is confirmed.
func (s *world) submit(j *job) {
	for _, d := range s.drivers {
		if d.works() && d.reigns && !d.state().has(j.name) {
			d.append(entry{kind: submitted, job: j.name}, func() {
				j.acked = true
				s.tell("%s is confirmed", j.name)
			})
			break
		}
	}
	if !j.acked {
		s.later(300*time.Millisecond, func() { s.submit(j) })
	}
}
