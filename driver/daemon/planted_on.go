//go:build mutants

package daemon

import (
	"time"

	"github.com/volley-engine/volley/internal/mutant"
)

// The bugs that the simulator can plant in what this package decides.

func plantedEnd(e *lifeEnd) {
	switch {
	case mutant.On(mutant.LifeSilenceIsDone) && !e.said && !e.lost && !e.passing && e.never == "":
		e.said, e.code = true, 0
	case mutant.On(mutant.LifeLostBlamed):
		e.lost = false
	}
}

func plantedAdopted(term uint32) uint32 {
	if mutant.On(mutant.LifeTermForgotten) {
		return 0
	}
	return term
}

func plantedTaken(taken bool) bool { return taken && !mutant.On(mutant.LifeDirectoryShared) }

func plantedWaits(waits bool) bool { return waits && !mutant.On(mutant.LifePoolIgnored) }

func plantedTerm(term uint32) uint32 {
	if mutant.On(mutant.LifeTermStays) {
		return max(1, term-1)
	}
	return term
}

func plantedStart(l *Life, j *lifeJob) {
	if mutant.On(mutant.LifeStartUnwritten) {
		l.launch(j)
	}
}

func plantedPause(l *Life, j *lifeJob) {
	switch {
	case mutant.On(mutant.LifePauseUnwoken):
		j.at = l.now.Add(time.Hour)
	case mutant.On(mutant.LifePauseShort):
		j.wait = startWait
	}
}

func plantedPresent(present bool) bool { return present || mutant.On(mutant.LifeAnySays) }

func plantedCounts() bool { return !mutant.On(mutant.LifeRestartsUncounted) }

func plantedWaited() bool { return !mutant.On(mutant.LifeCancelUnwritten) }

func plantedFlushes() bool { return !mutant.On(mutant.LifeLastStepLost) }

func plantedKill(at time.Time) time.Time {
	if mutant.On(mutant.LifeCancelAwaited) {
		return time.Time{}
	}
	return at
}

func plantedIdle(m *lifeMember, idle bool) bool {
	switch {
	case mutant.On(mutant.LifeDrainingAsked):
		return m.unfit != ""
	case mutant.On(mutant.LifeUnfitAsked):
		return m.draining
	}
	return idle
}

func plantedBusy(busy bool) bool {
	return busy && !mutant.On(mutant.LifeDrainedEarly) || mutant.On(mutant.LifeDrainedNever)
}

func plantedEarlier(earlier bool) bool { return earlier && !mutant.On(mutant.LifeAnyRunner) }

func plantedAgain(again bool) bool { return again || mutant.On(mutant.LifeNeverLeftAlone) }

func plantedHopeless(hopeless bool) bool { return hopeless && !mutant.On(mutant.LifeHopelessGoesOn) }

func plantedReadmit(at time.Time) time.Time {
	if mutant.On(mutant.LifeLeftForEver) {
		return time.Time{}
	}
	return at
}

func plantedKilled(l *Life, j *lifeJob) {
	if mutant.On(mutant.LifeTwoProcesses) {
		l.start(j)
	}
}

func plantedGrace(d time.Duration) time.Duration {
	if mutant.On(mutant.LifePruneAtOnce) {
		return 0
	}
	return d
}

func plantedRemove(l *Life, w *lifeEntry) {
	if mutant.On(mutant.LifeRemoveUnwritten) {
		l.do(LifeCommand{Remove: idsOf(w.jobs)})
	}
}

func plantedHeld(held bool) bool { return held && !mutant.On(mutant.LifeReadersIgnored) }

func plantedDone(done bool) bool { return done && !mutant.On(mutant.LifeDoneResumed) }

func plantedWritten(written bool) bool { return written || mutant.On(mutant.LifeEndUnwritten) }

func plantedFull(full bool) bool { return full && !mutant.On(mutant.LifeMaxJobsIgnored) }

func plantedFair(c int) int {
	if mutant.On(mutant.LifeUnfair) {
		return 0
	}
	return c
}

func plantedDeadline(at time.Time) time.Time {
	if mutant.On(mutant.LifeTimeoutIgnored) {
		return time.Time{}
	}
	return at
}

func plantedLeases(d time.Duration) time.Duration {
	if mutant.On(mutant.LeasesUnwaited) {
		return 0
	}
	return d
}

func plantedVotes(incomplete bool) bool { return incomplete && !mutant.On(mutant.IncompleteVotes) }

func plantedRestarted(d time.Duration) time.Duration {
	if mutant.On(mutant.RestartedVotes) {
		return 0
	}
	return d
}

func plantedCopies(have int) int {
	if mutant.On(mutant.CopiesUnneeded) {
		return have + 1
	}
	return have
}

func plantedOldCopies(taken bool) bool { return taken || mutant.On(mutant.OldCopiesTaken) }

func plantedGoesOn(goesOn bool) bool { return goesOn || mutant.On(mutant.GoesOnEarlier) }

func plantedExtends(extends bool) bool { return extends || mutant.On(mutant.LeaseUnverified) }

func plantedSilent(silent int) int {
	if mutant.On(mutant.SilentIgnored) {
		return 0
	}
	return silent
}

func plantedPast() bool { return mutant.On(mutant.PastIgnored) }

func plantedBeyond(late, failed bool) bool {
	return failed && (late || !mutant.On(mutant.LifeBeyondForgotten))
}
