package rdd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/parquet"
)

// typedSource is a dataset read from files, a part of which is read at a time.
func typedSource[T any](g *Graph, kind string, in Input, uris []string,
	each func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error) Dataset[T] {
	d := &sourceDecl{URIs: uris, Options: in}
	g.sources = append(g.sources, d)
	id := g.add(node{kind: kind, typ: typeName[T](), detail: fmt.Sprintf("%v %v", uris, in.Typed), bytes: d.bytes})
	return Dataset[T]{g: g, id: id, parts: func() int { return d.source.Len() },
		produce: advancing(func(ctx context.Context, part int, yield func([]T) error) error {
			return each(d.source, ctx, part, yield)
		})}
}

// columnsFor derives the columns of T for a source or a sink; a type that has
// none is a mistake in the plan.
func columnsFor[T any](g *Graph, op string) *columns[T] {
	c, err := columnsOf[T]()
	if err != nil {
		g.fail("%s: %v", op, err)
		return &columns[T]{}
	}
	return c
}

// Parquet is a dataset of the rows of Parquet files: each field of T is read from
// the column of its name, or of its tag col; other columns are not read at all.
// Whole numbers may be wider in T than in the file, or, where all values fit,
// narrower.
func Parquet[T any](g *Graph, uris ...string) Dataset[T] {
	c := columnsFor[T](g, "parquet")
	return typedSource(g, "parquet", Input{Format: input.Parquet, Typed: c.names()}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			if s.Flat && c.isFlat() {
				return c.readFlat(ctx, s, part, yield)
			}
			return c.readArrow(ctx, s, part, yield)
		})
}

// Arrow is Parquet of Arrow IPC files, in the file or the stream format.
func Arrow[T any](g *Graph, uris ...string) Dataset[T] {
	c := columnsFor[T](g, "arrow")
	return typedSource(g, "arrow", Input{Format: input.Arrow, Typed: c.names()}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			return c.readArrow(ctx, s, part, yield)
		})
}

// JSONLines is a dataset of files of one JSON value a line, read by encoding/json
// into T. Empty lines are left out.
func JSONLines[T any](g *Graph, uris ...string) Dataset[T] {
	return typedSource(g, "json-lines", Input{Format: input.Text}, uris,
		func(s *input.Source, ctx context.Context, part int, yield func([]T) error) error {
			b := newBatcher(yield)
			err := s.EachLine(ctx, part, func(where func() input.Where, line []byte) error {
				if len(bytes.TrimSpace(line)) == 0 {
					return nil
				}
				var row T
				if err := json.Unmarshal(line, &row); err != nil {
					return fault.New(fault.BadInput, "read", where().String(), jsonError(err))
				}
				return b.add(row)
			})
			return firstError(err, b.flush())
		})
}

// jsonError says what is wrong, and in which field.
func jsonError(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return fmt.Errorf("field %s: a %s is no %v", t.Field, t.Value, t.Type)
	}
	return err
}

// isFlat reports whether all columns can be read from flat ones.
func (c *columns[T]) isFlat() bool {
	for _, f := range c.fields {
		if f.flat == nil {
			return false
		}
	}
	return true
}

// readFlat turns columns into rows, a batch at a time.
func (c *columns[T]) readFlat(ctx context.Context, s *input.Source, part int, yield func([]T) error) error {
	var rows []T
	var text arena
	names, first := c.names(), s.Parts[part].Row
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
		return inBatches(rows, yield)
	})
}

// fillFlat reads a column of n rows into fields that lie stride bytes apart; the first row has
// a number in its file.
func (f column) fillFlat(c *parquet.FlatColumn, p unsafe.Pointer, stride uintptr, n int, first int64,
	text *arena) error {
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

// readArrow turns Arrow records into rows.
func (c *columns[T]) readArrow(ctx context.Context, s *input.Source, part int, yield func([]T) error) error {
	var rows []T
	first := int(s.Parts[part].Row)
	return s.ArrowRecords(ctx, part, c.names(), func(path string, rec arrow.Record) error {
		rows = slices.Grow(rows[:0], int(rec.NumRows()))[:rec.NumRows()]
		clear(rows)
		if err := c.fill(rec, rows, first); err != nil {
			return fault.New(fault.BadInput, "read", path, err)
		}
		first += len(rows)
		return inBatches(rows, yield)
	})
}

// fill reads the rows of a record, whose first row has a number in its file.
func (c *columns[T]) fill(rec arrow.Record, rows []T, first int) error {
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
