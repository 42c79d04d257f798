//go:build !mutants

package consistency

// Where the simulator can plant bugs: see planted_on.go.

func plantedGate(c Clock) Clock { return c }

func plantedNeed(c Clock) Clock { return c }

func plantedOwn(missing bool) bool { return missing }

func plantedFlight(unseen bool) bool { return unseen }

func plantedAlone(alone bool) bool { return alone }

func plantedEvict[V any](map[Row]V, Row) {}

func plantedNewer(newer bool) bool { return newer }

func plantedKept(kept, _ Clock) Clock { return kept }

func plantedAgain(again bool) bool { return again }

func plantedTwice(bool) bool { return false }

func plantedNext(int) int { return 0 }

func plantedRelease(may bool) bool { return may }

func plantedUnseen(unseen bool) bool { return unseen }

func plantedBack(back bool) bool { return back }

func plantedOpen(open bool) bool { return open }

func plantedExact(exact bool) bool { return exact }

func plantedPure[V any](pure, _ V) V { return pure }

func plantedSince(lost bool) bool { return lost }
