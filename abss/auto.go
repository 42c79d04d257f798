package abss

import (
	"fmt"
	"time"
)

// Auto chooses before each pass how much of it is needed, and how what is needed is divided: whole, where executors are
// even; by leases, where they are not; or cut, where what is left out can be told from noise. The A-BSP paper (section
// 7) leaves an adaptive ratio to future work.
//
// The ratio of steps that tell how noisy their gradient is follows from step to step: they yield the standard deviation
// of the mean gradients of their splits, and the norm of their mean. Where the deviation exceeds the norm, rows left
// out would be missed; where it is small against it, they are not.
type Auto struct {
	First float64 // ratio of samples, and the first of other steps
	Ratio float64 // of the coming step, as its noise says
	Min   float64 // least ratio
	Heard bool    // the noise is known
	heard string  // what it said

	coming Coming // pass, of which Took tells
	seen   bool   // executors have been clearly uneven
	ways   map[kind]*ways
}

// NewAuto returns the rule of a job whose steps end by a configuration.
func NewAuto(c Config) *Auto {
	return &Auto{First: c.Ratio, Ratio: max(c.Ratio, c.MinRatio), Min: c.MinRatio}
}

// What counts as far below, and by how much the ratio changes at a time.
const (
	farBelow = 0.25
	turn     = 1.25
)

// Observe takes the measurements of a step.
func (a *Auto) Observe(spread, norm float64) {
	before := a.Ratio
	switch {
	case spread > norm:
		a.Ratio = min(1, float64(a.Ratio*turn))
	case spread < float64(farBelow*norm):
		a.Ratio = max(min(a.Min, a.Ratio), a.Ratio/turn)
	}
	change := "kept"
	if a.Ratio > before {
		change = "raised"
	} else if a.Ratio < before {
		change = "lowered"
	}
	a.Heard = true
	a.heard = fmt.Sprintf("%s: splits' gradients differ by %.3g, their mean is %.3g long", change, spread, norm)
}

// Resume goes on from the ratio that the noise of earlier steps has led to.
func (a *Auto) Resume(ratio float64) {
	a.Ratio, a.Heard, a.heard = ratio, true, "as the noise was before the checkpoint"
}

// Coming is what is known of a pass before it begins.
type Coming struct {
	Executors int           // that can fold it
	Node      int           // whose rows it folds, and how: passes of others take another time
	Rows      int64         // of it
	Step      bool          // it may leave rows out, as the program sees it; an evaluation may not
	Sample    bool          // it is of a share of the rows, which the program has chosen, and which can be cut
	Ratio     float64       // that the program asks for; 0 is none
	Fastest   float64       // rows per second of the fastest executor, as far as it may go up; 0 is not known
	Slowest   float64       // and of the slowest, as far as it may go down
	Takes     time.Duration // about; 0 is not known
}

// Even executors differ by less: leases have nothing to gain. Those that differ by less than clearly uneven ones do
// have leases balance them, which costs little where they are even in truth; no step is cut for what may be noise.
// Short passes end before anything can be done about them.
const (
	evenSpeeds   = 1.1
	unevenSpeeds = 1.5
	shortPass    = 2 * time.Millisecond
)

// Choice is how a pass is made.
type Choice struct {
	Ratio float64 // at which it is cut; 1 is not at all
	Lease bool    // pieces of its splits go to executors that are free
	Why   string
}

// speeds returns in words how far executors' speeds are apart.
func (c *Coming) speeds() string {
	if !(c.Slowest > c.Fastest/100) {
		return "the fastest may have over 100 times the slowest's speed"
	}
	return fmt.Sprintf("the fastest may have %.2f times the slowest's speed", c.Fastest/c.Slowest)
}

// Choose returns how a pass is made.
func (a *Auto) Choose(c Coming) Choice {
	a.coming = c
	return a.better(a.choose(c), c)
}

func (a *Auto) choose(c Coming) Choice {
	switch {
	case c.Executors < 2:
		return Choice{1, false, "whole: there is one executor"}
	case c.Takes > 0 && c.Takes < shortPass:
		return Choice{1, false, fmt.Sprintf("whole: it takes about %v", c.Takes.Round(time.Microsecond))}
	case c.Fastest == 0:
		return Choice{1, true, "whole, by leases: executors' speeds are not known yet"}
	}
	a.seen = a.seen || c.Fastest >= float64(unevenSpeeds*c.Slowest)
	switch {
	case c.Fastest < float64(evenSpeeds*c.Slowest) && a.seen:
		return Choice{1, true, "whole, by leases: executors are even, but have not always been, " + c.speeds()}
	case c.Fastest < float64(evenSpeeds*c.Slowest):
		return Choice{1, false, "whole: executors are even, " + c.speeds()}
	}
	switch {
	case c.Step && c.Fastest < float64(unevenSpeeds*c.Slowest):
		return Choice{1, true, "whole, by leases: executors are nearly even, " + c.speeds()}
	case !c.Step:
		return Choice{1, true, "whole, by leases: it decides, and " + c.speeds()}
	}
	return a.Uneven(c)
}

// Uneven returns how a step is made that clearly uneven executors fold: what the program and the noise of earlier
// steps say of it.
func (a *Auto) Uneven(c Coming) Choice {
	uneven := c.speeds()
	switch {
	case c.Ratio > 0 && c.Ratio < 1:
		return Choice{c.Ratio, false, "cut where the program says, as " + uneven}
	case c.Sample && c.Ratio == 0 && a.First < 1:
		return Choice{a.First, false, "cut: it is a sample, and " + uneven}
	case a.Heard && c.Ratio == 0 && a.Ratio < 1:
		return Choice{a.Ratio, false, "cut, " + a.heard + ", and " + uneven}
	case a.Heard && c.Ratio == 0:
		return Choice{1, true, "whole, by leases, " + a.heard}
	}
	return Choice{1, true, "whole, by leases: the program does not say that rows may be left out, and " + uneven}
}
