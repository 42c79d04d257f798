//go:build !mutants

package scheduler

import (
	"time"

	"github.com/volley-engine/volley/internal/plan"
)

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each hook returns its argument.

func plantedRoom(free bool) bool                     { return free }
func plantedOrphan(orphaned bool) bool               { return orphaned }
func plantedTwice(*Tasks)                            {}
func plantedLost(lost bool) bool                     { return lost }
func plantedExhausted(often bool) bool               { return often }
func plantedMoved(moved bool) bool                   { return moved }
func plantedTimeout(d time.Duration) time.Duration   { return d }
func plantedWoken() bool                             { return true }
func plantedHangs(hangs bool) bool                   { return hangs }
func plantedHome(id plan.ExecutorID) plan.ExecutorID { return id }
func plantedAvoid(avoids bool) bool                  { return avoids }
func plantedSlow(slow bool) bool                     { return slow }
func plantedOther(other bool) bool                   { return other }

func plantedThere(there bool) bool                         { return there }
func plantedMissing(_ *Stages, _ int, missing []int) []int { return missing }
func plantedRound(round bool) bool                         { return round }
func plantedGiveUp(often bool) bool                        { return often }
func plantedGotOn(on bool) bool                            { return on }

func plantedWeight(weight float64) float64        { return weight }
func plantedPause(pause bool) bool                { return pause }
func plantedCredit(d time.Duration) time.Duration { return d }
func plantedTurn(d time.Duration) time.Duration   { return d }
func plantedLinger(lingers bool) bool             { return lingers }

func plantedFirst(first bool) bool                  { return first }
func plantedForgotten(*piece) bool                  { return false }
func plantedExpired(expired bool) bool              { return expired }
func plantedOverdue(d plan.Time) plan.Time          { return d }
func plantedPatience(d plan.Time) plan.Time         { return d }
func plantedArrival(d plan.Time) plan.Time          { return d }
func plantedCharged(charged bool) bool              { return charged }
func plantedAvoided(e int) int                      { return e }
func plantedExcluded(excluded bool) bool            { return excluded }
func plantedReadmitted(over bool) bool              { return over }
func plantedReplica(holds bool) bool                { return holds }
func plantedDamaged(damaged bool) bool              { return damaged }
func plantedAtOnce(orphaned bool) bool              { return orphaned }
func plantedUnready(unready bool) bool              { return unready }
func plantedForgets() bool                          { return true }
func plantedUsable(_ *executor, usable bool) bool   { return usable }
func plantedHas(has bool) bool                      { return has }
func plantedShort(short bool) bool                  { return short }
func plantedForgives() bool                         { return true }
func plantedCounts() bool                           { return true }
func plantedCurrent(_ *split, _ int, now bool) bool { return now }
