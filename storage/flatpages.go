package storage

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
)

// Columns of numbers without nulls whose pages hold them as they are (encoded PLAIN)
// are read page by page: neither are the levels decoded that would say which values
// are there, nor is a page copied, or cleared before it is filled.

// pageColumn reads such a column of a row group.
type pageColumn struct {
	pages  file.PageReader
	size   int    // of a value, in bytes
	levels bool   // pages begin with definition levels
	data   []byte // values of the page that are left
}

// headBuffer is how many bytes are read where a page begins: the rest of it goes to
// where it is wanted.
const headBuffer = 16 << 10

// pageColumn opens a column of a row group; nil where it is not of this kind.
func (f *flatFile) pageColumn(group, column int) (*pageColumn, error) {
	md := f.r.MetaData()
	c, err := md.RowGroup(group).ColumnChunk(column)
	if err != nil {
		return nil, err
	}
	descr := md.Schema.Column(column)
	p := &pageColumn{size: valueSize(descr.PhysicalType()), levels: descr.MaxDefinitionLevel() > 0}
	old := md.WriterVersion().LessThan(metadata.Parquet816FixedVersion) // their lengths are not right
	if p.size == 0 || old || p.levels && !f.withoutNulls(group, column) || c.CryptoMetadata() != nil || !plainOnly(c) {
		return nil, nil
	}
	props := parquet.ReaderProperties{BufferedStreamEnabled: true, BufferSize: headBuffer}
	stream, err := props.GetStream(f.file, c.DataPageOffset(), c.TotalCompressedSize())
	if err != nil {
		return nil, err
	}
	p.pages, err = file.NewPageReader(stream, c.NumValues(), c.Compression(), &pageMemory{}, nil)
	return p, err
}

// valueSize is how many bytes a number of a type has; 0 where it is none.
func valueSize(t parquet.Type) int {
	switch t {
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	}
	return 0
}

// plainOnly says whether no page of a column has values that are encoded; its levels
// may be.
func plainOnly(c *metadata.ColumnChunkMetaData) bool {
	return !c.HasDictionaryPage() && !slices.ContainsFunc(c.Encodings(), func(e parquet.Encoding) bool {
		return e != parquet.Encodings.Plain && e != parquet.Encodings.RLE && e != parquet.Encodings.BitPacked
	})
}

// next goes on to the next page.
func (p *pageColumn) next() error {
	if !p.pages.Next() {
		if err := p.pages.Err(); err != nil {
			return err
		}
		return fmt.Errorf("it has fewer values than the row group has rows")
	}
	page := p.pages.Page()
	data, skip := page.Data(), 0
	switch page := page.(type) {
	case *file.DataPageV1:
		skip = p.levelBytes(page)
	case *file.DataPageV2:
		skip = int(page.DefinitionLevelByteLen()) + int(page.RepetitionLevelByteLen())
	default:
		return fmt.Errorf("it has a page of values that are encoded, which its description denies")
	}
	want := int(page.NumValues()) * p.size
	if parquet.Encoding(page.Encoding()) != parquet.Encodings.Plain || skip < 0 || len(data)-skip < want {
		return fmt.Errorf("it has a page of %d bytes for %d values, encoded %v", len(data), page.NumValues(), page.Encoding())
	}
	p.data = data[skip : skip+want]
	return nil
}

// levelBytes is how many bytes of a page the definition levels take; −1 where it has
// not even these.
func (p *pageColumn) levelBytes(page *file.DataPageV1) int {
	data := page.Data()
	switch {
	case !p.levels:
		return 0
	case page.DefinitionLevelEncoding() == parquet.Encodings.BitPacked:
		return (int(page.NumValues()) + 7) / 8
	case len(data) < 4:
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
	to := asBytes(*room)
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

// inPlace says whether numbers can be read where they lie, at any address.
const inPlace = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"

// pageMemory hands out the same memory for one page of a column after the other: when
// the next one is asked for, the last has been read.
type pageMemory struct{ room []byte }

// Allocate is memory.Allocator's.
func (m *pageMemory) Allocate(n int) []byte {
	if cap(m.room) < n {
		m.room = make([]byte, n)
	}
	return m.room[:n]
}

// Reallocate is memory.Allocator's.
func (m *pageMemory) Reallocate(n int, b []byte) []byte {
	if n > cap(b) {
		m.room = append(make([]byte, 0, n), b...)
		b = m.room
	}
	return b[:n]
}

// Free is memory.Allocator's.
func (m *pageMemory) Free([]byte) {}
