package prioritizer

import "github.com/volley-engine/volley/internal/plan"

// Ledger counts how often the rows of each split have been merged, and keeps
// the position at which the split's next step starts.
type Ledger struct {
	keep   bool // cursors move; otherwise each step starts at the first row
	splits []account
}

type account struct {
	rows    int64
	cursor  int64
	merged  int64 // rows merged in all steps
	whole   int64 // steps in which every row was merged
	dropped int64 // rows folded whose result was not merged
}

// NewLedger makes the ledger of splits of the given sizes. With cursors off
// each step starts at a split's first row.
func NewLedger(rows []int64, cursors bool) *Ledger {
	l := &Ledger{keep: cursors, splits: make([]account, len(rows))}
	for i, n := range rows {
		l.splits[i].rows = n
	}
	return l
}

// Len returns the number of splits.
func (l *Ledger) Len() int { return len(l.splits) }

// Rows returns the number of rows of a split.
func (l *Ledger) Rows(s plan.SplitID) int64 { return l.splits[s].rows }

// Cursor returns the position at which the split's next step starts.
func (l *Ledger) Cursor(s plan.SplitID) int64 { return l.splits[s].cursor }

// Merge advances a split by the rows that a step merged.
func (l *Ledger) Merge(s plan.SplitID, count int64) {
	a := &l.splits[s]
	a.merged += count
	if count == a.rows {
		a.whole++
	}
	if l.keep {
		a.cursor = plantedCursor(a, count, (a.cursor+count)%max(1, a.rows))
	}
}

// Drop accounts for rows that were folded in vain.
func (l *Ledger) Drop(s plan.SplitID, rows int64) { l.splits[s].dropped += rows }

// Merged returns how many rows of the split all steps have merged.
func (l *Ledger) Merged(s plan.SplitID) int64 { return l.splits[s].merged }

// Dropped returns how many rows of the split were folded in vain.
func (l *Ledger) Dropped(s plan.SplitID) int64 { return l.splits[s].dropped }

// ProcessTimes returns the least number of times that a row of the split has
// been merged (N_i of Algorithm 2).
func (l *Ledger) ProcessTimes(s plan.SplitID) int64 {
	a := l.splits[s]
	if a.rows == 0 {
		return 0
	}
	if l.keep {
		return plantedTimes(a, a.merged/a.rows)
	}
	return a.whole
}

// Entry is a split's account as it is kept in a checkpoint.
type Entry struct {
	Cursor  int64 `json:"cursor" cbor:"1,keyasint"`
	Merged  int64 `json:"merged" cbor:"2,keyasint"`
	Whole   int64 `json:"whole" cbor:"3,keyasint"`
	Dropped int64 `json:"dropped" cbor:"4,keyasint"`
}

// Entries returns the whole ledger, for a checkpoint.
func (l *Ledger) Entries() []Entry {
	out := make([]Entry, len(l.splits))
	for i, a := range l.splits {
		out[i] = Entry{a.cursor, a.merged, a.whole, a.dropped}
	}
	return out
}

// Restore takes the accounts of a checkpoint over.
func (l *Ledger) Restore(entries []Entry) {
	for i, e := range entries {
		if i < len(l.splits) {
			a := &l.splits[i]
			a.cursor, a.merged, a.whole, a.dropped = e.Cursor, e.Merged, e.Whole, e.Dropped
		}
	}
}
