package runner

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Pacer slows a slot down to a pace; a nil Pacer does not.
type Pacer interface {
	// Worked is called after rows have been folded and returns when the slot
	// may go on.
	Worked(rows int64)
	// Waited is called after the slot was paused for other jobs: the pace does
	// not count that time.
	Waited(d time.Duration)
}

// Task is one split's fold on a slot, with its number on the page.
type Task struct {
	Fold *SplitFold
	Word int
}

// yieldEvery is how long a slot may fold before it lets other goroutines run:
// with every processor busy, other goroutines would not run for 10 ms.
const yieldEvery = 100 * time.Microsecond

// visiting is how many slots of this process are folding. While a processor
// is free a slot does not yield: it would only be moved there, away from its
// caches.
var visiting atomic.Int32

// Visit folds the tasks of a slot in turn, a chunk each, until all are done
// or the page says stop. finished is called at each task that has folded its
// whole split.
func Visit(tasks []Task, page *Page, pacer Pacer, finished func(task int)) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	left := 0
	for i := range tasks {
		if tasks[i].Fold.Left() > 0 {
			left++
		}
	}
	visiting.Add(1)
	defer visiting.Add(-1)
	last, processors := time.Now(), int32(runtime.GOMAXPROCS(0))
	for left > 0 {
		for i := range tasks {
			t := &tasks[i]
			if t.Fold.Left() == 0 {
				continue
			}
			if d := page.pass(); d > 0 && pacer != nil {
				pacer.Waited(d)
			}
			if page.Stopped() {
				return nil
			}
			before := t.Fold.Progress()
			n, err := t.Fold.Advance(ChunkRows(t.Fold.Rows()))
			if err != nil {
				return err
			}
			page.Add(t.Word, t.Fold.Progress()-before)
			if pacer != nil {
				pacer.Worked(n)
			}
			if t.Fold.Left() == 0 {
				left--
				finished(t.Word)
			}
			if now := time.Now(); now.Sub(last) > yieldEvery {
				if visiting.Load() >= processors {
					runtime.Gosched()
				}
				last = now
			}
		}
	}
	return nil
}
