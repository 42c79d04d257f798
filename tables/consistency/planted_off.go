//go:build !mutants

package consistency

// Where the simulator can plant bugs: see planted_on.go.

func plantedGate(c Clock) Clock { return c }

func plantedNeed(c Clock) Clock { return c }

func plantedOwn(number int) int { return number }

func plantedFlight(synced, _ int) int { return synced }

func plantedAlone(alone bool) bool { return alone }

func plantedEvict[V any](*Seat[V], Row) {}

func plantedNewer(newer bool) bool { return newer }

func plantedKept(kept, _ Clock) Clock { return kept }

func plantedAgain(again bool) bool { return again }

func plantedLeaves(eager bool) bool { return eager }

func plantedFree(free bool) bool { return free }

func plantedFull(full bool) bool { return full }

func plantedTwice(bool) bool { return false }

func plantedNext(int) int { return 0 }

func plantedRelease(may bool) bool { return may }

func plantedUnseen(unseen bool) bool { return unseen }

func plantedBack(back bool) bool { return back }

func plantedOpen(open bool) bool { return open }

func plantedExact(exact bool) bool { return exact }

func plantedPure[V any](pure, _ *lent[V]) *lent[V] { return pure }

func plantedSince(lost bool) bool { return lost }
