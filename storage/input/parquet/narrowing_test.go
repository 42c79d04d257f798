package parquet

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/storage/input/rows"
)

// wholeFiles write rows of a label and of whole numbers as Parquet and as Arrow.
func wholeFiles(t *testing.T, values ...int64) map[string]string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int64},
		{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for _, v := range values {
		b.Field(0).(*array.Int64Builder).Append(1)
		b.Field(1).(*array.Int64Builder).Append(v)
	}
	rec, dir := b.NewRecord(), t.TempDir()
	out := map[string]string{"parquet": filepath.Join(dir, "x.parquet"), "arrow": filepath.Join(dir, "x.arrow")}
	f, err := os.Create(out["parquet"])
	if err != nil {
		t.Fatal(err)
	}
	p, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil || p.Write(rec) != nil || p.Close() != nil {
		t.Fatal(err)
	}
	if f, err = os.Create(out["arrow"]); err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil || w.Write(rec) != nil || w.Close() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return out
}

// TestWholeFeaturesThatNoDoubleHasAreRefused by column and row, rather than rounded.
func TestWholeFeaturesThatNoDoubleHasAreRefused(t *testing.T) {
	for _, v := range []int64{1<<53 + 1, -1<<53 - 1, math.MaxInt64} {
		for name, path := range wholeFiles(t, 1<<53, -1<<53, 1<<60, math.MinInt64, v) {
			o, err := openPoints(path, Kind(name))
			var got []float64
			if err == nil {
				err = o.points(func(c *rows.Chunk) error {
					got = append(got, c.Values...)
					return nil
				})
			}
			if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), "row 4") {
				t.Errorf("%s: %d is read among %v: %v", name, v, got, err)
			}
		}
	}
}
