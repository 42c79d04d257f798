package drivers

import (
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/internal/sim/worldtest"
)

// TestDriversAreCleanAndEveryFaultFires: no oracle finds anything, and there is something to find.
func TestDriversAreCleanAndEveryFaultFires(t *testing.T) {
	worldtest.Clean(t, Simulate, seeds.Of(400), "drivers", "driver killed", "machine lost", "driver stopped",
		"driver cut off", "link cut one way", "journal lost", "driver made again", "driver started again at once",
		"all drivers killed",
		"the one that has heard is started again",
		"journal brought", "files brought", "late order", "order refused", "late answer")
}

func TestTheSameSeedIsTheSameDrivers(t *testing.T) {
	worldtest.Repeats(t, Simulate, 20)
}
