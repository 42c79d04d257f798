package parquet

import (
	"cmp"
	"context"
	"io"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/thrift/lib/go/thrift"
)

// For columns of plainly encoded numbers and texts the child sends only the positions of pages: it
// reads the pages' headers, and the parent unpacks the pages (rawpages.go).

// groupPages is the positions of the pages of some columns of a row group.
type groupPages struct {
	Rows    int64         `json:"rows"`
	Columns []columnPages `json:"columns"`
}

// columnPages are the pages of one of them.
type columnPages struct {
	Type   parquet.Type `json:"type"`
	Unit   TimeUnit     `json:"unit,omitempty"`
	Levels bool         `json:"levels,omitempty"` // definition levels, all of which are 1, come first
	Pages  []pageAt     `json:"pages"`
}

// pageAt is the position of a page, or of its part that may be compressed.
type pageAt struct {
	At     int64 `json:"a"`
	Packed int   `json:"p,omitempty"` // bytes of a block of Snappy; 0 where the page is not packed
	Size   int   `json:"s"`           // bytes of what was packed
	Bare   bool  `json:"b,omitempty"` // its levels are before it
	Values int   `json:"v"`
}

// pageMost is how many bytes a page may have to be unpacked by the parent.
const pageMost = 8 << 20

// groupPages returns the positions of pages; nil where a column has any that must be
// decoded, or that is malformed: decoding then reports the error.
func (f *flatFile) groupPages(group int, names []string) *groupPages {
	if group < 0 || group >= f.r.NumRowGroups() {
		return nil
	}
	g := &groupPages{Rows: f.r.MetaData().RowGroups[group].GetNumRows()}
	for _, name := range names {
		c, ok := f.columnPages(group, f.column(name), g.Rows)
		if !ok {
			return nil
		}
		g.Columns = append(g.Columns, c)
	}
	return g
}

// columnPages finds the pages of a column that has n rows.
func (f *flatFile) columnPages(group, column int, rows int64) (c columnPages, ok bool) {
	descr := f.r.MetaData().Schema.Column(column)
	c.Type, c.Unit, c.Levels = descr.PhysicalType(), unitOf(descr), descr.MaxDefinitionLevel() > 0
	if leastSize(c.Type) == 0 || c.Levels && !f.withoutNulls(group, column) {
		return c, false
	}
	md, err := f.plainChunk(group, column)
	if err != nil || md == nil || md.Compression() != compress.Codecs.Uncompressed &&
		md.Compression() != compress.Codecs.Snappy {
		return c, false
	}
	h := headReader{file: f.file, at: md.DataPageOffset(), packed: md.Compression() == compress.Codecs.Snappy,
		levels: c.Levels}
	end := h.at + md.TotalCompressedSize()
	for left := rows; left > 0; {
		p, ok := h.next(end)
		if !ok || p.Values <= 0 || int64(p.Values) > left || p.Size > pageMost || p.Values*leastSize(c.Type) > p.Size {
			return c, false
		}
		c.Pages, left = append(c.Pages, p), left-int64(p.Values)
	}
	return c, true
}

// plainChunk describes a column of a row group none of whose pages is encoded; nil where some
// may be.
func (f *flatFile) plainChunk(group, column int) (*metadata.ColumnChunkMetaData, error) {
	md := f.r.MetaData()
	c, err := md.RowGroup(group).ColumnChunk(column)
	if err != nil {
		return nil, err
	}
	old := md.WriterVersion().LessThan(metadata.Parquet816FixedVersion) // their lengths are not right
	if old || c.CryptoMetadata() != nil || !plainOnly(c) {
		return nil, nil
	}
	return c, nil
}

// headReader reads the headers of pages, one after the other.
type headReader struct {
	file   io.ReaderAt
	at     int64
	packed bool
	levels bool
	room   []byte
}

// headMost is how many bytes a header may have; most of them may be statistics.
const headMost = 1 << 20

// next returns the next page; false where that is none of numbers as they are.
func (h *headReader) next(end int64) (pageAt, bool) {
	head, size := h.read(end)
	if head == nil {
		return pageAt{}, false
	}
	p := pageAt{At: h.at + size}
	whole, packed := head.at(headUnpacked), head.at(headPacked)
	ok, plain := false, int(parquet.Encodings.Plain)
	switch head.at(headKind) {
	case dataPage:
		p.Values, ok = head.at(headValues), head.at(headEncoding) == plain &&
			(!h.levels || head.at(headLevels) == int(parquet.Encodings.RLE))
	case dataPageV2:
		defs, reps := head.at(headDefsV2), head.at(headRepsV2)
		lead := defs + reps
		p.Values, ok = head.at(headValuesV2), head.at(headNullsV2) == 0 && head.at(headEncodingV2) == plain
		ok = ok && min(defs, reps) >= 0 && lead <= min(whole, packed)
		p.Bare, p.At, whole, packed = true, p.At+int64(lead), whole-lead, packed-lead
	}
	packedPage := h.packed && head.at(headIsPackedV2) != 0 // default
	if p.Size = whole; packedPage {
		p.Packed = packed
	}
	ok = ok && whole > 0 && packed > 0 && (packedPage || whole == packed)
	h.at = p.At + int64(packed)
	return p, ok && h.at <= end
}

// read reads a header, and returns its size in bytes; nil where it cannot be read.
func (h *headReader) read(end int64) (*pageHead, int64) {
	for want := int64(1 << 10); ; want *= 8 {
		n := min(want, end-h.at)
		if n <= 0 {
			return nil, 0
		}
		h.room = append(h.room[:0], make([]byte, n)...)
		if _, err := h.file.ReadAt(h.room, h.at); err != nil {
			return nil, 0
		}
		in := thrift.NewTMemoryBufferLen(0)
		in.Buffer.Write(h.room)
		head := &pageHead{in: thrift.NewTCompactProtocolConf(in, nil), fields: map[headField]int{}}
		err := head.read(0)
		if err == nil {
			return head, n - int64(in.Buffer.Len())
		}
		if n < want || want >= headMost {
			return nil, 0
		}
	}
}

// pageHead has the numbers of a head. A boolean is 1, or 0 where it is false.
type pageHead struct {
	in     *thrift.TCompactProtocol
	fields map[headField]int
}

// headField is a field of PageHeader in parquet.thrift, or of the structure that one of its
// fields is.
type headField struct{ of, id int }

const (
	headV1 = 5 // data_page_header
	headV2 = 8 // data_page_header_v2
)

var (
	headKind       = headField{0, 1}
	headUnpacked   = headField{0, 2}
	headPacked     = headField{0, 3}
	headValues     = headField{headV1, 1}
	headEncoding   = headField{headV1, 2}
	headLevels     = headField{headV1, 3}
	headValuesV2   = headField{headV2, 1}
	headNullsV2    = headField{headV2, 2}
	headEncodingV2 = headField{headV2, 4}
	headDefsV2     = headField{headV2, 5}
	headRepsV2     = headField{headV2, 6}
	headIsPackedV2 = headField{headV2, 7}
)

// Kinds of pages.
const (
	dataPage   = 0
	dataPageV2 = 3
)

// at returns a number; −1 where it is not there.
func (h *pageHead) at(f headField) int {
	if v, ok := h.fields[f]; ok {
		return v
	}
	return -1
}

// read reads a structure, that of a field or the whole.
func (h *pageHead) read(of int) error {
	ctx := context.Background()
	if _, err := h.in.ReadStructBegin(ctx); err != nil {
		return err
	}
	for {
		_, kind, id, err := h.in.ReadFieldBegin(ctx)
		if err != nil || kind == thrift.STOP {
			return cmp.Or(err, h.in.ReadStructEnd(ctx))
		}
		if err := h.field(ctx, of, int(id), kind); err != nil {
			return err
		}
	}
}

// field reads one field.
func (h *pageHead) field(ctx context.Context, of, id int, kind thrift.TType) error {
	switch {
	case kind == thrift.I32:
		v, err := h.in.ReadI32(ctx)
		h.fields[headField{of, id}] = int(v)
		return err
	case kind == thrift.BOOL:
		v, err := h.in.ReadBool(ctx)
		h.fields[headField{of, id}] = 0
		if v {
			h.fields[headField{of, id}] = 1
		}
		return err
	case kind == thrift.STRUCT && of == 0 && (id == headV1 || id == headV2):
		return h.read(id)
	}
	return h.in.Skip(ctx, kind)
}
