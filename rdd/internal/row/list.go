package row

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// List is an encoded list of rows: their number, and the rows.
type List[T any] struct {
	Row Codec[T]
	N   int
	Raw []byte
}

// Add appends a row.
func (l *List[T]) Add(row *T) (err error) {
	defer recoverEncoding(&err)
	l.Raw = l.Row.Append(l.Raw, row)
	l.N++
	return nil
}

// Encoded returns the encoding of the list.
func (l *List[T]) Encoded() []byte {
	return append(binary.AppendUvarint(make([]byte, 0, len(l.Raw)+binary.MaxVarintLen64), uint64(l.N)), l.Raw...)
}

// NoRows is the encoding of an empty list.
var NoRows = []byte{0}

// AppendList appends the rows of an encoded list.
func AppendList[T any](rows []T, raw []byte) ([]T, error) {
	c, err := CodecOf[T]()
	if err != nil {
		return nil, err
	}
	n, k := binary.Uvarint(raw)
	if k <= 0 || n > uint64(len(raw)) {
		return nil, Corrupt(fmt.Errorf("%d bytes are no list of rows", len(raw)))
	}
	var text Arena
	raw, rows = raw[k:], slices.Grow(rows, int(n))
	for range n {
		var row T
		if raw, err = c.Parse(raw, &row, &text); err != nil {
			return nil, Corrupt(err)
		}
		rows = append(rows, row)
	}
	if len(raw) > 0 {
		return nil, Corrupt(fmt.Errorf("%d bytes are left after the last row", len(raw)))
	}
	return rows, nil
}
