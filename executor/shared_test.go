package executor

import (
	"errors"
	"sync"
	"testing"
)

// TestAnErrorIsNotShared: a task that waited for another's value makes it itself where that one has failed.
func TestAnErrorIsNotShared(t *testing.T) {
	var s Shared
	began, fail := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.get("value", "1", 8, func() (any, error) {
			close(began)
			<-fail
			return nil, errors.New("the executor has ended")
		})
		if err == nil {
			t.Error("the task that failed has a value")
		}
	})
	<-began
	for range 3 {
		wg.Go(func() {
			if v, err := s.get("value", "1", 8, func() (any, error) { return 7, nil }); v != 7 || err != nil {
				t.Errorf("another task: %v, %v", v, err)
			}
		})
	}
	close(fail)
	wg.Wait()
}
