package sim

import (
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// clock is what one machine takes for the time: it began elsewhere than the
// world's and runs faster or slower.
type clock struct {
	offset plan.Time
	drift  float64 // 0.01 gains a hundredth
}

// resolution is how much later than asked for a wake-up may come: a clock that
// gains time skips nanoseconds.
const resolution = time.Nanosecond

// at returns the clock's time at a time of the world.
func (c clock) at(world plan.Time) plan.Time {
	return c.offset + world + plan.Time(c.drift*float64(world))
}

// world returns the first time of the world, to the nanosecond, at which the
// clock says no less than t.
func (c clock) world(t plan.Time) plan.Time {
	w := plan.Time(float64(t-c.offset) / (1 + c.drift))
	for c.at(w) < t {
		w++
	}
	return w
}

// skewed draws a clock that is up to an hour ahead and gains or loses up to
// one part in twenty.
func (s *Sim) skewed() clock {
	if s.opt.Faultless {
		return clock{}
	}
	s.fired("clock skew")
	return clock{offset: s.span(0, time.Hour), drift: 0.1*s.rng.Float64() - 0.05}
}
