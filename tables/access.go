package tables

import (
	"fmt"

	"github.com/volley-engine/volley/tables/consistency"
)

// Access is a worker's access to a table. It is the worker's goroutine's alone.
type Access[T Number] struct {
	seat   *consistency.Seat[Row[T]]
	of     *tableRun[T]
	client *clientRun[T]
	worker *worker
}

// Row returns a row as the worker sees it, without a copy; it waits where the model has it.
func (s *Access[T]) Row(row int) Row[T] {
	if s.within(row); s.seat.Due() {
		s.flush()
	}
	if e := s.seat.Fresh(consistency.Row(row)); e != nil {
		return e.Value
	}
	for {
		v, ok := Row[T]{}, false
		s.of.ask(s.client, func(m *consistency.ClientOf[Row[T]]) (out []consistency.Command[Row[T]]) {
			v, ok, out = m.Row(s.worker.id, consistency.Row(row), s.of.run.now())
			if ok && v.Values == nil && !s.of.table.shape.Sparse { // no worker has added to it
				e := s.seat.Fresh(consistency.Row(row))
				e.Value.Values = s.of.blank
				v = e.Value
			}
			return out
		})
		if ok {
			return v
		}
		s.worker.wait(s.of.run)
	}
}

// within stops a program that names a row that is not there.
func (s *Access[T]) within(row int) {
	if uint(row) >= uint(s.of.table.shape.Rows) {
		s.of.table.missing("row", row, s.of.table.shape.Rows)
	}
}

// missing panics, as a slice does: what is not there is a mistake of the program.
func (t *Table[T]) missing(what string, i, n int) {
	panic(fmt.Sprintf("table %q has no %s %d: they are 0 to %d", t.name, what, i, n-1))
}

// Inc adds to a cell; it waits where the model has it.
func (s *Access[T]) Inc(row, column int, by T) {
	if s.within(row); uint(column) >= uint(s.of.table.shape.Columns) {
		s.of.table.missing("column", column, s.of.table.shape.Columns)
	}
	if s.seat.Due() {
		s.flush()
	}
	if s.of.o.Bound > 0 {
		s.bounded(row, Row[T]{[]int32{int32(column)}, []T{by}})
		return
	}
	e := s.touch(row)
	if s.of.table.shape.Sparse {
		insert(&e.Delta, int32(column), by)
		if e.Read() {
			insert(&e.Value, int32(column), by)
		}
		return
	}
	e.Delta.Values[column] += by
	if e.Read() {
		e.Value.Values[column] += by
	}
}

// touch returns the entry of a row, with room for what is added.
func (s *Access[T]) touch(row int) *consistency.Entry[Row[T]] {
	e := s.seat.Touch(consistency.Row(row))
	if !s.of.table.shape.Sparse && (e.Delta.Values == nil || e.Delta.Columns != nil) {
		e.Delta = s.of.sums.Add(Row[T]{Values: s.of.sums.zero()}, e.Delta)
	}
	return e
}

// IncRow adds to a row, a number of by to each of its cells.
func (s *Access[T]) IncRow(row int, by []T) {
	if len(by) != s.of.table.shape.Columns {
		panic(fmt.Sprintf("table %q has %d columns, and %d numbers are added", s.of.table.name,
			s.of.table.shape.Columns, len(by)))
	}
	if s.of.o.Bound > 0 {
		s.boundedRow(row, by)
		return
	}
	if s.of.table.shape.Sparse {
		for c, x := range by {
			if x != 0 {
				s.Inc(row, c, x)
			}
		}
		return
	}
	if s.within(row); s.seat.Due() {
		s.flush()
	}
	e := s.seat.Touch(consistency.Row(row))
	if e.Delta.Values == nil {
		e.Delta = Row[T]{Values: s.of.sums.whole(by)}
	} else {
		e = s.touch(row)
		addTo(e.Delta.Values, by)
	}
	if e.Read() {
		addTo(e.Value.Values, by)
	}
}

// IncCells adds to cells of a row, by numbers to columns that ascend; it waits where the model has it. For several
// cells it takes less time than Inc does one by one, unless the row is read again in the clock.
func (s *Access[T]) IncCells(row int, columns []int32, by []T) {
	if len(columns) == 0 {
		return
	}
	s.ascending(columns, by)
	if s.within(row); s.seat.Due() {
		s.flush()
	}
	delta := Row[T]{columns, by}
	switch {
	case s.of.o.Bound > 0:
		s.bounded(row, s.of.sums.Clone(delta))
	default: // the row is not copied, as where it is added to cell by cell
		e := s.seat.Log(consistency.Row(row))
		e.Delta = s.of.sums.merged(e.Delta, delta)
	}
}

// ascending stops a program that names columns that are not there, or not in their order.
func (s *Access[T]) ascending(columns []int32, by []T) {
	if len(columns) != len(by) {
		panic(fmt.Sprintf("table %q: %d numbers are added to %d columns", s.of.table.name, len(by), len(columns)))
	}
	before := int32(-1)
	for _, c := range columns {
		if c <= before || int(c) >= s.of.table.shape.Columns {
			panic(fmt.Sprintf("table %q: column %d after %d: they ascend from 0 to %d", s.of.table.name, c, before,
				s.of.table.shape.Columns-1))
		}
		before = c
	}
}

// boundedRow adds to a row once the value bound allows it of each of its cells.
func (s *Access[T]) boundedRow(row int, by []T) {
	if s.within(row); s.seat.Due() {
		s.flush()
	}
	var delta Row[T]
	for c, x := range by {
		if x != 0 {
			delta.Columns, delta.Values = append(delta.Columns, int32(c)), append(delta.Values, x)
		}
	}
	if len(delta.Values) > 0 {
		s.bounded(row, delta)
	}
}

func addTo[T Number](to, by []T) {
	to = to[:len(by)]
	for i, x := range by {
		to[i] += x
	}
}

// bounded adds to a row once the value bound allows it.
func (s *Access[T]) bounded(row int, delta Row[T]) {
	for {
		ok := false
		s.of.ask(s.client, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
			ok = m.Inc(s.worker.id, consistency.Row(row), delta, s.of.run.now())
			return nil
		})
		if ok {
			return
		}
		s.worker.wait(s.of.run)
	}
}

// flush sends what bandwidth allows, and leaves the clock where the run has ended. It looks for that after it has taken
// away the sign to look: the run may end meanwhile, and gives no other.
func (s *Access[T]) flush() {
	if !s.of.run.over() { // who goes on then gives no sign of ending
		s.worker.moved.Add(1)
	}
	s.of.ask(s.client, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
		return m.Flush(s.worker.id, s.of.run.now())
	})
	if s.of.run.over() {
		panic(halt{})
	}
}

// Prefetch asks for rows that the worker will read in this clock. Those of its last clock are asked for anyway.
func (s *Access[T]) Prefetch(rows ...int) {
	all := make([]consistency.Row, len(rows))
	for i, r := range rows {
		s.within(r)
		all[i] = consistency.Row(r)
	}
	s.of.ask(s.client, func(m *consistency.ClientOf[Row[T]]) []consistency.Command[Row[T]] {
		return m.Prefetch(s.worker.id, all, s.of.run.now())
	})
}
