package rdd

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/fault"
)

// mapBatchRows is how many rows MapBatches hands over at a time.
const mapBatchRows = 4096

// MapBatches applies f to columns instead of rows: each call gets a record of
// up to 4096 rows with one column "value", and returns a record with one
// column of U's type. T and U may be float64, int64, string or bool. f owns
// neither record beyond the call.
func MapBatches[T, U any](ds Dataset[T], f func(arrow.Record) (arrow.Record, error)) Dataset[U] {
	if columnOf[T]() == nil || columnOf[U]() == nil {
		ds.g.fail("MapBatches from %s to %s: rows must be float64, int64, string or bool", typeName[T](), typeName[U]())
	}
	return derive(ds, "map-batches", func(ctx context.Context, part int, yield func(U) error) error {
		rows := make([]T, 0, mapBatchRows)
		flush := func() error {
			err := mapBatch(rows, f, yield)
			rows = rows[:0]
			return err
		}
		err := ds.each(ctx, part, func(row T) error {
			if rows = append(rows, row); len(rows) == mapBatchRows {
				return flush()
			}
			return nil
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		return flush()
	})
}

func mapBatch[T, U any](rows []T, f func(arrow.Record) (arrow.Record, error), yield func(U) error) error {
	in := recordOf(rows)
	defer in.Release()
	out, err := f(in)
	if err != nil {
		return fault.New(fault.UserCode, "map", "a batch", err)
	}
	defer out.Release()
	if out.NumCols() != 1 || !arrow.TypeEqual(out.Column(0).DataType(), columnOf[U]()) {
		return fault.Newf(fault.UserCode, "map", "a batch", "it returned %v, want one column of %v", out.Schema(), columnOf[U]())
	}
	for i := range int(out.NumRows()) {
		u, ok := valueAt(out.Column(0), i).(U)
		if !ok {
			return fault.Newf(fault.UserCode, "map", "a batch", "row %d is null", i)
		}
		if err := yield(u); err != nil {
			return err
		}
	}
	return nil
}

// columnOf is the Arrow type of a row type; nil where it has none.
func columnOf[T any]() arrow.DataType {
	var zero T
	switch any(zero).(type) {
	case float64:
		return arrow.PrimitiveTypes.Float64
	case int64:
		return arrow.PrimitiveTypes.Int64
	case string:
		return arrow.BinaryTypes.String
	case bool:
		return arrow.FixedWidthTypes.Boolean
	}
	return nil
}

func recordOf[T any](rows []T) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{{Name: "value", Type: columnOf[T]()}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, row := range rows {
		switch v := any(row).(type) {
		case float64:
			b.Field(0).(*array.Float64Builder).Append(v)
		case int64:
			b.Field(0).(*array.Int64Builder).Append(v)
		case string:
			b.Field(0).(*array.StringBuilder).Append(v)
		case bool:
			b.Field(0).(*array.BooleanBuilder).Append(v)
		default:
			panic(fmt.Sprintf("no column for %T", row)) // Build has refused it
		}
	}
	return b.NewRecord()
}

// valueAt is the value of a column at a row; nil where it is null.
func valueAt(col arrow.Array, i int) any {
	if col.IsNull(i) {
		return nil
	}
	switch c := col.(type) {
	case *array.Float64:
		return c.Value(i)
	case *array.Int64:
		return c.Value(i)
	case *array.String:
		return c.Value(i)
	case *array.Boolean:
		return c.Value(i)
	}
	return nil
}
