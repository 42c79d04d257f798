package tables

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// still is an eager table of which nothing ever comes.
type still struct{ tableOf }

func (still) eager() bool { return true }
func (still) tick()       {}

// TestVirtualWorkersDoNotWaitForGood: where only ticks are left to happen the run ends by an error.
func TestVirtualWorkersDoNotWaitForGood(t *testing.T) {
	r := newRun(castOf(1, 1, 1), everyone, 0, 1, 1)
	r.compute(rdd.Computed{Tick: time.Millisecond})
	r.tables = []tableOf{still{}}
	r.ticksComputed()
	if err := r.awaitComputed(context.Background()); err == nil || !strings.Contains(err.Error(), "nothing is left") {
		t.Errorf("it ends by %v", err)
	}
}
