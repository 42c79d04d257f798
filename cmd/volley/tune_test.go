package main

import (
	"fmt"
	"sync"
	"testing"
)

// TestAFoldIsPackedOnce: whatever runs at a time, the first point's run of a fold has ended before another's begins,
// and each run is done once.
func TestAFoldIsPackedOnce(t *testing.T) {
	for _, parallel := range []int{1, 2, 3, 7, 40} {
		var mu sync.Mutex
		ended, runs := map[int]bool{}, map[string]int{}
		err := eachRun(6, 3, parallel, func(point, fold int) error {
			mu.Lock()
			defer mu.Unlock()
			if runs[fmt.Sprint(point, fold)]++; point == 0 {
				ended[fold] = true
			} else if !ended[fold] {
				t.Errorf("%d at a time: point %d packs fold %d, too", parallel, point, fold)
			}
			return nil
		})
		if err != nil || len(runs) != 18 {
			t.Errorf("%d at a time: %d runs, %v", parallel, len(runs), err)
		}
	}
}
