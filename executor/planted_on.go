//go:build mutants

package executor

import (
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// The bugs that the simulator can plant in what this package decides.

func plantedEnds(ends bool) bool { return ends || mutant.On(mutant.StopAnyStep) }

func plantedReported(count int64) int64 {
	if mutant.On(mutant.ReportHalved) {
		return count / 2
	}
	return count
}

func plantedComing(coming bool) bool { return coming && !mutant.On(mutant.TwoFetches) }

func plantedFetched(f *Fetched, err error) error {
	switch {
	case mutant.On(mutant.NoHashCheck):
		return f.Err
	case mutant.On(mutant.FetchedUnnamed) && f.Err == nil:
		f.SHA256 = plan.DigestFromBytes(f.Hold.Sha256)
		return nil
	}
	return err
}

func plantedHad(had bool) bool { return had && !mutant.On(mutant.LeaseRepeated) }

func plantedIncluded(r *activeRun, ids []uint32) []uint32 {
	if mutant.On(mutant.IncludeAll) {
		return slices.Sorted(maps.Keys(r.leases))
	}
	return ids
}
