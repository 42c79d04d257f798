package rows

// Taker takes fields that need preparation, row by row. ok is false where a
// field must be a number and is not.
type Taker interface {
	Field(col int, text []byte, v float64, number bool) (ok bool)
	End(c *Chunk)
	Forget() // the row to drop
	// Weightless reports whether a row without a weight is left out; if not, it is an error.
	Weightless() bool
}
