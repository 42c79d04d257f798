package wire

import "time"

// Missed is how many heartbeats may be missing before silence is taken for
// death.
const Missed = 3

// FailureDetector tells the dead from the living by their heartbeats. It judges
// nobody right after it has itself stood still: what was said meanwhile may
// not have been read yet.
type FailureDetector struct {
	silence time.Duration // that is taken for death
	tick    time.Duration // between two looks
	last    time.Time
	awake   time.Time // since when it has looked without a break
}

// NewFailureDetector watches over those that give a heartbeat every so often.
func NewFailureDetector(beat time.Duration) *FailureDetector {
	tick := beat / 8
	// Half a beat early: what waits for the dead goes on elsewhere within as many
	// beats.
	return &FailureDetector{silence: Missed*beat - beat/2, tick: tick}
}

// Tick returns how often to look.
func (v *FailureDetector) Tick() time.Duration { return v.tick }

// Silence returns how long one must have been silent.
func (v *FailureDetector) Silence() time.Duration { return v.silence }

// Look begins a look at everybody.
func (v *FailureDetector) Look(now time.Time) {
	if v.awake.IsZero() || now.Sub(v.last) > v.silence/2 {
		v.awake = now
	}
	v.last = now
}

// Dead reports whether one last heard of at a time is taken for dead.
func (v *FailureDetector) Dead(heard time.Time) bool {
	if heard.Before(v.awake) {
		heard = v.awake
	}
	return v.last.Sub(heard) >= v.silence
}
