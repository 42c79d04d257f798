package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver"
)

// BenchmarkSlotsFigure measures what drawing a step costs on 500 executors of eight slots.
func BenchmarkSlotsFigure(b *testing.B) {
	told := &Step{Number: 1, Took: time.Second}
	for e := range 500 {
		of := driver.LogSlotsOf{Executor: fmt.Sprintf("executor-%d", e), Slots: 8, Rows: 1000, BusyNs: 9e8,
			ArrivedNs: 1e9}
		for slot := range int64(8) {
			for k := range int64(5) {
				of.Spans = append(of.Spans, driver.LogSpan{slot, k % 4, k, k * 2e8, k*2e8 + 19e7, 19e7})
			}
		}
		told.Slots = append(told.Slots, of)
	}
	run := &Run{Told: told, Last: told}
	for b.Loop() {
		var page strings.Builder
		f := run.step()
		f.Linked(&page, "")
	}
}
