//go:build mutants

package prioritizer

import (
	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// The bugs that the simulator can plant in what this package decides.

func plantedSwaps(v View, swaps []Swap) []Swap {
	if !mutant.On(mutant.ExchangeAll) {
		return swaps
	}
	swaps = nil
	for i, o := range v.Owner {
		if to := (o + 1) % len(v.Speed); o >= 0 && !v.Moving[i] && to != o {
			swaps = append(swaps, Swap{Split: plan.SplitID(i), From: o, To: to})
		}
	}
	return swaps
}

func plantedThrifty(thrifty bool) bool { return thrifty && !mutant.On(mutant.LiteralUnthrifty) }

func plantedSettled(settled bool) bool { return settled || mutant.On(mutant.PaperUnguarded) }

func plantedCooling(cooling bool) bool { return cooling && !mutant.On(mutant.RateUncooled) }

func plantedCursor(a *account, count, cursor int64) int64 {
	switch {
	case mutant.On(mutant.CursorStuck):
		return a.cursor
	case mutant.On(mutant.CursorCapped) && a.cursor+count > a.rows:
		return 0
	}
	return cursor
}

func plantedTimes(a account, times int64) int64 {
	if mutant.On(mutant.TimesByMost) {
		return (a.merged + a.rows - 1) / a.rows
	}
	return times
}
