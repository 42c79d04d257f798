package main

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/fault"
)

// writeParquet writes columns of whole or other numbers as a file of Parquet.
func writeParquet(w io.Writer, names []string, columns []any) error {
	var fields []arrow.Field
	var arrays []arrow.Array
	for i, column := range columns {
		var b array.Builder
		switch v := column.(type) {
		case []int64:
			to := array.NewInt64Builder(memory.DefaultAllocator)
			to.AppendValues(v, nil)
			b = to
		case []float64:
			to := array.NewFloat64Builder(memory.DefaultAllocator)
			to.AppendValues(v, nil)
			b = to
		}
		a := b.NewArray()
		fields, arrays = append(fields, arrow.Field{Name: names[i], Type: a.DataType()}), append(arrays, a)
	}
	schema := arrow.NewSchema(fields, nil)
	rec := array.NewRecord(schema, arrays, int64(arrays[0].Len()))
	defer rec.Release()
	// numbers of nodes, and most ranks, are there once: a dictionary would be made in vain
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithDictionaryDefault(false))
	only := struct{ io.Writer }{w} // it is the caller's to close
	to, err := pqarrow.NewFileWriter(schema, only, props, pqarrow.DefaultWriterProps())
	if err == nil {
		err = to.Write(rec)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		return fault.New(fault.NoResources, "write", "a table", err)
	}
	return nil
}
