package shares

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/sim"
	"github.com/volley-engine/volley/scheduler"
)

// world is an executor whose slots some jobs share, and the oracles that watch the rule by which
// they do.
type world struct {
	rng    *rand.Rand
	opt    sim.Options
	result sim.Result
	shares *scheduler.Shares
	slots  int
	jobs   []*job
	now    plan.Time
	look   plan.Time // when to look again; 0 is after the next event
	late   plan.Time // how late that may be
}

// job is a job with its runner on the executor.
type job struct {
	name   string
	weight float64
	steady bool          // it always has something to fold, on all slots
	tasks  int           // that it folds at a time
	work   time.Duration // of a step, on the slots that it needs
	gap    time.Duration // between two steps
	open   bool
	runs   int
	left   time.Duration
	until  plan.Time // of the gap
	ended  plan.Time
	paused bool
	since  plan.Time // when it was paused
	had    float64   // slot time over its weight since pair was begun
}

// tick is how long the world stands still.
const tick = 500 * time.Microsecond

// Simulate lets jobs share slots for a while under a seed.
func Simulate(seed uint64, opt sim.Options) *sim.Result {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x736861726573)), opt: opt,
		result: sim.Result{Seed: seed, Faults: map[string]int{}}}
	w.draw()
	for end := w.now + w.span(4*time.Second, 12*time.Second); w.now < end && !w.found(); w.now += tick {
		w.pass()
	}
	w.fair()
	w.result.Virtual = w.now
	return &w.result
}

func (w *world) fired(kind string) { w.result.Faults["shares: "+kind]++ }

func (w *world) span(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

// chance reports true a given number of times in a million ticks.
func (w *world) chance(times int) bool { return w.rng.IntN(1_000_000) < times }

func (w *world) draw() {
	w.slots = 1 + w.rng.IntN(8)
	w.shares = scheduler.NewShares(w.slots)
	w.late = w.span(0, 5*time.Millisecond)
	for i := range 2 + w.rng.IntN(4) {
		j := &job{name: fmt.Sprint("job-", i), weight: float64(1 + w.rng.IntN(8)),
			tasks: 1 + w.rng.IntN(2*w.slots), steady: w.rng.IntN(2) == 0}
		j.work, j.gap = w.span(time.Millisecond, 100*time.Millisecond), w.span(0, 20*time.Millisecond)
		if j.steady {
			j.tasks, j.work, j.gap = w.slots, time.Hour, 0
		}
		if !j.steady && w.rng.IntN(2) == 0 { // it sleeps for long, and then has much to do
			j.work, j.gap = w.span(time.Second, 5*time.Second), w.span(2*time.Second, 5*time.Second)
		}
		w.jobs = append(w.jobs, j)
		w.enter(j)
	}
}

func (w *world) enter(j *job) {
	w.tell("%s enters", j.name)
	j.open, j.runs, j.left, j.paused, j.until = true, 0, 0, false, w.now+w.span(0, j.gap)
	w.shares.Open(j.name, j.weight, w.now)
}

// pass lets a moment pass.
func (w *world) pass() {
	event := false
	for _, j := range w.jobs {
		if w.live(j) {
			event = true
		}
	}
	if event || w.look > 0 && w.now >= w.look {
		w.turns()
	}
}

// live lets a job live for a moment, and reports whether the rule was told of anything.
func (w *world) live(j *job) bool {
	switch {
	case !j.open:
		if w.chance(2000) {
			w.fired("job comes again")
			w.enter(j)
			return true
		}
	case !j.steady && w.chance(300):
		w.fired("job goes while it folds")
		j.open, j.runs, j.paused = false, 0, false
		w.shares.Close(j.name, w.now)
		return true
	case j.runs > 0:
		return w.fold(j)
	case w.chance(100):
		w.fired("ended and never began")
		w.shares.Ended(j.name, w.now)
		return true
	case w.now >= j.until:
		j.runs, j.left = 1, j.work
		w.shares.Began(j.name, j.tasks, w.now)
		return true
	}
	return false
}

// fold lets a job fold for a moment.
func (w *world) fold(j *job) bool {
	if !j.paused {
		j.left -= tick
		j.had += tick.Seconds() * float64(min(j.tasks, w.slots)) / j.weight
	}
	switch {
	case j.runs == 1 && !j.steady && w.chance(500):
		w.fired("two runs at a time")
		j.runs++
		w.shares.Began(j.name, j.tasks, w.now)
	case j.left <= 0:
		j.left = j.work
		w.shares.Ended(j.name, w.now)
		if j.runs--; j.runs == 0 {
			j.until, j.ended, j.paused = w.now+j.gap, w.now, false
		}
	default:
		return false
	}
	return true
}

// turns looks whose turn it is, and tells the jobs.
func (w *world) turns() {
	turns, again := w.shares.Look(w.now)
	if w.look = 0; again > 0 {
		if w.look = w.now + again; w.rng.IntN(10) == 0 {
			w.fired("looked late")
			w.look += w.span(0, w.late)
		}
	}
	for _, t := range turns {
		w.told(t)
	}
	w.busy()
	w.waits()
}

// told makes a job pause or continue.
func (w *world) told(t scheduler.Turn) {
	w.tell("%s: pause %v", t.Job, t.Pause)
	at := slices.IndexFunc(w.jobs, func(j *job) bool { return j.name == t.Job && j.open })
	switch {
	case at < 0:
		w.violate("shares.told", "%s is told to pause, and is not there", t.Job)
	case t.Pause && w.jobs[at].runs == 0:
		w.violate("shares.told", "%s is told to pause, and folds nothing", t.Job)
	case t.Pause && w.jobs[at].paused:
		w.violate("shares.told", "%s is told to pause twice", t.Job)
	default:
		if t.Pause {
			w.fired("pause")
		}
		w.jobs[at].paused, w.jobs[at].since = t.Pause, w.now
	}
}

// found reports whether what is looked for has been found.
func (w *world) found() bool {
	return slices.ContainsFunc(w.result.Violations, func(v sim.Violation) bool {
		return w.opt.Until == "any" || w.opt.Until == v.Oracle
	})
}

// violate notes what an oracle has found.
func (w *world) violate(oracle, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("!!! %s: %s", oracle, text)
	if len(w.result.Violations) < 10 || oracle == w.opt.Until {
		v := sim.Violation{Oracle: oracle, Text: fmt.Sprintf("at %v: %s", w.now, text)}
		w.result.Violations = append(w.result.Violations, v)
	}
}

func (w *world) tell(format string, args ...any) {
	if w.opt.Trace != nil {
		w.opt.Trace(fmt.Sprintf("shares: %v: ", w.now) + fmt.Sprintf(format, args...))
	}
}
