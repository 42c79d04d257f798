package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/golang/snappy"
)

// rawFile reads columns of numbers from pages whose heads a decoder has read: all that is left
// is to unpack blocks of bytes, of a size that is known and small.
type rawFile struct {
	path string
	file *os.File
	cols []rawPages
}

// rawPages are the pages of one column.
type rawPages struct {
	columnPages
	path   string
	file   *os.File
	packed []byte
	page   []byte
}

// open opens the file; columns are read by as many rawPages.
func (f *rawFile) open(columns int) (err error) {
	if f.file != nil {
		return nil
	}
	if f.file, err = os.Open(f.path); err != nil {
		return openError(f.path, err)
	}
	f.cols = make([]rawPages, columns)
	return nil
}

func (f *rawFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// group hands the rows of a row group on.
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

// next unpacks the next page and returns its numbers' bytes.
func (p *rawPages) next() ([]byte, error) {
	if len(p.Pages) == 0 {
		return nil, errFewValues
	}
	at := p.Pages[0]
	p.Pages = p.Pages[1:]
	if at.Size > pageMost || at.Packed > 2*pageMost || at.Size <= 0 || at.Packed < 0 {
		return nil, errShortBody
	}
	data, err := p.unpack(at)
	if err != nil {
		return nil, err
	}
	skip := 0
	if p.Levels && !at.Bare {
		if len(data) < 4 {
			return nil, errCutPage
		}
		skip = 4 + int(binary.LittleEndian.Uint32(data))
	}
	return numbersAfter(data, skip, at.Values, valueSize(p.Type), p.Levels)
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
	if n, err := snappy.DecodedLen(p.packed); err != nil || n != at.Size {
		return nil, fmt.Errorf("it has a page of %d bytes that unpacks to %d (%w)", at.Size, n, err)
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
	return openError(p.path, err)
}

// numbersAfter are the bytes of a page's numbers, which follow its levels.
func numbersAfter(data []byte, skip, values, size int, levels bool) ([]byte, error) {
	want := values * size
	if left := len(data) - skip; skip < 0 || left < want || levels && left > want { // there are nulls, or more
		return nil, fmt.Errorf("it has a page of %d bytes for %d values", len(data), values)
	}
	return data[skip : skip+want], nil
}
