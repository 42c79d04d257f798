package sim

import (
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

// dropKey names one assignment of a split in a step.
type dropKey struct {
	split   int
	attempt uint32
	epoch   uint64
	step    uint32
}

// dropWatch accounts for rows that were folded in vain: those of each assignment that
// was not merged, as many as were last heard of, and those of each lease that was
// folded and not merged.
type dropWatch struct {
	rows   map[dropKey]int64 // known to be dropped
	merged map[dropKey]bool
	leased int64
}

func newDropWatch() dropWatch {
	return dropWatch{rows: map[dropKey]int64{}, merged: map[dropKey]bool{}}
}

// inVain notes what was seen of a task that is given up, or whose executor is lost.
func (d *dropWatch) inVain(split int, w *watch, t *refTask) {
	rows := t.seen
	if w.entries && t.units > 0 { // about as many
		rows = int64(float64(t.seen) / float64(t.units) * float64(w.s.packs[w.req.Pack].rows[split]))
	}
	if t.everHeld {
		d.note(dropKey{split, t.attempt, t.epoch, w.key}, rows)
	}
}

func (d *dropWatch) note(k dropKey, rows int64) {
	if !d.merged[k] {
		d.rows[k] = max(d.rows[k], rows)
	}
}

// result notes a result that was not merged.
func (d *dropWatch) result(r *wire.Result) {
	for _, c := range r.Coverage {
		if r.Epoch == 0 {
			d.note(dropKey{int(c.Split), c.Attempt, c.Epoch, r.Step}, int64(c.Count))
		}
	}
}

// taken notes that a result was merged: what comes of it a second time was not folded in vain.
// What came before it and could not be taken was, by an executor that was told twice to begin.
func (d *dropWatch) taken(k dropKey) { d.merged[k] = true }

// hold compares the job's count with what was seen to be dropped, at a step's end.
func (d *dropWatch) hold(w *watch, r *driver.StepReport) {
	for i, c := range r.Coverage {
		switch {
		case w.ref == nil && c != nil: // it was not reported merged before
			delete(d.rows, dropKey{i, uint32(c.Attempt), uint64(c.Epoch), w.key})
		case w.ref == nil:
		case c == nil:
			d.inVain(i, w, &w.ref.tasks[i])
		default:
			d.taken(dropKey{i, uint32(c.Attempt), uint64(c.Epoch), w.key})
		}
	}
	if w.lease != nil {
		d.leased += w.lease.inVain(r)
	}
	rows := d.leased
	for _, n := range d.rows {
		rows += n
	}
	if r.Counters.DroppedRows < rows {
		w.s.violate("1.dropped", "%d rows were folded in vain, %d are counted", rows, r.Counters.DroppedRows)
	}
	if r.Counters.DroppedRows > rows {
		w.s.violate("1.dropped-once", "%d rows were folded in vain, %d are counted", rows, r.Counters.DroppedRows)
	}
}
