//go:build !mutants

package abss

import "github.com/volley-engine/volley/internal/plan"

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each is what it is given, or nothing.

func plantedLost(count int64) int64                                  { return count }
func plantedFloor(rows int64) int64                                  { return rows }
func plantedReport(*Controller, plan.Time)                           {}
func plantedEnds(ends bool) bool                                     { return ends }
func plantedAbove(above bool) bool                                   { return above }
func plantedReached(_ *Controller, _ plan.Time, reached bool) bool   { return reached }
func plantedEnough(enough bool) bool                                 { return enough }
func plantedWhole(whole bool) bool                                   { return whole }
func plantedInTime(_ *Controller, inTime bool) bool                  { return inTime }
func plantedBound(_ *Controller, _ phase, bound plan.Time) plan.Time { return bound }
