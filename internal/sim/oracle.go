package sim

import (
	"math"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
)

// oracle keeps its own account of what was merged, from the receipts inside
// the results, and holds the job's reports against it: invariants 1 to 4 and
// 9 of SEMANTICS section 10.
type oracle struct {
	s      *Sim
	merged []int64 // rows by split, all training steps
	seen   map[[4]uint64]bool
}

func newOracle(s *Sim) *oracle {
	return &oracle{s: s, merged: make([]int64, len(s.rows)), seen: map[[4]uint64]bool{}}
}

func (o *oracle) check(r *driver.StepReport) {
	counts := o.receipts(r)
	var total int64
	for i, c := range r.Coverage {
		var n, cursor int64
		if c != nil {
			n, cursor = c.Count, c.Cursor
		}
		total += n
		if counts[i] != n {
			o.s.violate("invariant 1: step %d split %d: %d rows in the ledger, %d merged", r.Number, i, n, counts[i])
		}
		if c != nil && r.Train && cursor != o.cursor(i) {
			o.s.violate("invariant 2: step %d split %d starts at %d, want %d", r.Number, i, cursor, o.cursor(i))
		}
		o.bounds(r, i, n, c == nil)
		if r.Train {
			o.merged[i] += n
		}
	}
	if total != r.Merged {
		o.s.violate("invariant 1: step %d reports %d rows, splits have %d", r.Number, r.Merged, total)
	}
	o.waits(r)
}

// cursor is where a training step must start.
func (o *oracle) cursor(i int) int64 {
	if o.s.cfg.FixedCursors || o.s.rows[i] == 0 {
		return 0
	}
	return o.merged[i] % o.s.rows[i]
}

// receipts adds up what the parts hold, and checks that each is merged once,
// under the assignment that the step made, from a sound copy.
func (o *oracle) receipts(r *driver.StepReport) []int64 {
	counts := make([]int64, len(r.Coverage))
	for _, p := range r.Parts {
		for _, rc := range decodeReceipts(p.Data) {
			key := [4]uint64{rc.split, rc.attempt, rc.epoch, rc.piece}
			if o.seen[key] {
				o.s.violate("invariant 4: step %d: split %d attempt %d epoch %d piece %d is merged twice", r.Number, rc.split, rc.attempt, rc.epoch, rc.piece)
			}
			o.seen[key] = true
			if a := r.Assigned[rc.split]; rc.attempt != uint64(a.Attempt) || rc.epoch != uint64(a.Epoch) {
				o.s.violate("invariant 4: step %d: split %d attempt %d epoch %d is not the one assigned", r.Number, rc.split, rc.attempt, rc.epoch)
			}
			if rc.damaged != 0 {
				o.s.violate("a damaged copy of split %d was folded in step %d", rc.split, r.Number)
			}
			if want := o.merged[rc.split]; o.s.stateful && r.Train && int64(rc.state) != want {
				o.s.violate("step %d: split %d goes on from the state of %d rows, %d were merged", r.Number, rc.split, rc.state, want)
			}
			counts[rc.split] += int64(rc.count)
		}
	}
	return counts
}

// bounds checks a split's coverage: all rows where the step needs them, at
// least the floor where it was cut.
func (o *oracle) bounds(r *driver.StepReport, i int, n int64, missing bool) {
	rows := o.s.rows[i]
	if f := o.s.cfg.BatchFraction; r.Train && f > 0 {
		rows = min(rows, max(1, int64(math.Ceil(f*float64(rows)))))
	}
	whole := !r.Train || o.s.cfg.Sync.Policy.Whole()
	if n < 0 || n > rows || whole && n != rows {
		o.s.violate("invariant 3: step %d split %d covers %d of %d rows", r.Number, i, n, rows)
	}
	sync := o.s.cfg.Sync
	made, all := n, rows
	if r.Entries != nil {
		all = r.Entries[i]
		if made = 0; !missing {
			made = r.Coverage[i].Entries
			if made < n || made > all || n == o.s.rows[i] && made != all {
				o.s.violate("step %d split %d: %d of %d rows are %d of %d entries", r.Number, i, n, rows, made, all)
			}
		}
	}
	floor := min(all, max(sync.MinRows, int64(sync.MinShare*float64(all))))
	if !missing && made < floor {
		o.s.violate("floor: step %d split %d of %d was cut at %d", r.Number, i, all, made)
	}
	ratio := sync.Ratio
	if sync.Policy == abss.Adapting {
		ratio = r.Ratio
	}
	if !missing && r.Train && (sync.Policy == abss.ABSP || sync.Policy == abss.Adapting) && ratio >= 1 && n != rows {
		o.s.violate("invariant 3: step %d split %d covers %d of %d rows at ratio 1", r.Number, i, n, rows)
	}
}

func (o *oracle) waits(r *driver.StepReport) {
	for _, w := range r.Stats.Waits {
		if most := max(o.s.cfg.Sync.StepTimeout, 2*w.Since+o.s.cfg.Sync.Grace); w.Bound <= 0 || w.Bound > most {
			o.s.violate("invariant 9: step %d waited for %s with the bound %v", r.Number, w.For, w.Bound)
		}
		if w.Took > w.Bound+resolution {
			o.s.violate("invariant 9: step %d waited %v for %s, bound %v", r.Number, w.Took, w.For, w.Bound)
		}
	}
}
