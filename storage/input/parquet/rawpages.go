package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/golang/snappy"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/storage/input/files"
)

// rawFile reads columns of numbers and texts from pages whose heads a decoder has read:
// only blocks of bytes of a known, small size are left to unpack.
type rawFile struct {
	path string
	file files.Handle
	cols []rawPages
}

// rawPages are the pages of one column.
type rawPages struct {
	columnPages
	path   string
	file   files.Handle
	packed []byte
	page   []byte
}

// open opens the file; columns are read by as many rawPages.
func (f *rawFile) open(columns int) (err error) {
	if f.file != nil {
		return nil
	}
	if f.file, err = files.OpenPath(f.path); err != nil {
		return err
	}
	f.cols = make([]rawPages, columns)
	return nil
}

func (f *rawFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// group yields the rows of a row group.
func (f *rawFile) group(g *groupPages, cols []*FlatColumn, yield func(rows int, cols []*FlatColumn) error) error {
	if err := f.open(len(cols)); err != nil {
		return err
	}
	if len(g.Columns) != len(cols) {
		return errShortBody
	}
	readers := make([]flatReader, len(cols))
	for i, c := range g.Columns {
		p := &f.cols[i]
		p.columnPages, p.path, p.file, cols[i].Unit = c, f.path, f.file, c.Unit
		readers[i] = flatReader{kind: c.Type, pages: &pageColumn{size: valueSize(c.Type), page: p.next}}
	}
	return fillRows(f.path, g.Rows, readers, cols, yield)
}

// next unpacks the next page and returns its values' bytes, and how many there are.
func (p *rawPages) next() (data []byte, values int, err error) {
	if len(p.Pages) == 0 {
		return nil, 0, errFewValues
	}
	at := p.Pages[0]
	p.Pages = p.Pages[1:]
	if at.Size > pageMost || at.Packed > 2*pageMost || at.Size <= 0 || at.Packed < 0 {
		return nil, 0, errShortBody
	}
	if data, err = p.unpack(at); err != nil {
		return nil, 0, err
	}
	skip := 0
	if p.Levels && !at.Bare {
		if len(data) < 4 {
			return nil, 0, errCutPage
		}
		skip = 4 + int(binary.LittleEndian.Uint32(data))
	}
	if p.Type != parquet.Types.ByteArray {
		data, err = numbersAfter(data, skip, at.Values, valueSize(p.Type), p.Levels)
	} else if skip < 0 || skip > len(data) {
		err = errCutPage
	} else {
		data = data[skip:]
	}
	return data, at.Values, err
}

// leastSize returns the least size of a value of a type that the parent can unpack; 0 where
// it cannot.
func leastSize(t parquet.Type) int {
	if t == parquet.Types.ByteArray {
		return 4 // its length
	}
	return valueSize(t)
}

// takeTexts reads the next n values of bytes: in place, as long as the page lasts; those of
// pages before it are copied.
func takeTexts(p *pageColumn, room *[]parquet.ByteArray, n int) ([]parquet.ByteArray, error) {
	sized(room, n)
	out := *room
	for i := range out {
		if p.left == 0 {
			copyTexts(out[:i])
			if err := p.next(); err != nil {
				return nil, err
			}
		}
		if len(p.data) < 4 {
			return nil, errCutPage
		}
		size := binary.LittleEndian.Uint32(p.data)
		if uint64(size) > uint64(len(p.data)-4) {
			return nil, errCutPage
		}
		end := 4 + int(size)
		out[i], p.data, p.left = p.data[4:end:end], p.data[end:], p.left-1
		if p.left == 0 && len(p.data) > 0 {
			return nil, fmt.Errorf("it has a page with %d bytes after its values", len(p.data))
		}
	}
	return out, nil
}

// copyTexts copies texts out of their page.
func copyTexts(texts []parquet.ByteArray) {
	size := 0
	for _, b := range texts {
		size += len(b)
	}
	to := make([]byte, 0, size)
	for i, b := range texts {
		at := len(to)
		to = append(to, b...)
		texts[i] = to[at:len(to):len(to)]
	}
}

// unpack reads a page.
func (p *rawPages) unpack(at pageAt) ([]byte, error) {
	sized(&p.page, at.Size)
	if at.Packed == 0 {
		return p.page, p.readAt(p.page, at.At)
	}
	sized(&p.packed, at.Packed)
	if err := p.readAt(p.packed, at.At); err != nil {
		return nil, err
	}
	n, err := snappy.DecodedLen(p.packed)
	if err == nil && n != at.Size {
		err = fmt.Errorf("it has a page of %d bytes that unpacks to %d", at.Size, n)
	}
	if err != nil {
		return nil, err
	}
	return snappy.Decode(p.page, p.packed)
}

func (p *rawPages) readAt(to []byte, at int64) error {
	_, err := p.file.ReadAt(to, at)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it ends within a page: %w", err)
	}
	return disk.OpenError(p.path, err)
}

// numbersAfter returns the bytes of a page's numbers, which follow its levels.
func numbersAfter(data []byte, skip, values, size int, levels bool) ([]byte, error) {
	want := values * size
	if left := len(data) - skip; skip < 0 || left < want || levels && left > want { // there are nulls, or more
		return nil, fmt.Errorf("it has a page of %d bytes for %d values", len(data), values)
	}
	return data[skip : skip+want], nil
}
