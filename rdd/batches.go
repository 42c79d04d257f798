package rdd

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd/internal/row"
)

// mapBatchRows is how many rows MapBatches hands over at a time.
const mapBatchRows = 4 << 10

// MapBatches applies f to columns instead of rows: each call gets a record of
// some thousand rows with a column for each field of T, or one column "value"
// where T is no struct, and returns a record with the columns of U. f owns
// neither record beyond the call, and may return the one that it was given.
func MapBatches[T, U any](ds Dataset[T], f func(arrow.Record) (arrow.Record, error)) Dataset[U] {
	in, out := columnsFor[T](ds.g, "map batches"), columnsFor[U](ds.g, "map batches")
	return derive(ds, "map-batches", func(ctx context.Context, part int, yield func([]U) error) error {
		m := &batchMapper[T, U]{in: in, out: out, f: f, yield: yield, rows: make([]T, 0, mapBatchRows)}
		err := ds.each(ctx, part, func(rows []T) error {
			for len(rows) > 0 {
				n := min(len(rows), cap(m.rows)-len(m.rows))
				m.rows, rows = append(m.rows, rows[:n]...), rows[n:]
				if len(m.rows) == cap(m.rows) {
					if err := m.flush(); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil || len(m.rows) == 0 {
			return err
		}
		return m.flush()
	})
}

type batchMapper[T, U any] struct {
	in    *row.Columns[T]
	out   *row.Columns[U]
	f     func(arrow.Record) (arrow.Record, error)
	yield func([]U) error
	rows  []T
	made  []U
}

func (m *batchMapper[T, U]) flush() error {
	in := m.in.Record(m.rows)
	defer in.Release()
	m.rows = m.rows[:0]
	out, err := m.f(in)
	if err != nil {
		return fault.New(fault.UserCode, "map", "a batch", err)
	}
	if out != in {
		defer out.Release()
	}
	m.made, err = m.out.AppendRecord(out, m.made[:0])
	if err != nil {
		return fault.New(fault.UserCode, "map", "a batch", err)
	}
	return row.InBatches(m.made, m.yield)
}
