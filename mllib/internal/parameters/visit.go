package parameters

import (
	"iter"
	"math/rand/v2"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// Items are what a worker does in a clock: batches of rows from a position on, round the end of its split. Their order
// is drawn for each clock: where rows came in the same order each time, what one step corrects would be undone by the
// same step of the next clock.
type Items struct {
	next, rows, size int64
	batch            int
	order            []int
}

// ItemsOf returns those of a worker's clock, of a number of rows of a split of a size.
func ItemsOf(worker, clock int, next, rows, size int64, batch int) *Items {
	n := int((rows + int64(batch) - 1) / int64(batch))
	rng := rand.New(rand.NewPCG(uint64(worker), uint64(clock)))
	return &Items{next: next, rows: rows, size: size, batch: batch, order: rng.Perm(n)}
}

// Count returns how many there are.
func (i *Items) Count() int { return len(i.order) }

// Range is rows of a split, by positions, and how many come before among those that are asked for.
type Range struct{ From, To, Before int64 }

// Ranges yields the rows of the items from one up to another, in their order.
func (i *Items) Ranges(from, to int) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		before := int64(0)
		for _, item := range i.order[from:to] {
			first := int64(item) * int64(i.batch)
			at, left := (i.next+first)%i.size, min(int64(i.batch), i.rows-first)
			for left > 0 {
				r := Range{at, min(at+left, i.size), before}
				if !yield(r) {
					return
				}
				before, left, at = before+r.To-r.From, left-(r.To-r.From), 0
			}
		}
	}
}

// Visit calls do for the rows of a clock of a worker's, a batch at a time, from a position on that it moves: passes
// over the worker's split, round its end, but for parts that other workers do. It notes what was processed.
func Visit[P, D, S any](c *tables.Clock[P, D, S], next *int64, passes float64, batch int,
	do func(at int64, b *rdd.Batch)) {
	items := Own(c, *next, passes, batch)
	c.Share(items.Count(), func(from, to int) {
		for r := range items.Ranges(from, to) {
			visit(c, c.Worker(), r, batch, do)
		}
	})
	*next = (*next + items.rows) % c.Size()
}

// Own returns the items of a worker's clock that it is in.
func Own[P, D, S any](c *tables.Clock[P, D, S], next int64, passes float64, batch int) *Items {
	return ItemsOf(c.Worker(), c.Number(), next, RowsIn(passes, c.Size()), c.Size(), batch)
}

// VisitPart calls do for rows of a part of another worker's clock that began at a position, a batch at a time and none
// larger than this worker's own are, with how many come before in the part.
func VisitPart[P, D, S any](c *tables.Clock[P, D, S], p tables.Part, next int64, passes float64, batch int,
	do func(before int64, b *rdd.Batch)) {
	size := c.SizeOf(p.Worker)
	items := ItemsOf(p.Worker, p.Clock, next, RowsIn(passes, size), size, batch)
	most := int(min(int64(batch), c.Size()))
	for r := range items.Ranges(p.From, p.To) {
		visit(c, p.Worker, r, most, func(at int64, b *rdd.Batch) { do(r.Before+at-r.From, b) })
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
