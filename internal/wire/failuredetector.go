package wire

import "time"

// Missed is how many heartbeats may be missing before a process is taken for
// dead.
const Missed = 3

// FailureDetector takes processes for dead whose heartbeats are missing. It
// does not do so right after a pause of its own process: heartbeats that
// arrived meanwhile may not have been read yet.
type FailureDetector struct {
	silence time.Duration // silence after which a process is taken for dead
	tick    time.Duration // between two checks
	last    time.Time
	awake   time.Time // since when it has checked without a pause
}

// NewFailureDetector makes a failure detector for processes with a given interval of heartbeats.
func NewFailureDetector(beat time.Duration) *FailureDetector {
	tick := beat / 8
	// Half a beat early, so that work of the dead is reassigned within that
	// number of beats.
	return &FailureDetector{silence: Missed*beat - beat/2, tick: tick}
}

// Tick returns how often to check.
func (v *FailureDetector) Tick() time.Duration { return v.tick }

// Silence returns after how long without heartbeats a process is taken for dead.
func (v *FailureDetector) Silence() time.Duration { return v.silence }

// Look begins a check.
func (v *FailureDetector) Look(now time.Time) {
	if v.awake.IsZero() || now.Sub(v.last) > v.silence/2 {
		v.awake = now
	}
	v.last = now
}

// Dead reports whether a process whose last heartbeat arrived at a time is taken for dead.
func (v *FailureDetector) Dead(heard time.Time) bool {
	if heard.Before(v.awake) {
		heard = v.awake
	}
	return v.last.Sub(heard) >= v.silence
}
