package parquet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// lists writes a label and a list of numbers a row; a list of −1 is a null, and what
// of says is how long each is.
func lists(t *testing.T, rows, group int, of func(i int) int, properties ...parquet.WriterProperty) string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "features", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true}}, nil)
	path := filepath.Join(t.TempDir(), "lists.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < rows; from += group {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		list := b.Field(1).(*array.ListBuilder)
		for i := from; i < min(from+group, rows); i++ {
			b.Field(0).(*array.Int64Builder).Append(int64(i % 2))
			n := of(i)
			list.Append(n >= 0)
			for j := range max(0, n) {
				list.ValueBuilder().(*array.Float64Builder).Append(float64(i*10 + j))
			}
		}
		rec := b.NewRecord()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// listFormats are ways to write lists: those that are decoded, and those whose pages
// are read as they are, of both versions, in pages that end within lists.
var listFormats = map[string][]parquet.WriterProperty{
	"dictionary": nil,
	"plain":      {parquet.WithDictionaryDefault(false)},
	"pages":      {parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(1000), parquet.WithBatchSize(77)},
	"pages, 2": {parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(1000), parquet.WithBatchSize(77),
		parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Snappy)},
}

func TestEvenListsAreRead(t *testing.T) {
	for format, properties := range listFormats {
		for _, width := range []int{1, 3, 9, 700} { // each file takes a child process, to describe it
			for _, rows := range []int{1, 2, 9500} {
				if width*rows > 2_000_000 {
					continue
				}
				want := 0.0
				for i := range rows {
					for j := range width {
						want += float64(i*10 + j)
					}
				}
				path := lists(t, rows, 9000, func(int) int { return width }, properties...)
				if n, sum, err := readAll(path); err != nil || n != rows || sum != want {
					t.Errorf("%s, %d lists of %d: %d rows, sum %v, want %v, %v", format, rows, width, n, sum, want, err)
				}
				if plain := format == "plain" && rows > 1; plain != byPages(t, path) &&
					!strings.HasPrefix(format, "pages") {
					t.Errorf("%s, %d lists of %d: read by pages is %v", format, rows, width, !plain)
				}
			}
		}
	}
}

func byPages(t *testing.T, path string) bool {
	t.Helper()
	f, err := openFlat(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	pages, err := f.listPages(0, f.list("features"))
	if err != nil {
		t.Fatal(err)
	}
	return pages != nil
}

// TestUnevenListsAreRefused, by row.
func TestUnevenListsAreRefused(t *testing.T) {
	for format, properties := range listFormats {
		if format == "plain" {
			continue // of one page: those of several are the harder ones
		}
		for _, at := range []int{1, 4800} {
			for what, n := range map[string]int{"longer": 3, "much longer": 30_000, "shorter": 1,
				"empty": 0, "null": -1} {
				path := lists(t, 5000, 5000, func(i int) int {
					if i == at {
						return n
					}
					return 2
				}, properties...)
				_, _, err := readAll(path)
				if err == nil || !strings.Contains(err.Error(), "features") || !strings.Contains(err.Error(), path) {
					t.Errorf("%s, %s in row %d: %v", format, what, at, err)
				} else if row := fmt.Sprint("row ", at); (at > 1 || format != "dictionary") &&
					!strings.HasSuffix(err.Error(), row) {
					t.Errorf("%s, %s in row %d: %v", format, what, at, err)
				}
			}
		}
	}
}

// TestTimesAreNoNumbers, as in the formats that a child reads.
func TestTimesAreNoNumbers(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
		arrow.FixedWidthTypes.Time64us} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int64},
			{Name: "when", Type: typ}}, nil)
		path := filepath.Join(t.TempDir(), "times.parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.Int64Builder).Append(1)
		switch c := b.Field(1).(type) {
		case *array.Date32Builder:
			c.Append(5)
		case *array.TimestampBuilder:
			c.Append(5)
		case *array.Time64Builder:
			c.Append(5)
		}
		rec := b.NewRecord()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		b.Release()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readAll(path); err == nil || !strings.Contains(err.Error(), "when") {
			t.Errorf("%v: %v", typ, err)
		}
	}
}
