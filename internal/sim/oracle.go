package sim

import (
	"math"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/prioritizer"
)

// account is what the oracle knows of a split from receipts alone.
type account struct {
	merged int64 // rows, all training steps
	whole  int64 // steps in which every row was merged
}

// oracle keeps its own account of what was merged, from the receipts inside
// the results, and holds the job's reports against it.
type oracle struct {
	s     *Sim
	packs [][]account
	seen  map[[5]uint64]bool
	last  map[[2]int]int // attempt at a split of a pack that was merged last
}

func newOracle(s *Sim) *oracle {
	o := &oracle{s: s, seen: map[[5]uint64]bool{}, last: map[[2]int]int{}}
	for _, p := range s.packs {
		o.packs = append(o.packs, make([]account, len(p.rows)))
	}
	return o
}

// copyPacks returns the account as it is now.
func (o *oracle) copyPacks() (out [][]account) {
	for _, p := range o.packs {
		out = append(out, append([]account(nil), p...))
	}
	return out
}

// start returns where a step must start on a split.
func (o *oracle) start(p *simPack, i int, train bool) int64 {
	if o.s.cfg.FixedCursors || p.rows[i] == 0 || !train {
		return 0
	}
	return o.packs[p.id][i].merged % p.rows[i]
}

// times returns how often each row of a split was merged at the least.
func (o *oracle) times(p *simPack, i int) int64 {
	a := o.packs[p.id][i]
	switch {
	case p.rows[i] == 0:
		return 0
	case o.s.cfg.FixedCursors:
		return a.whole
	}
	return a.merged / p.rows[i]
}

// mergedRows is what the receipts of a step hold of a split.
type mergedRows struct {
	rows  int64
	spans []plan.Span
}

func (o *oracle) check(r *driver.StepReport) {
	p := o.s.packs[r.Pack]
	got := o.receipts(p, r)
	var total int64
	for i, c := range r.Coverage {
		var n int64
		if c != nil {
			n = c.Count
		}
		if c != nil && !o.s.opt.Faultless {
			o.covered(p, r, i, c, got[i])
			o.attempt(p, i, c)
		}
		total += n
		if got[i].rows != n {
			o.s.violate("10.1", "split %d: %d rows in the ledger, %d merged", i, n, got[i].rows)
		}
		o.bounds(p, r, i, n, c == nil)
		if a := &o.packs[p.id][i]; r.Train {
			if a.merged += got[i].rows; got[i].rows == p.rows[i] && c != nil {
				a.whole++
			}
		}
	}
	if total != r.Merged {
		o.s.violate("10.1", "%d rows are reported, splits have %d", r.Merged, total)
	}
	o.waits(r)
	if !o.s.opt.Faultless {
		o.numbers(p, r)
		o.ledger(p, r)
	}
}

// covered holds the positions that were folded against those that the report
// says: a serial execution of the report must fold the same rows.
func (o *oracle) covered(p *simPack, r *driver.StepReport, i int, c *plan.Coverage, got mergedRows) {
	want := o.start(p, i, r.Train)
	if c.Cursor != want {
		o.s.violate("5.cursor", "split %d starts at %d, want %d", i, c.Cursor, want)
	}
	if c.Folded != c.Count {
		o.s.violate("10.1", "split %d: its accumulator folded %d rows, %d are reported", i, c.Folded, c.Count)
	}
	if c.Count == 0 {
		return
	}
	has := make([]bool, p.rows[i])
	for _, s := range got.spans {
		for k := s.From; k < s.To; k++ {
			if has[k] {
				o.s.violate(o.doubled(r), "row %d of split %d is merged twice", k, i)
				return
			}
			has[k] = true
		}
	}
	for _, s := range plan.Visited(p.rows[i], want, c.Count) {
		for k := s.From; k < s.To; k++ {
			if !has[k] {
				o.s.violate("10.2", "split %d: row %d is not merged, others are one time ahead", i, k)
				return
			}
		}
	}
}

// attempt holds that the attempts at a split which are merged only grow.
func (o *oracle) attempt(p *simPack, i int, c *plan.Coverage) {
	at := [2]int{p.id, i}
	if last, some := o.last[at]; some && c.Attempt <= last {
		o.s.violate("10.4.attempt", "split %d: attempt %d is merged after attempt %d", i, c.Attempt, last)
	}
	o.last[at] = c.Attempt
}

// doubled returns the line that forbids a row to be merged twice.
func (o *oracle) doubled(r *driver.StepReport) string {
	if o.s.watch.lease != nil {
		return "6.exactly-once"
	}
	return "10.4"
}

// receipts adds up what the parts hold, and checks that each is merged once,
// under the assignment that the step made, from a sound copy, by an executor that
// was not lost meanwhile.
func (o *oracle) receipts(p *simPack, r *driver.StepReport) []mergedRows {
	got := make([]mergedRows, len(r.Coverage))
	for _, part := range r.Outcome.Parts {
		for _, rc := range decodeReceipts(part.Data) {
			key := [5]uint64{rc.pack, rc.split, rc.attempt, rc.epoch, rc.piece}
			a := r.Assigned[rc.split]
			switch {
			case rc.life != uint64(o.s.cfg.Life):
				o.s.violate("10.4.term", "split %d was folded for life %d of the job", rc.split, rc.life)
			case rc.attempt != uint64(a.Attempt) || rc.epoch != uint64(a.Epoch):
				o.s.violate("10.4.epoch", "split %d attempt %d epoch %d is not the one assigned", rc.split, rc.attempt,
					rc.epoch)
			case o.seen[key]:
				o.s.violate(o.doubled(r), "split %d attempt %d epoch %d piece %d is merged twice", rc.split, rc.attempt,
					rc.epoch, rc.piece)
			case rc.pack != uint64(r.Pack):
				o.s.violate("10.4", "split %d is of pack %d, the step is of %d", rc.split, rc.pack, r.Pack)
			}
			o.seen[key] = true
			if rc.damaged != 0 {
				o.s.violate("5.hash", "a damaged copy of split %d was folded", rc.split)
			}
			if want := o.packs[p.id][rc.split].merged; p.stateful && r.Train && int64(rc.state) != want {
				o.s.violate("3.state", "split %d goes on from the state of %d rows, %d were merged", rc.split, rc.state,
					want)
			}
			m := &got[rc.split]
			m.rows += int64(rc.count)
			m.spans = append(m.spans, rc.spans(p.rows[rc.split])...)
		}
	}
	return got
}

// bounds checks a split's coverage: all rows where the step needs them, at
// least the floor where it was cut.
func (o *oracle) bounds(p *simPack, r *driver.StepReport, i int, n int64, missing bool) {
	rows := o.s.limit(r.Train, r.Batch, p.rows[i])
	sync := o.s.cfg.Sync
	whole := !r.Train || sync.Policy.Whole() || sync.Policy == abss.Automatic && o.s.watch.choice.Ratio >= 1
	if n < 0 || n > rows {
		o.s.violate("2.batch", "split %d covers %d of %d rows", i, n, rows)
	} else if whole && n != rows {
		o.s.violate("1.whole", "split %d covers %d of %d rows", i, n, rows)
	}
	made, all := n, rows
	if r.Entries != nil {
		all = r.Entries[i]
		if made = 0; !missing {
			made = r.Coverage[i].Entries
			if made < n || made > all || n == p.rows[i] && made != all {
				o.s.violate("1.entries", "split %d: %d of %d rows are %d of %d entries", i, n, rows, made, all)
			}
		}
	}
	if !missing && made < o.s.floor(all) {
		o.s.violate("1.floor", "split %d of %d was cut at %d", i, all, made)
	}
	if !missing && r.Train && sync.Policy == abss.ABSP && sync.Ratio >= 1 && n != rows {
		o.s.violate("10.3", "split %d covers %d of %d rows at ratio 1", i, n, rows)
	}
}

func (o *oracle) waits(r *driver.StepReport) {
	for _, w := range r.Stats.Waits {
		if most := max(o.s.cfg.Sync.StepTimeout, 2*w.Since+o.s.cfg.Sync.Grace); w.Bound <= 0 || w.Bound > most {
			o.s.violate("10.9", "it waited for %s with the bound %v", w.For, w.Bound)
		}
		if w.Took > w.Bound+resolution {
			o.s.violate("10.9", "it waited %v for %s, bound %v", w.Took, w.For, w.Bound)
		}
	}
}

// numbers computes once more what a report says of its step: N_eff, the share,
// what is missing, what auto chose.
func (o *oracle) numbers(p *simPack, r *driver.StepReport) {
	var present, inverse, made, all float64
	var missing []plan.SplitID
	weight := func(i int) float64 {
		if p.weighed != nil && r.Weighted {
			return p.weighed[i][p.rows[i]]
		}
		return float64(p.rows[i])
	}
	for i, c := range r.Coverage {
		units := p.rows[i]
		if r.Entries != nil {
			units = r.Entries[i]
		}
		if all += float64(units); c == nil {
			missing = append(missing, plan.SplitID(i))
			continue
		}
		if r.Entries != nil {
			made += float64(c.Entries)
		} else {
			made += float64(c.Count)
		}
		if c.Count > 0 {
			present += weight(i)
		}
	}
	for i, c := range r.Coverage {
		if c != nil && c.Count > 0 {
			inverse += math.Pow(weight(i)/present, 2) / float64(c.Count)
		}
	}
	if inverse > 0 && math.Abs(r.NEff*inverse-1) > 1e-9 {
		o.s.violate("2.neff", "N_eff is %v, reported is %v", 1/inverse, r.NEff)
	}
	if math.Abs(r.Share-made/max(1, all)) > 1e-9 {
		o.s.violate("1.share", "the share is %v, reported is %v", made/max(1, all), r.Share)
	}
	if len(missing) != len(r.Missing) {
		o.s.violate("1.missing", "%v are missing, reported are %v", missing, r.Missing)
	}
	if r.Chosen != o.s.watch.choice {
		o.s.violate("1.auto", "it chose %+v, want %+v", r.Chosen, o.s.watch.choice)
	}
}

// ledger holds the job's own account against the receipts'.
func (o *oracle) ledger(p *simPack, r *driver.StepReport) {
	entries := o.s.job.Ledger(p.id).Entries
	for i, e := range entries {
		a := o.packs[p.id][i]
		if e.Merged != a.merged {
			o.s.violate("10.1", "split %d: %d rows in the ledger, %d were merged", i, e.Merged, a.merged)
		}
		if want := o.start(p, i, true); e.Cursor != want {
			o.s.violate("5.cursor", "split %d: its cursor is %d after %d rows, want %d", i, e.Cursor, a.merged, want)
		}
	}
	l := prioritizer.NewLedger(p.rows, !o.s.cfg.FixedCursors)
	l.Restore(entries)
	for i := range p.rows {
		if got, want := l.ProcessTimes(plan.SplitID(i)), o.times(p, i); got != want {
			o.s.violate("5.times", "split %d: its rows were merged %d times, process times are %d", i, want, got)
		}
	}
}
