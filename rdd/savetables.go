package rdd

import (
	"bufio"
	"bytes"
	"io"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
)

// SaveCSV is SaveText with every row as a record of its columns, by the tag col,
// and their names as the first line of each part. A null is a field of nothing, an
// empty text "". A null text that is all of a record is refused: an empty line is none.
func SaveCSV[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	c := columnsFor[T](ds.g, "save csv")
	for _, f := range c.fields {
		if f.print == nil {
			ds.g.fail("save csv: column %q cannot be a field of text", f.name)
		}
	}
	return saveParts(ds, "save-csv", dir, options, func(w io.Writer) (sink[T], error) {
		s := &csvSink[T]{c: c, w: bufio.NewWriterSize(w, 64<<10)}
		for k, name := range c.names() {
			s.field(k, []byte(name), false)
		}
		return s, s.w.WriteByte('\n')
	})
}

// csvSink writes records as [RFC 4180] has them, but for \n at their ends.
//
// [RFC 4180]: https://www.rfc-editor.org/rfc/rfc4180
type csvSink[T any] struct {
	c    *columns[T]
	w    *bufio.Writer
	text []byte
}

func (s *csvSink[T]) add(rows []T) error {
	for i := range rows {
		for k, f := range s.c.fields {
			p := unsafe.Add(unsafe.Pointer(&rows[i]), f.offset)
			s.text = f.print(s.text[:0], p)
			if len(s.c.fields) == 1 && f.null && f.at(p) == nil && isText(f.arrow) {
				return fault.Newf(fault.BadInput, "write", "a table",
					"column %q is null and alone: the record would be an empty line", f.name).
					WithHint("give the rows another column, or leave such rows out")
			}
			// A record that is a single empty field is not an empty line, which
			// would be no record.
			s.field(k, s.text, len(s.text) == 0 && (len(s.c.fields) == 1 || f.null && f.at(p) != nil))
		}
		if err := s.w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// field writes the k-th field of a record: in quotes where it must be. Errors stay
// with the writer.
func (s *csvSink[T]) field(k int, text []byte, quoted bool) {
	if k > 0 {
		s.w.WriteByte(',')
	}
	if n := len(text); !quoted && (n == 0 || !bytes.ContainsAny(text, "\",\r\n") && !blank(text[0]) &&
		!blank(text[n-1])) {
		s.w.Write(text)
		return
	}
	s.w.WriteByte('"')
	for _, c := range text {
		if c == '"' {
			s.w.WriteByte(c)
		}
		s.w.WriteByte(c)
	}
	s.w.WriteByte('"')
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func (s *csvSink[T]) close() error { return s.w.Flush() }

// recordRows is how many rows make a record of a saved table, groupRows how many a
// row group of Parquet; of rows that are long fewer do, that take about recordBytes and
// groupBytes, for both are in memory as a whole.
const (
	recordRows  = 16 << 10
	recordBytes = 2 << 20
	groupRows   = 512 << 10
	groupBytes  = 8 << 20
)

// recordSink gathers rows to Arrow records.
type recordSink[T any] struct {
	c     *columns[T]
	b     *array.RecordBuilder
	n     int                          // rows of the record in hand
	bytes int                          // that it takes, about
	each  int                          // bytes of a row, as they were last
	fits  func(p unsafe.Pointer) error // nil where all rows can be written
	write func(bytes int) error        // writes what has been gathered
	end   func() error
}

func newRecordSink[T any](c *columns[T]) *recordSink[T] {
	return &recordSink[T]{c: c, fits: allFit(c.fields), b: array.NewRecordBuilder(memory.DefaultAllocator, c.schema)}
}

func (s *recordSink[T]) add(rows []T) error {
	if s.fits != nil {
		for i := range rows {
			if err := s.fits(unsafe.Pointer(&rows[i])); err != nil {
				return fault.New(fault.BadInput, "write", "a table", err)
			}
		}
	}
	for len(rows) > 0 {
		n := min(len(rows), s.room())
		s.gather(rows[:n])
		rows = rows[n:]
		if s.n < recordRows && s.bytes < recordBytes {
			continue
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// firstRows is how many rows are gathered before it is known how long they are.
const firstRows = 16

// room is how many rows the record in hand takes, if they are as long as those before them.
func (s *recordSink[T]) room() int {
	if s.each == 0 {
		return firstRows
	}
	return max(1, (recordBytes-s.bytes)/s.each)
}

// gather takes rows into the record in hand.
func (s *recordSink[T]) gather(rows []T) {
	before := s.bytes
	s.bytes = 0
	for k, f := range s.c.fields {
		b := s.b.Field(k)
		for i := range rows {
			f.write(b, unsafe.Add(unsafe.Pointer(&rows[i]), f.offset))
		}
		s.bytes += builtBytes(b)
	}
	s.n += len(rows)
	s.each = max(1, (s.bytes-before)/len(rows))
}

// builtBytes is about how many bytes a builder has gathered.
func builtBytes(b array.Builder) (n int) {
	switch b := b.(type) {
	case *array.StringBuilder:
		n = b.DataLen()
	case *array.BinaryBuilder:
		n = b.DataLen()
	case *array.ListBuilder:
		n = builtBytes(b.ValueBuilder())
	case *array.StructBuilder:
		for i := range b.NumField() {
			n += builtBytes(b.FieldBuilder(i))
		}
	}
	return n + 8*b.Len()
}

func (s *recordSink[T]) flush() error {
	if s.n == 0 {
		return nil
	}
	bytes := s.bytes
	s.n, s.bytes = 0, 0
	return s.write(bytes)
}

func (s *recordSink[T]) close() error {
	defer s.b.Release()
	return firstError(s.flush(), s.end())
}

// SaveParquet is SaveText with parts that are Parquet files: a column for each
// field of T, by the tag col, compressed with zstd.
func SaveParquet[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	c := columnsFor[T](ds.g, "save parquet")
	return saveParts(ds, "save-parquet", dir, options, func(w io.Writer) (sink[T], error) {
		props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd),
			parquet.WithDictionaryDefault(true), parquet.WithMaxRowGroupLength(groupRows))
		out, err := pqarrow.NewFileWriter(c.schema, keepOpen{w}, props, pqarrow.DefaultWriterProps())
		if err != nil {
			return nil, fault.New(fault.Internal, "write", "Parquet", err)
		}
		s, group := newRecordSink(c), 0
		s.write = func(bytes int) error {
			rec := s.b.NewRecord()
			defer rec.Release()
			if group > 0 && group+bytes > groupBytes {
				out.NewBufferedRowGroup()
				group = 0
			}
			group += bytes
			return out.WriteBuffered(rec)
		}
		s.end = out.Close
		return s, nil
	})
}

// keepOpen keeps a Parquet writer from closing the file, which is not done yet.
type keepOpen struct{ io.Writer }

// SaveArrow is SaveParquet with files in the Arrow IPC file format.
func SaveArrow[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	c := columnsFor[T](ds.g, "save arrow")
	return saveParts(ds, "save-arrow", dir, options, func(w io.Writer) (sink[T], error) {
		out, err := ipc.NewFileWriter(&writeSeeker{Writer: w}, ipc.WithSchema(c.schema), ipc.WithZstd())
		if err != nil {
			return nil, fault.New(fault.Internal, "write", "Arrow", err)
		}
		s := newRecordSink(c)
		s.write = func(int) error {
			rec := s.b.NewRecord()
			defer rec.Release()
			return out.Write(rec)
		}
		s.end = out.Close
		return s, nil
	})
}

// writeSeeker is a writer for those who want to know where they are.
type writeSeeker struct {
	io.Writer
	at int64
}

// Write counts what it writes.
func (w *writeSeeker) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.at += int64(n)
	return n, err
}

// Seek says where the writer is, and moves nowhere.
func (w *writeSeeker) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fault.Newf(fault.Internal, "write", "Arrow", "a part is written from its beginning to its end")
	}
	return w.at, nil
}
