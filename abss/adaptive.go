package abss

import "fmt"

// Adaptive chooses the synchronization ratio from step to step (the A-BSP paper,
// section 7, leaves it to future work): a step yields the standard deviation of the
// mean gradients of its splits, and the norm of their mean. Where the deviation
// exceeds the norm, rows left out would be missed; where it is small against it,
// they are not.
type Adaptive struct {
	Ratio float64 // of the coming step
	Min   float64 // least ratio
}

// What counts as far below, and by how much the ratio changes at a time.
const (
	farBelow = 0.25
	turn     = 1.25
)

// Observe takes the measurements of a step, and returns the reason for the new
// ratio.
func (a *Adaptive) Observe(spread, norm float64) (why string) {
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
	return fmt.Sprintf("%s: splits' gradients differ by %.3g, their mean is %.3g long", change, spread, norm)
}
