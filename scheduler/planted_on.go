//go:build mutants

package scheduler

import (
	"time"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// The bugs that the simulator can plant in what this package decides.

func plantedRoom(free bool) bool { return free || mutant.On(mutant.TaskOverload) }

func plantedOrphan(orphaned bool) bool { return orphaned && !mutant.On(mutant.TaskForgotten) }

func plantedTwice(t *Tasks) {
	if mutant.On(mutant.TaskCountedTwice) {
		t.left--
	}
}

func plantedLost(lost bool) bool { return lost && !mutant.On(mutant.LostInputRetried) }

func plantedExhausted(often bool) bool {
	return (often || mutant.On(mutant.TaskRetriedNever)) && !mutant.On(mutant.TaskRetriedAlways)
}

func plantedMoved(moved bool) bool { return moved && !mutant.On(mutant.BytesUncounted) }

func plantedTimeout(d time.Duration) time.Duration {
	switch {
	case mutant.On(mutant.HungKept):
		return time.Hour
	case mutant.On(mutant.HungEarly):
		return d / 10
	}
	return d
}

func plantedWoken() bool { return !mutant.On(mutant.HungUnwoken) }

func plantedHangs(hangs bool) bool { return hangs && !mutant.On(mutant.HungSameExecutor) }

func plantedHome(id plan.ExecutorID) plan.ExecutorID {
	if mutant.On(mutant.HolderIgnored) {
		return ""
	}
	return id
}

func plantedAvoid(avoids bool) bool {
	return avoids && !mutant.On(mutant.TaskSameExecutor) && !mutant.On(mutant.HungSameExecutor)
}

func plantedSlow(slow bool) bool {
	return (slow || mutant.On(mutant.SpeculateAll)) && !mutant.On(mutant.SpeculateNever)
}

func plantedOther(other bool) bool { return other || mutant.On(mutant.SpeculateOnSame) }

func plantedThere(there bool) bool {
	return (there || mutant.On(mutant.StageLossIgnored)) && !mutant.On(mutant.StageCopyIgnored)
}

func plantedMissing(s *Stages, id int, missing []int) []int {
	switch {
	case mutant.On(mutant.StageParentsSkipped):
		return nil
	case mutant.On(mutant.StageMadeWhole) && len(missing) > 0:
		missing = nil
		for m := range s.opened[id].outputs {
			missing = append(missing, m)
		}
	}
	return missing
}

func plantedRound(round bool) bool { return round && !mutant.On(mutant.StageRoundRemade) }

func plantedGiveUp(often bool) bool { return often && !mutant.On(mutant.StageTriedForEver) }

func plantedGotOn(on bool) bool { return on && !mutant.On(mutant.StageGaveUpEarly) }

func plantedWeight(weight float64) float64 {
	if mutant.On(mutant.SharesUnweighted) {
		return 1
	}
	return weight
}

func plantedPause(pause bool) bool { return pause && !mutant.On(mutant.SharesNeverPaused) }

func plantedCredit(d time.Duration) time.Duration {
	if mutant.On(mutant.SharesOwedForEver) {
		return time.Hour
	}
	return d
}

func plantedTurn(d time.Duration) time.Duration {
	if mutant.On(mutant.SharesTurnEndless) {
		return time.Hour
	}
	return d
}

func plantedLinger(lingers bool) bool { return lingers || mutant.On(mutant.SharesKeptForEver) }

func plantedFirst(first bool) bool { return first || mutant.On(mutant.LeaseTwice) }

// plantedForgotten takes a lost piece for one without rows, which none folds.
func plantedForgotten(p *piece) bool {
	forgotten := mutant.On(mutant.PieceForgotten) && p.by == nil
	if forgotten {
		p.rows = 0
	}
	return forgotten
}

func plantedExpired(expired bool) bool { return expired && !mutant.On(mutant.LeaseEternal) }

func plantedOverdue(d plan.Time) plan.Time {
	if mutant.On(mutant.LeaseEternal) {
		return 0
	}
	return d
}

func plantedPatience(d plan.Time) plan.Time {
	if mutant.On(mutant.AwaitedForEver) {
		return time.Hour
	}
	return d
}

func plantedArrival(d plan.Time) plan.Time {
	if mutant.On(mutant.GetterAwaited) {
		return time.Hour
	}
	return d
}

func plantedCharged(charged bool) bool { return charged && !mutant.On(mutant.RetryUnbounded) }

func plantedAvoided(e int) int {
	if mutant.On(mutant.RetrySameAgain) {
		return -1
	}
	return e
}

func plantedExcluded(excluded bool) bool { return excluded && !mutant.On(mutant.ExclusionNever) }

func plantedReadmitted(over bool) bool { return over && !mutant.On(mutant.ExclusionForEver) }

func plantedReplica(holds bool) bool { return holds && !mutant.On(mutant.ReplicaForgotten) }

func plantedDamaged(damaged bool) bool { return damaged && !mutant.On(mutant.DamagedFromPeer) }

func plantedAtOnce(orphaned bool) bool { return orphaned || mutant.On(mutant.MoveAtOnce) }

func plantedUnready(unready bool) bool { return unready && !mutant.On(mutant.ReadyEarly) }

func plantedForgets() bool { return !mutant.On(mutant.HolderKept) }

func plantedUsable(x *executor, usable bool) bool {
	switch {
	case mutant.On(mutant.ExcludedUsed):
		return !x.draining
	case mutant.On(mutant.DrainingUsed):
		return !x.excluded
	}
	return usable
}

func plantedHas(has bool) bool { return has && !mutant.On(mutant.DrainedEarly) }

func plantedShort(short bool) bool { return short && !mutant.On(mutant.NewcomerIdle) }

func plantedForgives() bool { return !mutant.On(mutant.RetryNeverReset) }

func plantedCounts() bool { return !mutant.On(mutant.AttemptStays) }

func plantedCurrent(sp *split, attempt int, now bool) bool {
	return now || mutant.On(mutant.StaleEpoch) || mutant.On(mutant.AttemptOnly) && sp.attempt == attempt
}
