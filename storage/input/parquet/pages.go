package parquet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"

	"github.com/volley-engine/volley/internal/raw"
)

// Columns of PLAIN encoded numbers without nulls are read page by page: definition
// levels are not decoded, and pages are neither copied nor cleared before they are
// filled.

// pageColumn reads such a column of a row group, from one page after the other.
type pageColumn struct {
	size int // of a value, in bytes
	page func() (data []byte, values int, err error)
	data []byte // values of the page that are left
	left int    // how many
}

// plainColumn is such a column whose pages the library finds.
type plainColumn struct {
	*plainPages
	size   int
	levels bool // pages begin with definition levels
}

// plainPages are the pages of a column, none of which is encoded.
type plainPages struct {
	file.PageReader
	room   *pageMemory
	stream *soundStream
	plain  bool // not compressed
	number int  // of the page, from 1
	again  func() (*plainPages, error)
	second *plainPages // the same pages, read again as far as one was doubtful
}

// headBuffer is how many bytes are read where a page begins: the rest of it goes to
// where it is wanted.
const headBuffer = 16 << 10

// pageColumn opens a column of a row group; nil where it is not of this kind.
func (f *flatFile) pageColumn(group, column int) (*pageColumn, error) {
	descr := f.r.MetaData().Schema.Column(column)
	p := &plainColumn{size: valueSize(descr.PhysicalType()), levels: descr.MaxDefinitionLevel() > 0}
	if p.size == 0 || p.levels && !f.withoutNulls(group, column) {
		return nil, nil
	}
	pages, err := f.plainPages(group, column)
	if p.plainPages = pages; err != nil || pages == nil {
		return nil, err
	}
	return &pageColumn{size: p.size, page: p.numbers}, nil
}

// plainPages opens the pages of a column of a row group; nil where some may be encoded.
func (f *flatFile) plainPages(group, column int) (*plainPages, error) {
	c, err := f.plainChunk(group, column)
	if err != nil || c == nil {
		return nil, err
	}
	return f.pagesOf(c)
}

// pagesOf opens the pages of a column chunk.
func (f *flatFile) pagesOf(c *metadata.ColumnChunkMetaData) (*plainPages, error) {
	props := parquet.ReaderProperties{BufferedStreamEnabled: true, BufferSize: headBuffer}
	stream, err := props.GetStream(f.file, c.DataPageOffset(), c.TotalCompressedSize())
	if err != nil {
		return nil, err
	}
	room := pageMemories.Get().(*pageMemory)
	f.held = append(f.held, room)
	p := &plainPages{room: room, stream: &soundStream{BufferedReader: stream},
		plain: c.Compression() == compress.Codecs.Uncompressed,
		again: func() (*plainPages, error) { return f.pagesOf(c) }}
	p.PageReader, err = file.NewPageReader(p.stream, c.NumValues(), c.Compression(), p.room, nil)
	return p, err
}

// next advances to the next page; false without one.
func (p *plainPages) next() (bool, error) {
	p.stream.taken = 0
	if !p.Next() {
		return false, p.Err()
	}
	p.number++
	page := p.Page()
	switch {
	case p.stream.failed != nil:
		return false, p.stream.failed
	case p.plain && p.stream.taken != len(page.Data()):
		return false, errCutPage
	case !p.plain && p.room.doubtful(page.Data()):
		if sure, err := p.written(); err != nil || !sure {
			return false, cmp.Or(err, errCutPage)
		}
	}
	if parquet.Encoding(page.Encoding()) != parquet.Encodings.Plain {
		return false, fmt.Errorf("it has a page that is encoded %v, which its description denies", page.Encoding())
	}
	return true, nil
}

// written reports whether the last byte of the page is the file's, though it is what its memory had before: it is read
// again into memory that has another there.
func (p *plainPages) written() (bool, error) {
	if p.second == nil {
		again, err := p.again()
		if err != nil {
			return false, err
		}
		p.second, again.room.mark = again, ^p.room.mark
	}
	for ; p.second.number < p.number; p.second.number++ {
		if !p.second.Next() {
			return false, p.second.Err()
		}
	}
	one, other := p.Page().Data(), p.second.Page().Data()
	return len(one) == len(other) && one[len(one)-1] == other[len(one)-1], nil
}

var errNulls = fmt.Errorf("it has nulls, which its description denies")

var errCutPage = fmt.Errorf("it has a page that is cut short")

// soundStream notes how much of a page was read, and errors before its end, which the
// page reader ignores.
type soundStream struct {
	parquet.BufferedReader
	taken  int // bytes, without those of its header
	failed error
}

func (s *soundStream) Read(p []byte) (int, error) {
	n, err := s.BufferedReader.Read(p)
	s.taken += n
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("it ends within a page: %w", err)
	}
	return n, err
}

// valueSize returns how many bytes a number of a type has; 0 where it is none.
func valueSize(t parquet.Type) int {
	switch t {
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	}
	return 0
}

// plainOnly reports whether no page of a column has values that are encoded; its levels
// may be.
func plainOnly(c *metadata.ColumnChunkMetaData) bool {
	return !c.HasDictionaryPage() && len(c.Encodings()) > 0 &&
		!slices.ContainsFunc(c.Encodings(), func(e parquet.Encoding) bool {
			return e != parquet.Encodings.Plain && e != parquet.Encodings.RLE && e != parquet.Encodings.BitPacked
		})
}

// next advances to the next page.
func (p *pageColumn) next() (err error) {
	p.data, p.left, err = p.page()
	return err
}

var errFewValues = fmt.Errorf("it has fewer values than the row group has rows")

// numbers goes on to the next page and returns its numbers' bytes, and how many there are.
func (p *plainColumn) numbers() (data []byte, values int, err error) {
	if more, err := p.next(); err != nil || !more {
		return nil, 0, cmp.Or(err, errFewValues)
	}
	page, skip := p.Page(), 0
	switch page := page.(type) {
	case *file.DataPageV1:
		skip = p.levelBytes(page)
	case *file.DataPageV2:
		if page.NumNulls() != 0 {
			return nil, 0, errNulls
		}
		skip = int(page.DefinitionLevelByteLen()) + int(page.RepetitionLevelByteLen())
	default:
		return nil, 0, fmt.Errorf("it has a page of values that are encoded, which its description denies")
	}
	data, err = numbersAfter(page.Data(), skip, int(page.NumValues()), p.size, p.levels)
	return data, int(page.NumValues()), err
}

// levelBytes returns how many bytes of a page the definition levels take; −1 where that
// is not known.
func (p *plainColumn) levelBytes(page *file.DataPageV1) int {
	data := page.Data()
	switch {
	case !p.levels:
		return 0
	case page.DefinitionLevelEncoding() == parquet.Encodings.BitPacked:
		return (int(page.NumValues()) + 7) / 8
	case page.DefinitionLevelEncoding() != parquet.Encodings.RLE || len(data) < 4:
		return -1
	}
	return 4 + int(binary.LittleEndian.Uint32(data))
}

// takePlain reads the next n values: in place, for as long as the page lasts, or where
// they lie on several, into room.
func takePlain[V int32 | int64 | float32 | float64](p *pageColumn, room *[]V, n int) ([]V, error) {
	for len(p.data) == 0 && n > 0 {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if bytes := n * p.size; bytes <= len(p.data) && inPlace {
		values := unsafe.Slice((*V)(unsafe.Pointer(unsafe.SliceData(p.data))), n)
		p.data = p.data[bytes:]
		return values, nil
	}
	*room = slices.Grow((*room)[:0], n)[:n]
	to := raw.Bytes(*room)
	for {
		k := copy(to, p.data)
		p.data, to = p.data[k:], to[k:]
		if len(to) == 0 {
			return *room, nil
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
}

// inPlace reports whether numbers can be read in place, at any address.
const inPlace = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"

// pageMemory reuses one buffer for the pages of a column: when the next page is
// requested, the last has been read. Its end is marked, so that a page that does not
// fill it is detected.
type pageMemory struct {
	room []byte
	mark uint64
}

// pageMemories are those of columns that have been read.
var pageMemories = sync.Pool{New: func() any { return &pageMemory{mark: rand.Uint64()} }}

// markedBytes are more than memory is rounded up by.
const markedBytes = 128

// Allocate implements memory.Allocator.
func (m *pageMemory) Allocate(n int) []byte {
	if cap(m.room) < n {
		m.room = make([]byte, n)
	}
	m.room = m.room[:n]
	for i := max(0, n-markedBytes); i < n; i++ {
		m.room[i] = m.markAt(i)
	}
	return m.room
}

func (m *pageMemory) markAt(i int) byte { return byte(m.mark >> (i % 8 * 8)) }

// doubtful reports whether the last byte of a page may be what was there before it was written.
func (m *pageMemory) doubtful(page []byte) bool {
	return len(page) > 0 && page[len(page)-1] == m.markAt(len(page)-1)
}

// Reallocate implements memory.Allocator.
func (m *pageMemory) Reallocate(n int, b []byte) []byte {
	if n > cap(b) {
		m.room = append(make([]byte, 0, n), b...)
		b = m.room
	}
	return b[:n]
}

// Free implements memory.Allocator.
func (m *pageMemory) Free([]byte) {}
