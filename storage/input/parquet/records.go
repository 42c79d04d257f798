package parquet

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
)

// allGroups returns the row groups of a file.
func allGroups(f *file.Reader) (out []int) {
	for i := range f.NumRowGroups() {
		out = append(out, i)
	}
	return out
}

// groupRows returns how many rows each row group has.
func groupRows(md *metadata.FileMetaData) (out []int64) {
	for _, g := range md.RowGroups {
		out = append(out, g.GetNumRows())
	}
	return out
}

// rowsBefore returns how many rows a file has before the first of some row groups.
func rowsBefore(md *metadata.FileMetaData, groups []int) (n int64) {
	if len(groups) == 0 || groups[0] > len(md.RowGroups) {
		return 0
	}
	for _, g := range md.RowGroups[:groups[0]] {
		n += g.GetNumRows()
	}
	return n
}

// recordReader reads some columns of a file as Arrow records.
type recordReader struct {
	path    string
	fr      *pqarrow.FileReader
	columns []int // leaves
}

// Below stands between the name of a column and that of a field of its structs.
const Below = "\x00"

// leavesOf returns the leaves of the columns that have some names, by whichever case; of all
// where there are none. Of a column of structs they are those of the fields named; of one
// that does not have such a field all are.
func leavesOf(md *metadata.FileMetaData, names []string) (out []int) {
	wanted := make([]bool, md.Schema.NumColumns())
	for _, name := range names {
		root, _, _ := strings.Cut(name, Below)
		if !markLeaves(md, strings.Split(name, Below), wanted) {
			markLeaves(md, []string{root}, wanted)
		}
	}
	for i, w := range wanted {
		if w || len(names) == 0 {
			out = append(out, i)
		}
	}
	return out
}

// markLeaves marks the leaves whose path begins with some names, and reports whether there is any.
func markLeaves(md *metadata.FileMetaData, names []string, wanted []bool) (found bool) {
	for i := range wanted {
		path := md.Schema.Column(i).ColumnPath()
		if len(path) >= len(names) && slices.EqualFunc(path[:len(names)], names, strings.EqualFold) {
			wanted[i], found = true, true
		}
	}
	return found
}

// read yields all rows of some row groups.
func (r *recordReader) read(groups []int, yield func(arrow.Record) error) error {
	if err := r.foreign(groups); err != nil {
		return err
	}
	whole := r.wholePages(groups)
	if whole == 0 {
		return r.some(groups, yield)
	}
	r.fr.Props.BatchSize = whole
	for i := range groups {
		if err := r.some(groups[i:i+1], yield); err != nil {
			return err
		}
	}
	return nil
}

// wholePages returns how many rows must be read at a time for no page to be read in two goes,
// which the library cannot do with numbers of eight bytes that may be null and are encoded as
// differences; 0 where there are none.
func (r *recordReader) wholePages(groups []int) (most int64) {
	md, delta := r.fr.ParquetReader().MetaData(), false
	for _, g := range groups {
		for _, i := range r.columns {
			c, err := md.RowGroup(g).ColumnChunk(i)
			if err != nil {
				return 0 // reading reports the error
			}
			most = max(most, c.NumValues())
			delta = delta || c.Type() == parquet.Types.Int64 &&
				slices.Contains(c.Encodings(), parquet.Encodings.DeltaBinaryPacked)
		}
	}
	if !delta {
		return 0
	}
	return most
}

// some yields all rows of some row groups. The library takes an unreadable page for the end
// of the column and of the file, so the rows are counted.
func (r *recordReader) some(groups []int, yield func(arrow.Record) error) error {
	rr, err := r.fr.GetRecordReader(context.Background(), r.columns, groups)
	if err != nil {
		return err
	}
	defer rr.Release()
	var rows int64
	for rr.Next() {
		rows += rr.Record().NumRows()
		if err := yield(rr.Record()); err != nil {
			return err
		}
	}
	if err := rr.Err(); err != nil && err != io.EOF {
		return err
	}
	for _, g := range groups {
		rows -= r.fr.ParquetReader().MetaData().RowGroups[g].GetNumRows()
	}
	if rows != 0 {
		return errFewValues
	}
	return nil
}

// byteStreamSplit is an encoding that the library has no name for.
const byteStreamSplit = parquet.Encoding(9)

// foreign returns why a column of a row group is none that can be read, and what would be.
func foreign(path string, md *metadata.FileMetaData, group, column int) error {
	c, err := md.RowGroup(group).ColumnChunk(column)
	if err != nil {
		return fault.New(fault.BadInput, "read", path, err)
	}
	if _, err := compress.GetCodec(c.Compression()); err != nil {
		return fault.Newf(fault.BadInput, "read", path, "column %q is compressed by %v, which is not read",
			c.PathInSchema(), c.Compression()).
			WithHint("write the file with Zstandard, Snappy or gzip")
	}
	if slices.Contains(c.Encodings(), byteStreamSplit) {
		return fault.Newf(fault.BadInput, "read", path, "column %q is encoded BYTE_STREAM_SPLIT, which is not read",
			c.PathInSchema()).
			WithHint("write the column PLAIN or with a dictionary")
	}
	return nil
}

// foreign returns the first error of foreign among the columns.
func (r *recordReader) foreign(groups []int) error {
	for _, g := range groups {
		for _, c := range r.columns {
			if err := foreign(r.path, r.fr.ParquetReader().MetaData(), g, c); err != nil {
				return err
			}
		}
	}
	return nil
}
