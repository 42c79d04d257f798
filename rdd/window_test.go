package rdd

import (
	"slices"
	"testing"
)

// TestWindowsEndWhereRowsSay: with many windows to a map task, memory changes no row of any
// operation, not by a bit; and what they come to is what one window comes to, where the
// function is associative.
func TestWindowsEndWhereRowsSay(t *testing.T) {
	before := windowBytes
	defer func() { windowBytes = before }()
	for _, p := range orderedPlans() {
		t.Run(p.name, func(t *testing.T) {
			windowBytes = before
			one, _ := orderedRows(t, p, 1<<30, 1<<10)
			windowBytes = 3000
			want, _ := orderedRows(t, p, 1<<30, 1<<10)
			if len(one) != len(want) {
				t.Errorf("%d rows with one window, %d with many", len(one), len(want))
			}
			for _, memory := range []int{1 << 10, 16 << 10, 256 << 10} {
				if got, _ := orderedRows(t, p, memory, 1<<10); !slices.Equal(got, want) {
					t.Errorf("with %d bytes of memory: %s", memory, difference(got, want))
				}
			}
		})
	}
}
