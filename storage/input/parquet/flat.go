package parquet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
)

// FlatColumn is a run of values of a Parquet column that is neither a list nor
// part of one, as the file has them. Exactly one of the slices has values: the
// present ones, close together; Defs say which those are, 0 being a null, and
// are nil where the column has none.
type FlatColumn struct {
	Name    string
	Unit    TimeUnit
	Bools   []bool
	Int32s  []int32
	Int64s  []int64
	Floats  []float32
	Doubles []float64
	Bytes   []parquet.ByteArray
	Defs    []int16

	room struct {
		bools   []bool
		int32s  []int32
		int64s  []int64
		floats  []float32
		doubles []float64
		bytes   []parquet.ByteArray
		defs    []int16
		lens    []int32 // of bytes, as they are sent
		text    []byte
	}
}

// TimeUnit is what a column of whole numbers counts, if it is a time.
type TimeUnit int

// The units of times: days, or parts of seconds, since 1970.
const (
	NoTime TimeUnit = iota
	Days
	Millis
	Micros
	Nanos
)

// flatRows is how many rows of a column are read at a time.
const flatRows = 4096

// pageBuffer is how many bytes of a column are read from the file at a time.
const pageBuffer = 256 << 10

// flatFile is a Parquet file whose columns are read by the low-level readers,
// on the caller's goroutine.
type flatFile struct {
	path string
	file files.Handle
	r    *file.Reader
	held []*pageMemory // of the columns that are being read
}

// openFlat reads a file's footer.
func openFlat(path string) (_ *flatFile, err error) {
	defer malformed(path, &err)
	f, err := files.OpenPath(path)
	if err != nil {
		return nil, err
	}
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, pageBuffer // not the whole column, twice
	r, err := file.NewParquetReader(f, file.WithReadProps(props))
	if err != nil {
		f.Close()
		return nil, fault.New(fault.BadInput, "read", path, err)
	}
	return &flatFile{path: path, file: f, r: r}, nil
}

func (f *flatFile) close() {
	f.letGo()
	f.r.Close()
}

// letGo releases the memory of pages for reuse.
func (f *flatFile) letGo() {
	for _, m := range f.held {
		pageMemories.Put(m)
	}
	f.held = f.held[:0]
}

// malformed makes a panic of a decoder an error.
func malformed(path string, err *error) {
	if r := recover(); r != nil {
		*err = fault.Newf(fault.BadInput, "read", path, "the file is malformed: %v", r)
	}
}

// groups returns the bytes of each row group.
func (f *flatFile) groups() (out []int64) {
	for _, g := range f.r.MetaData().RowGroups {
		out = append(out, g.GetTotalByteSize())
	}
	return out
}

// flat reports whether each of some columns is there and can be read by FlatColumn.
func (f *flatFile) flat(names []string) bool {
	s := f.r.MetaData().Schema
	for _, name := range names {
		at := f.column(name)
		if at < 0 {
			return false
		}
		c := s.Column(at)
		if c.MaxRepetitionLevel() > 0 || c.MaxDefinitionLevel() > 1 || len(c.ColumnPath()) != 1 || !readable(c) {
			return false
		}
	}
	return true
}

// readable reports whether the values of a column are what their physical type says.
func readable(c *schema.Column) bool {
	switch c.PhysicalType() {
	case parquet.Types.Boolean, parquet.Types.Float, parquet.Types.Double, parquet.Types.ByteArray:
	case parquet.Types.Int32, parquet.Types.Int64:
		if l, ok := logicalOf[schema.IntLogicalType](c); ok && !l.IsSigned() {
			return false
		}
	default:
		return false
	}
	_, decimal := logicalOf[schema.DecimalLogicalType](c)
	_, timeOfDay := logicalOf[schema.TimeLogicalType](c)
	return !decimal && !timeOfDay
}

// logicalOf returns a column's logical type, if it is this one.
func logicalOf[L any](c *schema.Column) (l L, ok bool) {
	switch x := any(c.LogicalType()).(type) {
	case L:
		return x, true
	case *L:
		return *x, true
	}
	return l, false
}

// column returns the number of a column: by name, else by name without regard
// to case; -1 where there is none.
func (f *flatFile) column(name string) int {
	s := f.r.MetaData().Schema
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i := range s.NumColumns() {
			if same(s.Column(i).Name(), name) {
				return i
			}
		}
	}
	return -1
}

func unitOf(c *schema.Column) TimeUnit {
	if _, ok := logicalOf[schema.DateLogicalType](c); ok {
		return Days
	}
	if l, ok := logicalOf[schema.TimestampLogicalType](c); ok {
		switch l.TimeUnit() {
		case schema.TimeUnitMillis:
			return Millis
		case schema.TimeUnitMicros:
			return Micros
		case schema.TimeUnitNanos:
			return Nanos
		}
	}
	return NoTime
}

// read yields the rows of some row groups, column by column.
func (f *flatFile) read(groups []int, names []string, yield func(rows int, cols []*FlatColumn) error) error {
	cols := make([]*FlatColumn, len(names))
	for i, name := range names {
		cols[i] = &FlatColumn{Name: name, Unit: unitOf(f.r.MetaData().Schema.Column(f.column(name)))}
	}
	for _, g := range groups {
		if err := f.readGroup(g, names, cols, yield); err != nil {
			return err
		}
	}
	return nil
}

func (f *flatFile) readGroup(g int, names []string, cols []*FlatColumn,
	yield func(rows int, cols []*FlatColumn) error) (err error) {
	readers, err := f.open(g, names)
	if err != nil {
		return err
	}
	return fillRows(f.path, f.r.MetaData().RowGroups[g].GetNumRows(), readers, cols, yield)
}

// fillRows yields n rows, of each column by its reader.
func fillRows(path string, left int64, readers []flatReader, cols []*FlatColumn,
	yield func(rows int, cols []*FlatColumn) error) error {
	for most := firstRows(readers); left > 0; {
		n := int(min(left, int64(most)))
		for i, c := range cols {
			if err := c.fill(path, readers[i], n); err != nil {
				return err
			}
		}
		if err := yield(n, cols); err != nil {
			return err
		}
		left -= int64(n)
		most = nextRows(n, cols)
	}
	return nil
}

// Of columns of bytes few rows are read at first, and then about as many as have
// flatBytes, for they may be of any length.
const (
	flatBytes = slotBytes / 4
	flatFirst = 64
)

func firstRows(readers []flatReader) int {
	if slices.ContainsFunc(readers, func(r flatReader) bool { return r.kind == parquet.Types.ByteArray }) {
		return flatFirst
	}
	return flatRows
}

// nextRows returns how many rows to read after n.
func nextRows(n int, cols []*FlatColumn) int {
	size := 0
	for _, c := range cols {
		for _, b := range c.Bytes {
			size += len(b)
		}
	}
	return max(1, min(flatRows, 4*n, int(int64(n)*flatBytes/int64(max(1, size)))))
}

// flatReader reads one column of a row group, by pages where these are plain.
type flatReader struct {
	pages  *pageColumn
	chunks file.ColumnChunkReader
	defs   bool // there may be nulls
	kind   parquet.Type
}

// open begins to read some columns of a row group.
func (f *flatFile) open(group int, names []string) (readers []flatReader, err error) {
	defer malformed(f.path, &err)
	if group < 0 || group >= f.r.NumRowGroups() {
		return nil, fault.Newf(fault.BadInput, "read", f.path, "it has no row group %d any more", group)
	}
	f.letGo()
	rg := f.r.RowGroup(group)
	for _, name := range names {
		at := f.column(name)
		if err := foreign(f.path, f.r.MetaData(), group, at); err != nil {
			return nil, err
		}
		descr := f.r.MetaData().Schema.Column(at)
		r := flatReader{kind: descr.PhysicalType(), defs: descr.MaxDefinitionLevel() > 0 && !f.withoutNulls(group, at)}
		r.pages, err = f.pageColumn(group, at)
		if err == nil && r.pages == nil {
			r.chunks, err = rg.Column(at)
		}
		if err != nil {
			return nil, fault.New(fault.BadInput, "read", f.path, err)
		}
		readers = append(readers, r)
	}
	return readers, nil
}

// withoutNulls reports whether a column has no null in a row group, by its
// statistics: which values are present need not be read then.
func (f *flatFile) withoutNulls(group, column int) bool {
	// The library's own reader of statistics takes a missing number for 0.
	c := f.r.MetaData().RowGroups[group].Columns[column]
	if c == nil || c.MetaData == nil || c.MetaData.Statistics == nil {
		return false
	}
	s := c.MetaData.Statistics
	return s.IsSetNullCount() && s.GetNullCount() == 0
}

// batchReader reads values of one type.
type batchReader[V any] interface {
	ReadBatch(batch int64, values []V, defs, reps []int16) (total int64, read int, err error)
}

// fill reads the next n rows of a column.
func (c *FlatColumn) fill(path string, r flatReader, n int) (err error) {
	defer malformed(path, &err)
	if r.pages != nil {
		err = c.fillPlain(r, n)
	} else {
		err = c.fillDecoded(r, n)
	}
	var own *fault.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return fault.New(fault.BadInput, "read", path, fmt.Errorf("column %q: %w", c.Name, err))
}

// fillPlain reads rows from pages.
func (c *FlatColumn) fillPlain(r flatReader, n int) (err error) {
	c.Defs = nil
	switch r.kind {
	case parquet.Types.Int32:
		c.Int32s, err = takePlain(r.pages, &c.room.int32s, n)
	case parquet.Types.Int64:
		c.Int64s, err = takePlain(r.pages, &c.room.int64s, n)
	case parquet.Types.Float:
		c.Floats, err = takePlain(r.pages, &c.room.floats, n)
	case parquet.Types.Double:
		c.Doubles, err = takePlain(r.pages, &c.room.doubles, n)
	case parquet.Types.ByteArray:
		c.Bytes, err = takeTexts(r.pages, &c.room.bytes, n)
	}
	return err
}

// fillDecoded reads rows of any encoding.
func (c *FlatColumn) fillDecoded(r flatReader, n int) (err error) {
	c.Defs = nil
	if r.defs {
		c.room.defs = slices.Grow(c.room.defs[:0], n)[:n]
		c.Defs = c.room.defs
	}
	switch r := r.chunks.(type) {
	case *file.BooleanColumnChunkReader:
		c.Bools, err = fillBatch(r, &c.room.bools, c.Defs, n)
	case *file.Int32ColumnChunkReader:
		c.Int32s, err = fillBatch(r, &c.room.int32s, c.Defs, n)
	case *file.Int64ColumnChunkReader:
		c.Int64s, err = fillBatch(r, &c.room.int64s, c.Defs, n)
	case *file.Float32ColumnChunkReader:
		c.Floats, err = fillBatch(r, &c.room.floats, c.Defs, n)
	case *file.Float64ColumnChunkReader:
		c.Doubles, err = fillBatch(r, &c.room.doubles, c.Defs, n)
	case *file.ByteArrayColumnChunkReader:
		c.Bytes, err = fillBatch(r, &c.room.bytes, c.Defs, n)
	default:
		err = fmt.Errorf("it cannot be read")
	}
	return err
}

func fillBatch[V any](r batchReader[V], room *[]V, defs []int16, n int) ([]V, error) {
	*room = slices.Grow((*room)[:0], n)[:n]
	values, have := *room, 0
	for rows := 0; rows < n; {
		var d []int16
		if defs != nil {
			d = defs[rows:]
		}
		total, read, err := r.ReadBatch(int64(n-rows), values[have:], d, nil)
		if err != nil {
			return nil, err
		}
		if total <= 0 {
			return nil, fmt.Errorf("it has fewer values than the row group has rows")
		}
		rows, have = rows+int(total), have+read
	}
	if defs == nil && have < n {
		return nil, errNulls
	}
	return values[:have], nil
}
