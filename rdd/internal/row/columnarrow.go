package row

import (
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Record returns rows as an Arrow record. Numbers are copied to the column's memory as they are.
func (c *Columns[T]) Record(rows []T) arrow.Record {
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

// numbers returns a column of numbers, nil of any other type.
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

// AppendRecord appends the rows of an Arrow record.
func (c *Columns[T]) AppendRecord(rec arrow.Record, rows []T) ([]T, error) {
	at, n := len(rows), int(rec.NumRows())
	rows = slices.Grow(rows, n)[:at+n]
	clear(rows[at:])
	return rows, c.fill(rec, rows[at:], 0)
}
