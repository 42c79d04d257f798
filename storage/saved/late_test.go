package saved

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
)

// TestTasksThatGoOnAddNothing: while a save is committed, and after, tasks that were given up still try to write parts
// of it; what is in its place is what the commit lists, and no more.
func TestTasksThatGoOnAddNothing(t *testing.T) {
	for round := range 40 {
		dir := filepath.Join(t.TempDir(), "saved")
		if err := stage(dir, "", Options{}); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(attemptsDir(dir), "part-00000-1-x")
		if err := os.WriteFile(name, []byte("row\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var over atomic.Bool
		ended, begun := make(chan struct{}), make(chan struct{})
		go func() { // a task on an executor that counts as lost
			defer close(ended)
			for k := 0; !over.Load(); k++ {
				late := filepath.Join(attemptsDir(dir), fmt.Sprintf("part-00000-2-%d", k))
				if f, err := os.Create(late); err == nil {
					f.Close()
				}
				if k == round {
					close(begun)
				}
			}
		}()
		<-begun
		rows, err := commitParts(dir, "", [][]Part{{{Name: name, Size: 4, Rows: 1}}}, Options{})
		over.Store(true)
		<-ended
		if err != nil || rows != 1 {
			t.Fatalf("%d rows: %v", rows, err)
		}
		found, err := os.ReadDir(dir)
		var names []string
		for _, f := range found {
			names = append(names, f.Name())
		}
		if err != nil || !slices.Equal(names, []string{"_SUCCESS", "part-00000"}) {
			t.Fatalf("%v: %v", names, err)
		}
	}
}
