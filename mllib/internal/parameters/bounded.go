package parameters

import (
	"fmt"
	"iter"
	"math"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/tables"
)

// Bounded is how workers on tables train.
type Bounded struct {
	Model  tables.Model
	Passes float64 // over a worker's rows, in a clock
	Batch  int     // rows of a worker's step; 0 is chosen
	// Help has workers do parts of one another's clocks (FlexRR); nil has none do.
	Help *tables.Help `json:",omitempty"`
}

// Name returns the name of the model, as the report of a run has it. Tables without slack are told apart from steps
// that wait for all rows.
func (b *Bounded) Name() string {
	switch {
	case b.Help != nil:
		return fmt.Sprintf("flexrr(%d)", b.Model.Slack)
	case b.Model.Exact():
		return "ssp(0)"
	}
	return b.Model.String()
}

// Repeats reports whether a run has the same bytes whatever the machine does.
func (b *Bounded) Repeats() bool { return b.Model.Exact() && b.Help == nil }

// Rows returns how many rows all workers process in a clock, a worker one at least.
func (b *Bounded) Rows(meta *pack.Meta) (n int64) {
	for _, s := range meta.Splits {
		n += RowsIn(b.Passes, s.Rows)
	}
	return n
}

// Items returns how many rows a step has where the user does not say, of a number that the data ask for: fewer where
// steps may be handed over, so that a clock has some.
func (b *Bounded) Items(meta *pack.Meta, batch int) int {
	if b.Help == nil || len(meta.Splits) == 0 {
		return batch
	}
	return min(batch, max(leastItem, int(b.Rows(meta))/len(meta.Splits)/itemsOfClock))
}

// A clock whose steps may be handed over has as many as this, of as many rows at the least.
const (
	itemsOfClock = 100
	leastItem    = 8
)

// RowsIn returns how many rows some passes over a split are, one at least.
func RowsIn(passes float64, split int64) int64 {
	return max(1, int64(math.Round(float64(passes*float64(split)))))
}

// Visit calls do for the rows of a clock of a worker's, a batch at a time, from a position on that it moves: passes
// over the worker's split, round its end, but for parts that other workers do. It notes what was processed.
func Visit[P, D, S any](c *tables.Clock[P, D, S], next *int64, passes float64, batch int,
	do func(at int64, b *rdd.Batch)) {
	rows := RowsIn(passes, c.Size())
	c.Share(int((rows+int64(batch)-1)/int64(batch)), func(from, to int) {
		at, n := Span(tables.Part{From: from, To: to}, *next, rows, c.Size(), batch)
		for r := range Round(at, n, c.Size()) {
			visit(c, c.Worker(), r, batch, do)
		}
	})
	*next = (*next + rows) % c.Size()
}

// Span returns the position of a part's first row and how many rows it has, of a clock of a number of rows from a
// position on, of a split of a size.
func Span(p tables.Part, next, rows, size int64, batch int) (at, n int64) {
	from, to := int64(p.From)*int64(batch), min(int64(p.To)*int64(batch), rows)
	return (next + from) % size, to - from
}

// Range is rows of a split, by positions, and how many of a part's come before.
type Range struct{ From, To, Before int64 }

// Round yields the ranges of positions that a number of rows from a position on are, round the end of a split.
func Round(at, n, size int64) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for done := int64(0); done < n; {
			r := Range{at, min(at+n-done, size), done}
			if !yield(r) {
				return
			}
			done += r.To - r.From
			at = 0
		}
	}
}

// VisitPart calls do for rows of a part of another worker's clock, a batch at a time and none larger than this worker's
// own are, with how many come before in the part.
func VisitPart[P, D, S any](c *tables.Clock[P, D, S], p tables.Part, at, n int64, batch int,
	do func(before int64, b *rdd.Batch)) {
	batch = int(min(int64(batch), c.Size()))
	for r := range Round(at, n, c.SizeOf(p.Worker)) {
		visit(c, p.Worker, r, batch, func(at int64, b *rdd.Batch) { do(r.Before+at-r.From, b) })
	}
}

// visit calls do for a range of rows of a split, a batch at a time, and notes what was processed.
func visit[P, D, S any](c *tables.Clock[P, D, S], worker int, r Range, batch int, do func(at int64, b *rdd.Batch)) {
	for at, b := range c.BatchesOf(worker, r.From, batch) {
		b.Rows = b.Rows[:min(r.To-at, int64(len(b.Rows)))]
		do(at, b)
		c.Worked(float64(len(b.Rows)))
		if at+int64(len(b.Rows)) == r.To {
			break
		}
	}
}
