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

func plantedOwn(missing bool) bool { return missing && !mutant.On(mutant.TableOwnForgotten) }

func plantedFlight(unseen bool) bool { return unseen && !mutant.On(mutant.TableFlightForgotten) }

func plantedAlone(alone bool) bool { return alone && !mutant.On(mutant.TableLargeStuck) }

func plantedEvict[V any](log map[Row]V, row Row) {
	if mutant.On(mutant.TableEvictsLog) {
		delete(log, row)
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

func plantedPure[V any](pure, visible V) V {
	if mutant.On(mutant.TableHalfClock) {
		return visible
	}
	return pure
}

func plantedSince(lost bool) bool { return lost && !mutant.On(mutant.TableLossIgnored) }
