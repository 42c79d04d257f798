package shares

import (
	"math"
	"time"
)

// What the rule promises: slots that a job needs are in use, but for a moment between two steps
// of a job of more weight; they are not in use by more than can be; a job that waits has its
// turn in time; and one that always has rows to fold gets slots by its weight.
const (
	kept   = 3 * time.Millisecond   // that a slot may be kept between two steps
	credit = 500 * time.Millisecond // of all slots, that an idle job may be owed
	turn   = 60 * time.Millisecond  // that one may be ahead, with looks that come late
)

// busy holds how many slots are in use.
func (w *world) busy() {
	used, most, least, waiting := 0, 0, math.Inf(1), false
	for _, j := range w.jobs {
		need := min(j.tasks, w.slots)
		switch {
		case !j.open || j.runs == 0:
		case j.paused:
			waiting, least = true, min(least, j.weight)
		default:
			used, most = used+need, max(most, need)
		}
	}
	if used-most >= w.slots {
		w.violate("shares.slots", "%d slots are in use, and one job too many folds on them: there are %d", used,
			w.slots)
	}
	for _, j := range w.jobs {
		if j.open && j.runs == 0 && j.weight > least && w.now-j.ended <= kept {
			used += min(j.tasks, w.slots)
		}
	}
	if waiting && used < w.slots {
		w.violate("shares.idle", "a job waits, and of %d slots %d are in use", w.slots, used)
	}
}

// waits checks how long a job with rows to fold waits for its turn.
func (w *world) waits() {
	bound := time.Duration(len(w.jobs)) * (credit + 4*turn)
	for _, j := range w.jobs {
		if j.open && j.runs > 0 && j.paused && w.now-j.since > bound {
			w.violate("shares.wait", "%s has waited for %v", j.name, w.now-j.since)
			j.since = w.now
		}
	}
}

// fair holds slot times of those that always had something to fold against their weights.
func (w *world) fair() {
	for _, a := range w.jobs {
		for _, b := range w.jobs {
			bound := float64(w.slots) * 2 * (credit + turn).Seconds() / max(a.weight, b.weight)
			if a.steady && b.steady && a.had-b.had > bound {
				w.violate("shares.weight", "%s of weight %v had %.2f s, %s of weight %v %.2f s",
					a.name, a.weight, a.had*a.weight, b.name, b.weight, b.had*b.weight)
			}
		}
	}
}
