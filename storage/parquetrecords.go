package storage

import (
	"context"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// allGroups are the row groups of a file.
func allGroups(f *file.Reader) (out []int) {
	for i := range f.NumRowGroups() {
		out = append(out, i)
	}
	return out
}

// parquetRecords hands on all rows of some row groups. The library takes a page that it cannot
// read for the end of its column, and that for the end of all, so that the rows are counted.
func parquetRecords(fr *pqarrow.FileReader, groups []int, yield func(arrow.Record) error) error {
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
