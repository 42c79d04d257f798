//go:build mutants

package consistency

import "github.com/volley-engine/volley/internal/mutant"

// The bugs that the simulator can plant in what this package decides.

func plantedGate(c Clock) Clock {
	if mutant.On(mutant.TableAhead) {
		return c - 1
	}
	return c
}

func plantedNeed(c Clock) Clock {
	if mutant.On(mutant.TableStale) {
		return c - 1
	}
	return c
}

func plantedOwn(number int) int {
	if mutant.On(mutant.TableOwnForgotten) {
		return 1 << 40
	}
	return number
}

func plantedFlight(synced, next int) int {
	if mutant.On(mutant.TableFlightForgotten) {
		return next
	}
	return synced
}

func plantedAlone(alone bool) bool { return alone && !mutant.On(mutant.TableLargeStuck) }

func plantedEvict[V any](s *Seat[V], row Row) {
	if mutant.On(mutant.TableEvictsLog) {
		s.take(func(e *Entry[V]) bool { return e.Row == row })
	}
}

func plantedNewer(newer bool) bool { return newer || mutant.On(mutant.TableOlderTaken) }

func plantedKept(kept, complete Clock) Clock {
	if mutant.On(mutant.TableLogDropped) {
		return complete
	}
	return kept
}

func plantedAgain(again bool) bool { return again && !mutant.On(mutant.TableNotAgain) }

func plantedLeaves(eager bool) bool { return eager || mutant.On(mutant.TableTooEarly) }

func plantedFree(free bool) bool { return free || mutant.On(mutant.TableOverBudget) }

func plantedFull(full bool) bool { return full && !mutant.On(mutant.TableNoEviction) }

func plantedTwice(again bool) bool { return again && mutant.On(mutant.TableTwice) }

func plantedNext(n int) int {
	if mutant.On(mutant.TableLastFirst) {
		return n - 1
	}
	return 0
}

func plantedRelease(may bool) bool { return may || mutant.On(mutant.TableStrongIsWeak) }

func plantedUnseen(unseen bool) bool { return unseen && !mutant.On(mutant.TableSeenEarly) }

func plantedBack(back bool) bool { return back && !mutant.On(mutant.TableNotBack) }

func plantedOpen(open bool) bool { return open || mutant.On(mutant.TableOpenEarly) }

func plantedExact(exact bool) bool { return exact && !mutant.On(mutant.TableNewerSeen) }

func plantedPure[V any](pure, visible *lent[V]) *lent[V] {
	if mutant.On(mutant.TableHalfClock) {
		return visible
	}
	return pure
}

func plantedSince(lost bool) bool { return lost && !mutant.On(mutant.TableLossIgnored) }
