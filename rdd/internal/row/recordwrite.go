package row

import (
	"cmp"
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

// recordRows is how many rows make a record of a saved table, groupRows how many a
// row group of Parquet; of rows that are long fewer do, that take about recordBytes and
// groupBytes, for both are in memory as a whole.
const (
	recordRows  = 16 << 10
	recordBytes = 2 << 20
	groupRows   = 512 << 10
	groupBytes  = 8 << 20
)

// RecordWriter gathers rows into Arrow records, and writes each when it is full.
type RecordWriter[T any] struct {
	c     *Columns[T]
	b     *array.RecordBuilder
	n     int                          // rows of the record in hand
	bytes int                          // that it takes, about
	each  int                          // bytes of a row, as they were last
	fits  func(p unsafe.Pointer) error // nil where all rows can be written
	write func(bytes int) error        // writes what has been gathered
	end   func() error
}

// newRecordWriter returns a writer whose write and end are to be set.
func newRecordWriter[T any](c *Columns[T]) *RecordWriter[T] {
	return &RecordWriter[T]{c: c, fits: allFit(c.fields), b: array.NewRecordBuilder(memory.DefaultAllocator, c.schema)}
}

// Add writes rows.
func (s *RecordWriter[T]) Add(rows []T) error {
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

// room returns how many rows the record in hand takes, if they are as long as those before them.
func (s *RecordWriter[T]) room() int {
	if s.each == 0 {
		return firstRows
	}
	return max(1, (recordBytes-s.bytes)/s.each)
}

// gather takes rows into the record in hand.
func (s *RecordWriter[T]) gather(rows []T) {
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

// builtBytes estimates how many bytes a builder has gathered.
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

func (s *RecordWriter[T]) flush() error {
	if s.n == 0 {
		return nil
	}
	bytes := s.bytes
	s.n, s.bytes = 0, 0
	return s.write(bytes)
}

// Close writes what is buffered and the end of the file; w stays open.
func (s *RecordWriter[T]) Close() error {
	defer s.b.Release()
	return cmp.Or(s.flush(), s.end())
}

// parquetCodecs are the compressions of Parquet that are written.
var parquetCodecs = map[string]compress.Compression{"zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip,
	"snappy": compress.Codecs.Snappy, "none": compress.Codecs.Uncompressed}

// NewParquetWriter returns a writer of rows to a Parquet file, compressed with zstd, gzip, snappy or none.
func NewParquetWriter[T any](c *Columns[T], w io.Writer, codec string) (*RecordWriter[T], error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(parquetCodecs[codec]),
		parquet.WithDictionaryDefault(true), parquet.WithMaxRowGroupLength(groupRows))
	out, err := pqarrow.NewFileWriter(c.schema, keepOpen{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fault.New(fault.Internal, "write", "Parquet", err)
	}
	s, group := newRecordWriter(c), 0
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
}

// NewArrowWriter returns a writer of rows to a file in the Arrow IPC file format, compressed with zstd, lz4 or none.
func NewArrowWriter[T any](c *Columns[T], w io.Writer, codec string) (*RecordWriter[T], error) {
	options := []ipc.Option{ipc.WithSchema(c.schema)}
	switch codec {
	case "zstd":
		options = append(options, ipc.WithZstd())
	case "lz4":
		options = append(options, ipc.WithLZ4())
	}
	out, err := ipc.NewFileWriter(&writeSeeker{Writer: w}, options...)
	if err != nil {
		return nil, fault.New(fault.Internal, "write", "Arrow", err)
	}
	s := newRecordWriter(c)
	s.write = func(int) error {
		rec := s.b.NewRecord()
		defer rec.Release()
		return out.Write(rec)
	}
	s.end = out.Close
	return s, nil
}

// keepOpen keeps a Parquet writer from closing the file, which is not done yet.
type keepOpen struct{ io.Writer }

// writeSeeker counts the bytes written, for a writer that asks for its position.
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

// Seek returns where the writer is, and moves nowhere.
func (w *writeSeeker) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fault.Newf(fault.Internal, "write", "Arrow", "a part is written from its beginning to its end")
	}
	return w.at, nil
}
