//go:build !mutants

package reassign

// Where the simulator can plant bugs: see planted_on.go.

func plantedTaken(settled bool) bool { return settled }

func plantedQueue() bool { return true }

func plantedLost() bool { return true }

func plantedUnwaited() bool { return false }

func plantedTurn(turn bool) bool { return turn }

func plantedAgain() bool { return true }

func plantedSaid() bool { return true }

func plantedFloor(floor int) int { return floor }
