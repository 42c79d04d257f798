//go:build mutants

package abss

import (
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// The bugs that the simulator can plant in what this package decides.

func plantedLost(count int64) int64 {
	if mutant.On(mutant.LostInRatio) {
		return 0
	}
	return count
}

func plantedFloor(rows int64) int64 {
	if mutant.On(mutant.BelowFloor) {
		return 0
	}
	return rows
}

func plantedReport(c *Controller, now plan.Time) {
	if mutant.On(mutant.RequestByReport) {
		c.request(now)
	}
}

func plantedEnds(ends bool) bool { return ends && !mutant.On(mutant.TerminationIgnored) }

func plantedAbove(above bool) bool { return above || mutant.On(mutant.BelowFloor) }

func plantedReached(c *Controller, now plan.Time, reached bool) bool {
	switch {
	case mutant.On(mutant.RequestIgnored):
		return c.share() >= c.cfg.Ratio
	case mutant.On(mutant.RatioIgnored):
		return c.requested
	case mutant.On(mutant.RatioOnce):
		return reached && c.stats.FirstFinish == now-c.start
	}
	return reached
}

func plantedEnough(enough bool) bool { return enough || mutant.On(mutant.MissingIgnored) }

func plantedWhole(whole bool) bool { return whole || mutant.On(mutant.WholeGoesOn) }

func plantedInTime(c *Controller, inTime bool) bool {
	skipped := c.phase == flooring && mutant.On(mutant.FloorSkipped) ||
		c.phase == collecting && c.cfg.Policy != BSP && mutant.On(mutant.CollectSkipped)
	return inTime && !skipped
}

func plantedBound(c *Controller, p phase, bound plan.Time) plan.Time {
	switch {
	case p == flooring && mutant.On(mutant.FloorUnbounded), p == collecting && mutant.On(mutant.CollectUnbounded):
		return c.cfg.StepTimeout
	case p == collecting && mutant.On(mutant.UnboundedWait):
		return 1 << 60
	}
	return bound
}
