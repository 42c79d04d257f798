//go:build !mutants

package daemon

import "time"

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each is what it is given, or nothing.

func plantedEnd(*lifeEnd)                            {}
func plantedAdopted(term uint32) uint32              { return term }
func plantedTaken(taken bool) bool                   { return taken }
func plantedWaits(waits bool) bool                   { return waits }
func plantedTerm(term uint32) uint32                 { return term }
func plantedStart(*Life, *lifeJob)                   {}
func plantedPause(*Life, *lifeJob)                   {}
func plantedPresent(present bool) bool               { return present }
func plantedCounts() bool                            { return true }
func plantedFlushes() bool                           { return true }
func plantedWaited() bool                            { return true }
func plantedKill(at time.Time) time.Time             { return at }
func plantedIdle(_ *lifeMember, idle bool) bool      { return idle }
func plantedBusy(busy bool) bool                     { return busy }
func plantedEarlier(earlier bool) bool               { return earlier }
func plantedAgain(again bool) bool                   { return again }
func plantedHopeless(hopeless bool) bool             { return hopeless }
func plantedReadmit(at time.Time) time.Time          { return at }
func plantedKilled(*Life, *lifeJob)                  {}
func plantedGrace(d time.Duration) time.Duration     { return d }
func plantedRemove(*Life, *lifeEntry)                {}
func plantedHeld(held bool) bool                     { return held }
func plantedDone(done bool) bool                     { return done }
func plantedWritten(written bool) bool               { return written }
func plantedFull(full bool) bool                     { return full }
func plantedFair(c int) int                          { return c }
func plantedDeadline(at time.Time) time.Time         { return at }
func plantedLeases(d time.Duration) time.Duration    { return d }
func plantedVotes(incomplete bool) bool              { return incomplete }
func plantedRestarted(d time.Duration) time.Duration { return d }
func plantedCopies(have int) int                     { return have }
func plantedOldCopies(taken bool) bool               { return taken }
func plantedGoesOn(goesOn bool) bool                 { return goesOn }
func plantedExtends(extends bool) bool               { return extends }
func plantedSilent(silent int) int                   { return silent }
func plantedPast() bool                              { return false }
func plantedBeyond(_, failed bool) bool              { return failed }
