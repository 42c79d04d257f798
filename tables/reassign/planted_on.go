//go:build mutants

package reassign

import "github.com/volley-engine/volley/internal/mutant"

// The bugs that the simulator can plant in what this package decides.

func plantedTaken(settled bool) bool { return settled && !mutant.On(mutant.HelpTakenTwice) }

func plantedQueue() bool { return !mutant.On(mutant.HelpAfterCancel) }

func plantedLost() bool { return !mutant.On(mutant.HelperLossIgnored) }

func plantedUnwaited() bool { return mutant.On(mutant.HelpCancelUnwaited) }

func plantedTurn(turn bool) bool { return turn || mutant.On(mutant.HelpBeforeOwn) }

func plantedAgain() bool { return !mutant.On(mutant.HelpCancelLost) }

func plantedSaid() bool { return !mutant.On(mutant.HelpCompletedLost) }

func plantedFloor(floor int) int {
	if mutant.On(mutant.HelpBeyondTail) {
		return 0
	}
	return floor
}
