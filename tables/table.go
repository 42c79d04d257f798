package tables

import (
	"fmt"
	"math"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables/consistency"
)

// Model is what a read of a table may miss.
type Model = consistency.Model

// Prefetch is how a table's rows are asked for before they are read, by what a worker's last clock has read (LazyTable,
// section 3.3): a property of its Model.
type Prefetch = consistency.Prefetch

// The ways to prefetch: the newest of each row, which a model has unless it says otherwise; rows that would be waited
// for; and none.
const (
	Aggressive   = consistency.Aggressive
	Conservative = consistency.Conservative
	NoPrefetch   = consistency.NoPrefetch
)

// ParsePrefetch returns the one that flags name so.
func ParsePrefetch(name string) (Prefetch, error) { return consistency.ParsePrefetch(name) }

// BSP returns the model in which a read sees all updates of the clocks before its own, of all workers, and no others.
func BSP() Model { return consistency.BSP() }

// SSP returns the model in which a worker may be slack clocks ahead of the slowest, and a read may miss as many
// (LazyTable, section 2.3). SSP(0) is BSP, bit for bit.
func SSP(slack int) Model { return consistency.SSP(consistency.Clock(slack)) }

// ASP returns the model without a bound: updates are seen as bandwidth allows.
func ASP() Model { return consistency.ASP() }

// CAP returns the model of SSP in which updates are seen as bandwidth allows, not only when a clock ends (Petuum,
// section 2.1).
func CAP(slack int) Model { return consistency.CAP(consistency.Clock(slack)) }

// VAP returns the model in which what a worker has added to a cell, and not everyone has seen, stays within a bound
// (Petuum, section 2.2); a strong one bounds what only some have seen, too.
func VAP(bound float64, strong bool) Model { return consistency.VAP(bound, strong) }

// CVAP returns the model with both bounds (Petuum, section 2.3).
func CVAP(slack int, bound float64, strong bool) Model {
	return consistency.CVAP(consistency.Clock(slack), bound, strong)
}

// Shape is how many rows and columns a table has, and how its rows are kept.
type Shape struct {
	Rows, Columns int
	Sparse        bool // rows have only their cells that are not zero
}

// Dense returns the shape of a table whose rows have all cells.
func Dense(rows, columns int) Shape { return Shape{rows, columns, false} }

// Sparse returns the shape of a table of which most cells are zero.
func Sparse(rows, columns int) Shape { return Shape{rows, columns, true} }

// Check refuses what is no shape.
func (s Shape) Check() error {
	if s.Rows < 0 || s.Columns < 0 || s.Columns > math.MaxInt32 {
		return fault.Newf(fault.Usage, "make", "a table", "%d rows of %d columns are no table", s.Rows, s.Columns)
	}
	return nil
}

// Table is a table of numbers that begin as zeros.
type Table[T Number] struct {
	name  string
	shape Shape
	model Model
}

// New declares a table. Workers name the tables that they use. A table of which the plan does not know the size, as
// that is the data's, has no rows or no columns before Reshape.
func New[T Number](g *rdd.Graph, name string, shape Shape, model Model) *Table[T] {
	t := &Table[T]{name: name, shape: shape, model: model}
	var zero T
	detail := fmt.Sprintf("%q %d × %d %T, %v", name, shape.Rows, shape.Columns, zero, model)
	if shape.Sparse {
		detail += ", sparse"
	}
	var mistakes []error
	for _, err := range []error{shape.Check(), model.Check()} {
		if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	rdd.Declare(g, "table", detail, mistakes...)
	return t
}

// Reshape gives a table another size, before the clocks of a run.
func (t *Table[T]) Reshape(rows, columns int) { t.shape.Rows, t.shape.Columns = rows, columns }

func (t *Table[T]) reshape(s Shape) { t.shape = s }

func (t *Table[T]) check() error {
	if t.shape.Rows < 1 || t.shape.Columns < 1 {
		return fault.Newf(fault.UserCode, "run workers on", fmt.Sprintf("table %q", t.name),
			"it has %d rows of %d columns", t.shape.Rows, t.shape.Columns).WithHint("Reshape it before Clocks")
	}
	return nil
}

// Shape returns the table's shape, and Model what its reads may miss.
func (t *Table[T]) Shape() Shape { return t.shape }

// Model returns what a read of the table may miss.
func (t *Table[T]) Model() Model { return t.model }

// Within is a worker's clock: what a table is read and added to within.
type Within interface{ accessTo(t any) any }

// In returns the worker's access to the table within its clock. It is the same in all of its clocks.
func (t *Table[T]) In(c Within) *Access[T] { return c.accessTo(t).(*Access[T]) }

// At returns a row as it is after exactly the clocks of a tick. It is not to be changed.
func (t *Table[T]) At(tick *Tick, row int) Row[T] {
	of := t.in(tick)
	if uint(row) >= uint(t.shape.Rows) {
		t.missing("row", row, t.shape.Rows)
	}
	s := of.o.Shard(consistency.Row(row))
	return t.whole(tick.of.snapshots[of.index][s].(*consistency.Snapshot[Row[T]]).Values[consistency.Row(row)])
}

// in returns the table's part of a tick's run.
func (t *Table[T]) in(tick *Tick) *tableRun[T] {
	index, named := tick.run.index[t]
	if !named {
		panic(fmt.Sprintf("the workers' declaration does not name table %q", t.name))
	}
	return tick.run.tables[index].(*tableRun[T])
}

// whole returns a row with all of its cells, where it is dense.
func (t *Table[T]) whole(v Row[T]) Row[T] {
	if v.Values == nil && !t.shape.Sparse {
		v.Values = make([]T, t.shape.Columns)
	}
	return v
}

// anyTable is a table of any type.
type anyTable interface {
	check() error
	reshape(s Shape)
	// begin makes its part of a run.
	begin(r *run, index int) tableOf
}

func (t *Table[T]) begin(r *run, index int) tableOf { return newTableRun(r, index, t) }
