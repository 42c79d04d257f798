//go:build mutants

package scheduler

import (
	"time"

	"github.com/volley-engine/volley/internal/mutant"
	"github.com/volley-engine/volley/internal/plan"
)

// The bugs that the simulator can plant in what this package decides.

func plantedRoom(free bool) bool { return free || mutant.On(mutant.TaskOverload) }

func plantedOrphan(orphaned bool) bool { return orphaned && !mutant.On(mutant.TaskForgotten) }

func plantedTwice(t *Tasks) {
	if mutant.On(mutant.TaskCountedTwice) {
		t.left--
	}
}

func plantedLost(lost bool) bool { return lost && !mutant.On(mutant.LostInputRetried) }

func plantedExhausted(often bool) bool {
	return (often || mutant.On(mutant.TaskRetriedNever)) && !mutant.On(mutant.TaskRetriedAlways)
}

func plantedMoved(moved bool) bool { return moved && !mutant.On(mutant.BytesUncounted) }

func plantedTimeout(d time.Duration) time.Duration {
	switch {
	case mutant.On(mutant.HungKept):
		return time.Hour
	case mutant.On(mutant.HungEarly):
		return d / 10
	}
	return d
}

func plantedWoken() bool { return !mutant.On(mutant.HungUnwoken) }

func plantedHangs(hangs bool) bool { return hangs && !mutant.On(mutant.HungSameExecutor) }

func plantedHome(id plan.ExecutorID) plan.ExecutorID {
	if mutant.On(mutant.HolderIgnored) {
		return ""
	}
	return id
}

func plantedAvoid(avoids bool) bool {
	return avoids && !mutant.On(mutant.TaskSameExecutor) && !mutant.On(mutant.HungSameExecutor)
}

func plantedSlow(slow bool) bool {
	return (slow || mutant.On(mutant.SpeculateAll)) && !mutant.On(mutant.SpeculateNever)
}

func plantedOther(other bool) bool { return other || mutant.On(mutant.SpeculateOnSame) }
