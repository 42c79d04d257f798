package parameters

import (
	"math"

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
