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
	if s.seat.Due() {
		s.flush()
	}
	if e := s.seat.Fresh(consistency.Row(row)); e != nil {
		return e.Value
	}
	s.within(row)
	for {
		s.client.mu.Lock()
		v, ok, out := s.client.machine.Row(s.worker.id, consistency.Row(row), s.of.run.now())
		s.client.mu.Unlock()
		s.of.carryOut(s.client, out)
		if ok && v.Values == nil && !s.of.table.shape.Sparse {
			e := s.seat.Fresh(consistency.Row(row)) // no worker has added to it
			e.Value.Values = s.of.blank
			return e.Value
		} else if ok {
			return v
		}
		s.worker.wait(s.of.run)
	}
}

// within stops a program that names a row that is not there.
func (s *Access[T]) within(row int) {
	if row < 0 || row >= s.of.table.shape.Rows {
		panic(fmt.Sprintf("table %q has no row %d: its rows are 0 to %d", s.of.table.name, row,
			s.of.table.shape.Rows-1))
	}
}

// Inc adds to a cell; it waits where the model has it.
func (s *Access[T]) Inc(row, column int, by T) {
	if s.of.o.Bound > 0 {
		s.bounded(row, Row[T]{[]int32{int32(column)}, []T{by}})
		return
	}
	if s.seat.Due() {
		s.flush()
	}
	e := s.touch(row)
	if s.of.table.shape.Sparse {
		if uint(column) >= uint(s.of.table.shape.Columns) {
			panic(fmt.Sprintf("table %q has no column %d", s.of.table.name, column))
		}
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
	if e.Delta.Values == nil {
		if s.within(row); !s.of.table.shape.Sparse {
			e.Delta.Values = s.of.sums.zero()
		}
	}
	return e
}

// IncRow adds to a row, a number of by to each of its cells.
func (s *Access[T]) IncRow(row int, by []T) {
	if len(by) != s.of.table.shape.Columns {
		panic(fmt.Sprintf("table %q has %d columns, and %d numbers are added", s.of.table.name,
			s.of.table.shape.Columns, len(by)))
	}
	if s.of.o.Bound > 0 || s.of.table.shape.Sparse {
		for c, x := range by {
			if x != 0 {
				s.Inc(row, c, x)
			}
		}
		return
	}
	if s.seat.Due() {
		s.flush()
	}
	e := s.touch(row)
	addTo(e.Delta.Values, by)
	if e.Read() {
		addTo(e.Value.Values, by)
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
	if s.within(row); int(delta.Columns[0]) >= s.of.table.shape.Columns {
		panic(fmt.Sprintf("table %q has no column %d", s.of.table.name, delta.Columns[0]))
	}
	if s.seat.Due() {
		s.flush()
	}
	for {
		s.client.mu.Lock()
		ok := s.client.machine.Inc(s.worker.id, consistency.Row(row), delta, s.of.run.now())
		s.client.mu.Unlock()
		if ok {
			return
		}
		s.worker.wait(s.of.run)
	}
}

// flush sends what bandwidth allows.
func (s *Access[T]) flush() {
	s.client.mu.Lock()
	out := s.client.machine.Flush(s.worker.id, s.of.run.now())
	s.client.mu.Unlock()
	s.of.carryOut(s.client, out)
}

// Prefetch asks for rows that the worker will read in this clock. Those of its last clock are asked for anyway.
func (s *Access[T]) Prefetch(rows ...int) {
	all := make([]consistency.Row, len(rows))
	for i, r := range rows {
		s.within(r)
		all[i] = consistency.Row(r)
	}
	s.client.mu.Lock()
	out := s.client.machine.Prefetch(s.worker.id, all, s.of.run.now())
	s.client.mu.Unlock()
	s.of.carryOut(s.client, out)
}
