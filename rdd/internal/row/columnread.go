package row

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/parquet"
)

// IsFlat reports whether all columns can be read from flat columns of Parquet.
func (c *Columns[T]) IsFlat() bool {
	for _, f := range c.fields {
		if f.flat == nil {
			return false
		}
	}
	return true
}

// ReadFlat yields the rows of a part of a Parquet source, read from flat columns.
func (c *Columns[T]) ReadFlat(ctx context.Context, s *input.Source, part int, yield func([]T) error) error {
	var rows []T
	var text Arena
	names, first := c.Names(), s.Parts[part].Row
	return s.FlatColumns(ctx, part, names, func(n int, cols []*parquet.FlatColumn) error {
		if cap(rows) < n {
			rows = make([]T, n)
		}
		rows = rows[:n]
		for i, f := range c.fields {
			if err := f.fillFlat(cols[i], unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), f.offset),
				unsafe.Sizeof(rows[0]), n, first, &text); err != nil {
				return fault.New(fault.BadInput, "read", s.Parts[part].File.Path,
					fmt.Errorf("column %q: %w", f.name, err))
			}
		}
		first += int64(n)
		return InBatches(rows, yield)
	})
}

// fillFlat reads a column of n rows into fields that lie stride bytes apart; the first row has
// a number in its file.
func (f column) fillFlat(c *parquet.FlatColumn, p unsafe.Pointer, stride uintptr, n int, first int64,
	text *Arena) error {
	present := max(len(c.Bools), len(c.Int32s), len(c.Int64s), len(c.Floats), len(c.Doubles), len(c.Bytes))
	if present == n && f.all != nil && f.all(c, p, stride, text) {
		return nil
	}
	k := 0
	for i := range n {
		at := unsafe.Add(p, uintptr(i)*stride)
		if present < n && c.Defs[i] == 0 {
			if !f.null {
				return fmt.Errorf("row %d: %w", first+int64(i), errIsNull)
			}
			f.clear(at)
			continue
		}
		if err := f.flat(c, k, at, text); err != nil {
			return fmt.Errorf("row %d: %w", first+int64(i), err)
		}
		k++
	}
	return nil
}

// ReadArrow yields the rows of a part of a source, read as Arrow records.
func (c *Columns[T]) ReadArrow(ctx context.Context, s *input.Source, part int, yield func([]T) error) error {
	var rows []T
	first := int(s.Parts[part].Row)
	return s.ArrowRecords(ctx, part, c.paths(), func(path string, rec arrow.Record) error {
		rows = slices.Grow(rows[:0], int(rec.NumRows()))[:rec.NumRows()]
		clear(rows)
		if err := c.fill(rec, rows, first); err != nil {
			return fault.New(fault.BadInput, "read", path, err)
		}
		first += len(rows)
		return InBatches(rows, yield)
	})
}

// fill reads the rows of a record, whose first row has a number in its file.
func (c *Columns[T]) fill(rec arrow.Record, rows []T, first int) error {
	for _, f := range c.fields {
		at := fieldNamed(rec.Schema().Fields(), f.name)
		if at < 0 {
			return fmt.Errorf("there is no column %q", f.name)
		}
		col := rec.Column(at)
		base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), f.offset)
		if col.NullN() == 0 && !f.null && scatter(col, f.arrow, base, unsafe.Sizeof(*new(T))) {
			continue
		}
		for i := range rows {
			if err := readValue(f.columnType, col, i, unsafe.Add(unsafe.Pointer(&rows[i]), f.offset)); err != nil {
				return fmt.Errorf("column %q in row %d: %w", f.name, first+i, err)
			}
		}
	}
	return nil
}

// scatter copies a column of numbers to fields of its very type, and reports whether
// it is one.
func scatter(col arrow.Array, want arrow.DataType, first unsafe.Pointer, stride uintptr) bool {
	if !arrow.TypeEqual(col.DataType(), want) {
		return false
	}
	switch c := col.(type) {
	case *array.Float64:
		scatterValues(c.Float64Values(), first, stride)
	case *array.Int64:
		scatterValues(c.Int64Values(), first, stride)
	case *array.Float32:
		scatterValues(c.Float32Values(), first, stride)
	case *array.Int32:
		scatterValues(c.Int32Values(), first, stride)
	default:
		return false
	}
	return true
}

func scatterValues[N any](values []N, first unsafe.Pointer, stride uintptr) {
	for i, v := range values {
		*(*N)(unsafe.Add(first, uintptr(i)*stride)) = v
	}
}
