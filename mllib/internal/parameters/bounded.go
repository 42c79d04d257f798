package parameters

import (
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
}

// Rows returns how many rows all workers process in a clock, a worker one at least.
func (b *Bounded) Rows(meta *pack.Meta) (n int64) {
	for _, s := range meta.Splits {
		n += RowsIn(b.Passes, s.Rows)
	}
	return n
}

// RowsIn returns how many rows some passes over a split are, one at least.
func RowsIn(passes float64, split int64) int64 {
	return max(1, int64(math.Round(float64(passes*float64(split)))))
}

// Visit calls do for the rows of a clock of a worker's, a batch at a time, from a position on that it moves: passes
// over the worker's split, round its end. It notes what was processed.
func Visit[P, D, S any](c *tables.Clock[P, D, S], next *int64, passes float64, batch int,
	do func(at int64, b *rdd.Batch)) {
	for left := RowsIn(passes, c.Size()); left > 0; {
		for at, b := range c.Batches(*next, batch) {
			b.Rows = b.Rows[:min(left, int64(len(b.Rows)))]
			do(at, b)
			n := int64(len(b.Rows))
			c.Worked(float64(n))
			*next = at + n
			if left -= n; left == 0 {
				break
			}
		}
		if *next == c.Size() {
			*next = 0
		}
	}
}
