package parquet

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"

	"github.com/volley-engine/volley/storage/input/files"
)

// TestBadValuesAreFoundByTheirRow: of a null, or a number that is not finite, the file, the
// column and the row are said, counted from the file's first, whichever way and in however many
// row groups and parts it is read.
func TestBadValuesAreFoundByTheirRow(t *testing.T) {
	const rows, group, bad = 40_000, 3_000, 31_234
	for name, write := range map[string]func(b array.Builder, i int){
		"plain": func(b array.Builder, i int) { appendNumber(b, i, bad) },
		"list": func(b array.Builder, i int) {
			l := b.(*array.ListBuilder)
			l.Append(true)
			appendNumber(l.ValueBuilder(), 0, -1)
			appendNumber(l.ValueBuilder(), i, bad)
		},
	} {
		for _, dictionary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dictionary %v", name, dictionary), func(t *testing.T) {
				var typ arrow.DataType = arrow.PrimitiveTypes.Float64
				if name != "plain" {
					typ = arrow.ListOf(typ)
				}
				fields := []arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Float64},
					{Name: "x", Type: typ, Nullable: true}}
				b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
				for i := range rows {
					b.Field(0).(*array.Float64Builder).Append(float64(i))
					write(b.Field(1), i)
				}
				path := filepath.Join(t.TempDir(), "bad.parquet")
				writeParquetGroups(t, path, b.NewRecord(), group,
					[]parquet.WriterProperty{parquet.WithDictionaryDefault(dictionary)})
				_, _, err := readAll(path)
				if want := fmt.Sprintf("row %d", bad); err == nil || !strings.Contains(err.Error(), path) ||
					!strings.Contains(err.Error(), `"x"`) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%v, want %s, column x, %s", err, path, want)
				}
			})
		}
	}
}

// appendNumber appends a number, and a null in one row.
func appendNumber(b array.Builder, i, null int) {
	if i == null {
		b.AppendNull()
		return
	}
	b.(*array.Float64Builder).Append(float64(i))
}

// TestPartsKnowTheNumberOfTheirFirstRow: it is that of all rows of the row groups before.
func TestPartsKnowTheNumberOfTheirFirstRow(t *testing.T) {
	d := &columnsInFile{Groups: []int64{5, 5, 12, 1, 3}, GroupRows: []int64{10, 20, 30, 40, 50}}
	want := []files.Range{{Length: 2}, {Offset: 2, Length: 1, Row: 30}, {Offset: 3, Length: 2, Row: 60}}
	if got := groupParts(files.File{}, d, 10); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
