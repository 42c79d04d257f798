package rdd

import (
	"io"

	"github.com/volley-engine/volley/rdd/internal/row"
)

// SaveCSV does what SaveText does, with every row as a record of its columns, by the tag col,
// and their names as the first line of each part. A null is a field of nothing, an
// empty text "". A null text that is all of a record is refused: an empty line is none.
func SaveCSV[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	c := columnsFor[T](ds.g, "save csv")
	for _, name := range c.NotText() {
		ds.g.fail("save csv: column %q cannot be a field of text", name)
	}
	return saveParts(ds, format[T]{kind: "save-csv", codecs: lineCodecs, columns: c,
		open: func(w io.Writer, c *row.Columns[T], codec string) (sink[T], error) {
			to, err := compressor(w, codec)
			if err != nil {
				return nil, err
			}
			return row.NewCSVWriter(c, to)
		}}, dir, options)
}

// SaveParquet does what SaveText does, with parts that are Parquet files: a column for each
// field of T, by the tag col, compressed with zstd unless Compressed says otherwise.
func SaveParquet[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	return saveParts(ds, format[T]{kind: "save-parquet", codecs: []string{"zstd", "gzip", "snappy", "none"},
		columns: columnsFor[T](ds.g, "save parquet"),
		open: func(w io.Writer, c *row.Columns[T], codec string) (sink[T], error) {
			return row.NewParquetWriter(c, w, codec)
		}}, dir, options)
}

// SaveArrow does what SaveParquet does, with files in the Arrow IPC file format.
func SaveArrow[T any](ds Dataset[T], dir string, options ...SaveOption) Action[int64] {
	return saveParts(ds, format[T]{kind: "save-arrow", codecs: []string{"zstd", "lz4", "none"},
		columns: columnsFor[T](ds.g, "save arrow"),
		open: func(w io.Writer, c *row.Columns[T], codec string) (sink[T], error) {
			return row.NewArrowWriter(c, w, codec)
		}}, dir, options)
}
