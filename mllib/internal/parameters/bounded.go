package parameters

import "github.com/volley-engine/volley/tables"

// Bounded is how workers on tables train.
type Bounded struct {
	Model  tables.Model
	Passes float64 // over a worker's rows, in a clock
	Batch  int     // rows of a worker's step; 0 is chosen
}
