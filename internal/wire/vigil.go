package wire

import "time"

// Missed is how many signs of life may be missing before silence is taken for
// death.
const Missed = 3

// Vigil tells the dead from the living by their signs of life. It judges
// nobody right after it has itself stood still: what was said meanwhile may
// not have been read yet.
type Vigil struct {
	silence time.Duration // that is taken for death
	tick    time.Duration // between two looks
	last    time.Time
	awake   time.Time // since when it has looked without a break
}

// NewVigil watches over those that give a sign of life every so often.
func NewVigil(beat time.Duration) *Vigil {
	tick := beat / 8
	// Half a beat early: what waits for the dead goes on elsewhere within as many
	// beats.
	return &Vigil{silence: Missed*beat - beat/2, tick: tick}
}

// Tick is how often to look.
func (v *Vigil) Tick() time.Duration { return v.tick }

// Silence is how long one must have been silent.
func (v *Vigil) Silence() time.Duration { return v.silence }

// Look begins a look at everybody.
func (v *Vigil) Look(now time.Time) {
	if v.awake.IsZero() || now.Sub(v.last) > v.silence/2 {
		v.awake = now
	}
	v.last = now
}

// Dead says whether one last heard of at a time is taken for dead.
func (v *Vigil) Dead(heard time.Time) bool {
	if heard.Before(v.awake) {
		heard = v.awake
	}
	return v.last.Sub(heard) >= v.silence
}
