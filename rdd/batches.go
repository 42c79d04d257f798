package rdd

import (
	"context"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/fault"
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
	in    *columns[T]
	out   *columns[U]
	f     func(arrow.Record) (arrow.Record, error)
	yield func([]U) error
	rows  []T
	made  []U
}

func (m *batchMapper[T, U]) flush() error {
	in := m.in.record(m.rows)
	defer in.Release()
	m.rows = m.rows[:0]
	out, err := m.f(in)
	if err != nil {
		return fault.New(fault.UserCode, "map", "a batch", err)
	}
	if out != in {
		defer out.Release()
	}
	m.made, err = m.out.rowsInto(out, m.made[:0])
	if err != nil {
		return fault.New(fault.UserCode, "map", "a batch", err)
	}
	return inBatches(m.made, m.yield)
}

// record are rows as columns. Numbers are copied to the column's memory as they
// are.
func (c *columns[T]) record(rows []T) arrow.Record {
	cols := make([]arrow.Array, len(c.fields))
	for k, f := range c.fields {
		if cols[k] = f.numbers(unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), f.offset), unsafe.Sizeof(*new(T)),
			len(rows)); cols[k] != nil {
			continue
		}
		b := array.NewBuilder(memory.DefaultAllocator, f.arrow)
		for i := range rows {
			f.write(b, unsafe.Add(unsafe.Pointer(&rows[i]), f.offset))
		}
		cols[k] = b.NewArray()
		b.Release()
	}
	rec := array.NewRecord(c.schema, cols, int64(len(rows)))
	for _, col := range cols {
		col.Release()
	}
	return rec
}

// numbers is a column of numbers; nil of what is not.
func (f column) numbers(first unsafe.Pointer, stride uintptr, n int) arrow.Array {
	fixed, ok := f.arrow.(arrow.FixedWidthDataType)
	if !ok || f.null || !isNumeric(f.arrow) {
		return nil
	}
	width := fixed.BitWidth() / 8
	raw := make([]byte, n*width)
	if n > 0 {
		gather(raw, first, stride, n, width)
	}
	data := array.NewData(f.arrow, n, []*memory.Buffer{nil, memory.NewBufferBytes(raw)}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func isNumeric(t arrow.DataType) bool {
	return t.ID() >= arrow.UINT8 && t.ID() <= arrow.INT64 || t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
}

// gather copies n numbers of a width that lie stride bytes apart.
func gather(out []byte, first unsafe.Pointer, stride uintptr, n, width int) {
	switch width {
	case 8:
		to := unsafe.Slice((*uint64)(unsafe.Pointer(&out[0])), n)
		for i := range to {
			to[i] = *(*uint64)(unsafe.Add(first, uintptr(i)*stride))
		}
	case 4:
		to := unsafe.Slice((*uint32)(unsafe.Pointer(&out[0])), n)
		for i := range to {
			to[i] = *(*uint32)(unsafe.Add(first, uintptr(i)*stride))
		}
	default:
		for i := range n {
			copy(out[i*width:(i+1)*width], unsafe.Slice((*byte)(unsafe.Add(first, uintptr(i)*stride)), width))
		}
	}
}

// rowsInto appends the rows of a record.
func (c *columns[T]) rowsInto(rec arrow.Record, rows []T) ([]T, error) {
	at, n := len(rows), int(rec.NumRows())
	rows = slices.Grow(rows, n)[:at+n]
	clear(rows[at:])
	return rows, c.fill(rec, rows[at:], 0)
}
