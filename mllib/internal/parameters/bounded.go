package parameters

import (
	"fmt"
	"math"

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
