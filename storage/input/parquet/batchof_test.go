package parquet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// TestASmallRowGroupDoesNotCutTheOthersSmall: how many rows are decoded at a time follows from how
// long they are, not from how many the last row group happens to have.
func TestASmallRowGroupDoesNotCutTheOthersSmall(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator,
		arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	for i := range int64(20_001) {
		b.Field(0).(*array.Int64Builder).Append(i)
	}
	rec := b.NewRecord()
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "numbers.parquet")
	writeParquetGroups(t, path, rec, 10_000, nil)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.MetaData().RowGroups[2].NumRows; n != 1 {
		t.Fatalf("the last row group has %d rows", n)
	}
	for _, groups := range [][]int{nil, {2}} {
		if got := batchOf(r.MetaData(), groups); got != decodeBatch {
			t.Errorf("of row groups %v %d rows are decoded at a time", groups, got)
		}
	}
}
