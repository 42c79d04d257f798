//go:build !mutants

package prioritizer

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each is what it is given.

func plantedSwaps(_ View, swaps []Swap) []Swap        { return swaps }
func plantedThrifty(thrifty bool) bool                { return thrifty }
func plantedSettled(settled bool) bool                { return settled }
func plantedCooling(cooling bool) bool                { return cooling }
func plantedCursor(_ *account, _, cursor int64) int64 { return cursor }
func plantedTimes(_ account, times int64) int64       { return times }
