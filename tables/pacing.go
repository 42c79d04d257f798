package tables

import (
	"time"

	"github.com/volley-engine/volley/rdd"
)

// pacing is a slot's, where an emulated cluster says how fast it is.
type pacing struct {
	rdd.Pacer // nil where it runs at its own pace
	rows      float64
}

// paceRows is after how many rows a slot looks whether it is too fast.
const paceRows = 32

// did notes that rows are processed.
func (p *pacing) did(rows float64) {
	if p.Pacer == nil {
		return
	}
	if p.rows += rows; p.rows >= paceRows {
		p.worked()
	}
}

// worked waits for the rows since the last look.
func (p *pacing) worked() {
	if n := int64(p.rows); p.Pacer != nil && n > 0 {
		p.Worked(n)
		p.rows -= float64(n)
	}
}

func (p *pacing) waited(d time.Duration) {
	if p.Pacer != nil {
		p.Waited(d)
	}
}

// Worked notes that rows of the worker's, or parts of them, were processed that Rows has not yielded in this clock: by
// them it follows the speeds of an emulated cluster (--pace), waits while other jobs have its slot, and ends where the
// run has.
func (c *Clock[P, D, S]) Worked(rows float64) { c.w.did(c.run, rows) }

func (w *worker) did(r *run, rows float64) {
	if r.over() {
		panic(halt{})
	}
	w.moved.Add(1)
	if r.pause != nil {
		w.waits.Store(true)
		d := r.pause()
		w.waits.Store(false)
		w.paused += d
		w.pacing.waited(d)
	}
	w.pacing.did(rows)
}
