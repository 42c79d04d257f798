//go:build !mutants

package driver

import (
	"time"

	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
)

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each hook returns its argument, or does nothing.

func plantedCall(_ *Job, c *call) *call                          { return c }
func plantedCursor(*plan.Assignment, []plan.SplitID)             {}
func plantedTwice(*Job, *pack, []plan.SplitID)                   {}
func plantedLimit(limited bool) bool                             { return limited }
func plantedStale(*Job) bool                                     { return false }
func plantedStop(*Job)                                           {}
func plantedCount(*plan.Coverage, int64)                         {}
func plantedOfStep(of bool) bool                                 { return of }
func plantedCurrent(_ *Job, _ *wire.Coverage, current bool) bool { return current }
func plantedWanted(_ *Job, _ *wire.Coverage, wanted bool) bool   { return wanted }
func plantedUncounted(leased bool) bool                          { return leased }
func plantedDropped(more, _ int64) int64                         { return more }
func plantedMismatch(other bool) bool                            { return other }
func plantedLost(*step, plan.SplitID, plan.Time) bool            { return false }
func plantedRecovers() bool                                      { return true }
func plantedSent() bool                                          { return true }
func plantedAdvances(train bool) bool                            { return train }
func plantedReport(*StepReport, *step)                           {}
func plantedPack(_ *Job, p *pack) *pack                          { return p }
func plantedLeftOut() bool                                       { return false }
func plantedThere(there bool) bool                               { return there }
func plantedLearned(*pack) bool                                  { return false }
func plantedResume(*Job, *Restored, int)                         {}
func plantedCursors(move bool) bool                              { return move }
func plantedHeld(*Job, plan.ExecutorID, plan.SplitID)            {}
func plantedAway(*Job, plan.ExecutorID)                          {}
func plantedDrains() bool                                        { return true }
func plantedTerm(term plan.Epoch) plan.Epoch                     { return term }
func plantedUnrestored(int) bool                                 { return false }
func plantedJournal(*pack, *Restored)                            {}
func plantedFolded(*plan.Coverage)                               {}
func plantedKept(merged bool) bool                               { return merged }
func plantedWeighted(weighted bool) bool                         { return weighted }
func plantedAdapts(auto bool) bool                               { return auto }
func plantedForeign(foreign bool) bool                           { return foreign }
func plantedGathered(gathered bool) bool                         { return gathered }
func plantedTicks() bool                                         { return false }
func plantedCounts() bool                                        { return false }
func plantedParts(n uint64) uint64                               { return n }

func plantedLeaseEnd(asked, _ time.Duration) time.Duration { return asked }
func plantedFollows(follows bool) bool                     { return follows }
