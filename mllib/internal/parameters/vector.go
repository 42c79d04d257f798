package parameters

import (
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// width is how many numbers a row of the table has: few enough for wide models to be spread over all executors.
const width = 512

// Vector is a vector in a table, zeros at first.
type Vector struct{ *tables.Table[float64] }

// New declares a vector whose size is not known yet.
func New(g *rdd.Graph, name string, m tables.Model) Vector {
	return Vector{tables.New[float64](g, name, tables.Dense(1, width), m)}
}

// Resize sets how many numbers the vector has.
func (v Vector) Resize(n int) { v.Reshape((n+width-1)/width, width) }

// AddAt adds the vector, as it is after exactly the clocks of a tick, to numbers.
func (v Vector) AddAt(tick *tables.Tick, to []float64) {
	for row := 0; row*width < len(to); row++ {
		add(to[row*width:], v.At(tick, row).Values)
	}
}

// Rows is a worker's access to the vector.
type Rows struct{ access *tables.Access[float64] }

// In returns a worker's access to a vector.
func In[P, D, S any](v Vector, c *tables.Clock[P, D, S]) Rows { return Rows{v.Table.In(c)} }

// AddTo adds the vector, as the worker sees it, to numbers.
func (r Rows) AddTo(to []float64) {
	for row := 0; row*width < len(to); row++ {
		add(to[row*width:], r.access.Row(row).Values)
	}
}

// Inc adds numbers to the vector.
func (r Rows) Inc(by []float64) {
	var last [width]float64
	for row := 0; row*width < len(by); row++ {
		part := by[row*width:]
		if len(part) < width {
			copy(last[:], part)
			part = last[:]
		}
		if part = part[:width]; some(part) {
			r.access.IncRow(row, part)
		}
	}
}

func some(x []float64) bool {
	for _, v := range x {
		if v != 0 {
			return true
		}
	}
	return false
}

func add(to, from []float64) {
	for i, v := range from[:min(len(from), len(to))] {
		to[i] += v
	}
}
