//go:build !mutants

package executor

// Where the simulator can plant a bug in a decision, the decision goes through a
// hook. In this build each is what it is given.

func plantedEnds(ends bool) bool                          { return ends }
func plantedReported(count int64) int64                   { return count }
func plantedComing(coming bool) bool                      { return coming }
func plantedFetched(_ *Fetched, err error) error          { return err }
func plantedHad(had bool) bool                            { return had }
func plantedIncluded(_ *activeRun, ids []uint32) []uint32 { return ids }
