package sim

import (
	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
)

// refState is how the reference sees a split's task.
type refState uint8

const (
	refRunning refState = iota
	refArrived
	refLost
	refMissing
)

type refPhase uint8

const (
	refComputing refPhase = iota
	refFlooring
	refCollecting
	refRecovering
	refDone
)

type refTask struct {
	units, floor     int64 // of progress
	count            int64
	seen             int64 // units last reported
	state            refState
	owner            plan.ExecutorID
	attempt          uint32
	epoch            uint64
	cursor           uint64
	everHeld, doomed bool // doomed: lost or failed under its latest assignment
}

// reference is section 1 of SEMANTICS, read once more and kept simple: it sees
// what the job sees of a step that is not leased, and says what the job must
// decide, when, and by which line.
type reference struct {
	cfg       abss.Config // the policy of this step
	tasks     []refTask
	most      float64 // share that may be missing
	began     plan.Time
	target    plan.Time // of deadline
	phase     refPhase
	since     plan.Time
	bound     plan.Time
	requested bool
	gaveUp    bool
	lost      bool // some task was
	advanced  plan.Time

	stop, done bool   // to be decided now
	why        string // line by which done or stop is decided
	stopped    bool
	failed     bool // a bound has ended in vain
}

func (r *reference) whole() bool { return r.cfg.Policy == abss.BSP }

// sums returns live units, those processed of them, running tasks, running ones
// with units left, live ones below the floor, and all units.
func (r *reference) sums() (live, made, unarrived, unread, below, total int64) {
	for i := range r.tasks {
		t := &r.tasks[i]
		total += t.units
		if t.state != refRunning && t.state != refArrived {
			continue
		}
		live, made = live+t.units, made+t.count
		if t.count < t.floor {
			below++
		}
		if t.state == refRunning {
			unarrived++
			if t.count < t.units {
				unread++
			}
		}
	}
	return
}

func (r *reference) share() float64 {
	live, made, _, _, _, _ := r.sums()
	if live == 0 {
		return 0
	}
	return float64(made) / float64(live)
}

func (r *reference) missingUnits() int64 {
	live, _, _, _, _, total := r.sums()
	return total - live
}

func (r *reference) enough() bool {
	live, _, _, _, _, total := r.sums()
	switch {
	case total == live || total == 0:
		return true
	case r.whole() || live == 0:
		return false
	}
	return float64(total-live)/float64(total) <= r.most
}

// grow takes a task's count.
func (r *reference) grow(t *refTask, count int64, now plan.Time) {
	if count = min(count, t.units); count <= t.count {
		return
	}
	t.count, r.advanced = count, now
	r.requested = r.requested || count == t.units
}

// wants reports whether a result over n units can be merged.
func (r *reference) wants(t *refTask, count int64) bool {
	least := t.floor
	if r.whole() {
		least = t.units
	}
	return r.phase != refDone && (t.state == refRunning || t.state == refMissing) && count >= least
}

func (r *reference) arrive(t *refTask, count int64, now plan.Time) {
	if t.state == refMissing {
		t.count = 0
	}
	t.state = refRunning
	r.grow(t, count, now)
	t.state = refArrived
}

func (r *reference) reached(now plan.Time) bool {
	switch {
	case r.cfg.Policy == abss.ABSP:
		return r.requested && r.share() >= r.cfg.Ratio
	case r.cfg.Policy != abss.Deadline:
		return false
	case r.target > 0:
		return now >= r.began+r.target
	}
	return r.share() >= r.cfg.Ratio
}

func (r *reference) grace(now plan.Time) plan.Time { return max(r.cfg.Grace, now-r.began) }

func (r *reference) enter(p refPhase, bound, now plan.Time) {
	r.phase, r.since, r.bound = p, now, bound
}

// decide follows the lines of section 1.
func (r *reference) decide(now plan.Time) {
	switch r.phase {
	case refComputing:
		r.computing(now)
	case refFlooring:
		r.flooring(now)
	case refCollecting:
		r.collecting(now)
	case refRecovering:
		r.recovering(now)
	}
}

func (r *reference) computing(now plan.Time) {
	_, _, unarrived, unread, below, _ := r.sums()
	switch {
	case unread == 0 && (!r.whole() || r.missingUnits() == 0):
		r.collect(false, "1.termination", now)
	case unread == 0 && unarrived == 0:
		r.enter(refRecovering, r.cfg.StepTimeout, now)
	case r.reached(now) && below == 0:
		r.collect(true, "1.stop", now)
	case r.reached(now):
		r.enter(refFlooring, r.grace(now), now)
	case now >= r.advanced+r.cfg.StepTimeout:
		r.failed, r.phase = true, refDone
	}
}

func (r *reference) flooring(now plan.Time) {
	_, _, _, unread, below, _ := r.sums()
	if below == 0 || unread == 0 {
		r.collect(true, "1.stop", now)
	} else if now >= r.since+r.bound {
		for i := range r.tasks {
			if t := &r.tasks[i]; t.state == refRunning && t.count < t.floor {
				t.state, r.gaveUp = refMissing, true
			}
		}
		r.collect(true, "1.floor-bound", now)
	}
}

func (r *reference) collect(cut bool, why string, now plan.Time) {
	_, _, _, unread, _, _ := r.sums()
	bound := r.grace(now)
	if r.whole() {
		bound = r.cfg.StepTimeout
	}
	r.enter(refCollecting, bound, now)
	if r.why = why; cut && (unread > 0 || r.gaveUp) {
		r.stop = true
	}
	r.collecting(now)
}

func (r *reference) collecting(now plan.Time) {
	_, _, unarrived, _, _, _ := r.sums()
	if unarrived > 0 && now < r.since+r.bound {
		return
	}
	if unarrived > 0 {
		r.why = "1.collecting"
	}
	if r.whole() && unarrived > 0 {
		r.failed, r.phase = true, refDone
		return
	}
	r.abandon()
	if !r.enough() {
		r.giveOut(now)
		return
	}
	r.done, r.phase = true, refDone
}

func (r *reference) abandon() {
	for i := range r.tasks {
		if t := &r.tasks[i]; t.state == refRunning {
			t.state = refMissing
		}
	}
}

// giveOut notes when missing work has to be handed out again.
func (r *reference) giveOut(now plan.Time) {
	for i := range r.tasks {
		if t := &r.tasks[i]; t.state == refMissing {
			t.state = refLost
		}
	}
	r.enter(refRecovering, r.cfg.StepTimeout, now)
}

func (r *reference) recovering(now plan.Time) {
	late := now >= r.since+r.bound
	if late && !r.whole() {
		r.abandon()
	}
	_, _, unarrived, _, _, _ := r.sums()
	switch {
	case unarrived == 0 && r.enough():
		r.done, r.phase, r.why = true, refDone, "1.recover"
	case late:
		r.failed, r.phase = true, refDone
	}
}
