package sim

import (
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/wire"
)

// dropKey names one assignment of a split.
type dropKey struct {
	split   int
	attempt uint32
	epoch   uint64
}

// dropWatch accounts for rows that were folded in vain: each assignment's once.
type dropWatch struct {
	rows   map[dropKey]int64 // known to be dropped
	merged map[dropKey]bool
}

func newDropWatch() dropWatch {
	return dropWatch{rows: map[dropKey]int64{}, merged: map[dropKey]bool{}}
}

// inVain notes rows that were seen and whose executor is lost or given up.
func (d *dropWatch) inVain(split int, t *refTask, rows int64) {
	if t.everHeld {
		k := dropKey{split, t.attempt, t.epoch}
		d.rows[k] = max(d.rows[k], rows)
	}
}

// result notes a result that was not merged.
func (d *dropWatch) result(r *wire.Result) {
	if r.Epoch > 0 {
		return
	}
	for _, c := range r.Coverage {
		k := dropKey{int(c.Split), c.Attempt, c.Epoch}
		if !d.merged[k] {
			d.rows[k] = max(d.rows[k], int64(c.Count))
		}
	}
}

// hold compares the job's count with what was seen to be dropped.
func (d *dropWatch) hold(s *Sim, ref *reference, r *driver.StepReport) {
	if ref == nil {
		return
	}
	for i, c := range r.Coverage {
		if t := &ref.tasks[i]; c != nil {
			k := dropKey{i, uint32(c.Attempt), uint64(c.Epoch)}
			d.merged[k] = true
			delete(d.rows, k) // what came a second time was not folded in vain
		} else if r.Entries == nil && t.state == refMissing {
			d.inVain(i, t, t.seen)
		}
	}
	var rows int64
	for _, n := range d.rows {
		rows += n
	}
	if r.Counters.DroppedRows < rows {
		s.violate("1.dropped", "%d rows were folded in vain, %d are counted", rows, r.Counters.DroppedRows)
	}
	if r.Counters.DroppedRows > rows && r.Entries == nil && s.exactDrops() {
		s.known("1.dropped-once", "%d rows were folded in vain, %d are counted", rows, r.Counters.DroppedRows)
	}
}
