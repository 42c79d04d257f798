package storage

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
)

// allGroups are the row groups of a file.
func allGroups(f *file.Reader) (out []int) {
	for i := range f.NumRowGroups() {
		out = append(out, i)
	}
	return out
}

// parquetRecords hands on all rows of some row groups.
func parquetRecords(fr *pqarrow.FileReader, groups []int, yield func(arrow.Record) error) error {
	whole := wholePages(fr.ParquetReader().MetaData(), groups)
	if whole == 0 {
		return someRecords(fr, groups, yield)
	}
	fr.Props.BatchSize = whole
	for i := range groups {
		if err := someRecords(fr, groups[i:i+1], yield); err != nil {
			return err
		}
	}
	return nil
}

// wholePages is how many rows must be read at a time for no page to be read in two goes, which
// the library cannot do with numbers of eight bytes that may be null and are encoded as
// differences; 0 where there are none.
func wholePages(md *metadata.FileMetaData, groups []int) (most int64) {
	delta := false
	for _, g := range groups {
		for i := range md.Schema.NumColumns() {
			c, err := md.RowGroup(g).ColumnChunk(i)
			if err != nil {
				return 0 // who reads it says so
			}
			most = max(most, c.NumValues())
			delta = delta || c.Type() == parquet.Types.Int64 && slices.Contains(c.Encodings(), parquet.Encodings.DeltaBinaryPacked)
		}
	}
	if !delta {
		return 0
	}
	return most
}

// someRecords hands on all rows of some row groups. The library takes a page that it cannot
// read for the end of its column, and that for the end of all, so that the rows are counted.
func someRecords(fr *pqarrow.FileReader, groups []int, yield func(arrow.Record) error) error {
	rr, err := fr.GetRecordReader(context.Background(), nil, groups)
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
		rows -= fr.ParquetReader().MetaData().RowGroups[g].GetNumRows()
	}
	if rows != 0 {
		return errFewValues
	}
	return nil
}

// byteStreamSplit is an encoding that the library has no name for.
const byteStreamSplit = parquet.Encoding(9)

// foreign says why a column of a row group is none that can be read, and what would be.
func foreign(path string, md *metadata.FileMetaData, group, column int) error {
	c, err := md.RowGroup(group).ColumnChunk(column)
	if err != nil {
		return fault.New(fault.BadInput, "read", path, err)
	}
	if _, err := compress.GetCodec(c.Compression()); err != nil {
		return fault.Newf(fault.BadInput, "read", path, "column %q is compressed by %v, which is not read", c.PathInSchema(), c.Compression()).
			WithHint("write the file with Zstandard, Snappy or gzip")
	}
	if slices.Contains(c.Encodings(), byteStreamSplit) {
		return fault.Newf(fault.BadInput, "read", path, "column %q is encoded BYTE_STREAM_SPLIT, which is not read", c.PathInSchema()).
			WithHint("write the column PLAIN or with a dictionary")
	}
	return nil
}

// foreignAny is the first of what foreign says of the columns of some row groups.
func foreignAny(path string, md *metadata.FileMetaData, groups []int) error {
	for _, g := range groups {
		for c := range md.Schema.NumColumns() {
			if err := foreign(path, md, g, c); err != nil {
				return err
			}
		}
	}
	return nil
}
