package tables

import (
	"fmt"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

// watch ends a run in which a worker gives no sign for too long: it takes no row, and uses no table.
type watch struct {
	run   *run
	moved map[*worker]int64
	quiet map[*worker]int // looks in a row without a sign: a process that was stopped meanwhile has had one
	at    time.Time
}

func (r *run) newWatch() *watch {
	return &watch{run: r, moved: map[*worker]int64{}, quiet: map[*worker]int{}, at: time.Now()}
}

// looks is how often a worker is looked at while it may give no sign; lookEach is how often it is once a run has ended,
// at the most.
const (
	looks    = 8
	lookEach = 20 * time.Millisecond
)

func (w *watch) look() {
	if w.run.timeout <= 0 || time.Since(w.at) < w.run.timeout/looks {
		return
	}
	w.at = time.Now()
	for _, x := range w.run.executors {
		for _, k := range x.workers {
			if x.here {
				w.lookAt(x, k)
			}
		}
	}
	for _, t := range w.run.tables {
		t.halt() // who uses one gives a sign
	}
}

// watchUntil looks on until the workers have ended, or one does not come back.
func (r *run) watchUntil(ended <-chan struct{}) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for look := r.newWatch(); !r.stuck.Load(); look.look() {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

func (w *watch) lookAt(x *executor, k *worker) {
	x.mu.Lock()
	running, clock := k.running, k.clock
	x.mu.Unlock()
	if moved := k.moved.Load(); !running || k.waits.Load() || moved != w.moved[k] {
		w.moved[k], w.quiet[k] = moved, 0
		return
	}
	if w.quiet[k]++; w.quiet[k] >= looks {
		w.run.stuck.Store(true)
		w.run.fail(fault.Newf(fault.Timeout, "run", fmt.Sprintf("clock %d of worker %d", clock, k.id),
			"for %v it has taken no row and used no table", w.run.timeout).
			WithHint("--task-timeout says how long it may, or call Clock.Worked in long loops"))
	}
}
