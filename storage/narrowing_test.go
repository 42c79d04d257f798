package storage

import (
	"context"
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
)

// wholeFiles write rows of a label and of whole numbers as Parquet and as Arrow.
func wholeFiles(t *testing.T, values ...int64) map[string]string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Int64}, {Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
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
			src, err := OpenSource(ReadOptions{}, path)
			var got []float64
			if err == nil {
				err = src.Read(context.Background(), 0, func(c *Chunk) error {
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

// TestFeaturesThatNoSingleHasAreRefused when a pack of single precision is made, rather
// than infinite in it.
func TestFeaturesThatNoSingleHasAreRefused(t *testing.T) {
	for name, text := range map[string]string{"csv": "label,a\n1,2\n0,1e300\n", "libsvm": "1 1:2\n0 1:-1e300\n", "nearly": "label,a\n1,2\n0,3.4028236e38\n"} {
		if _, err := packOf(t, text, ReadOptions{}, PackOptions{Float32: true}); err == nil || !strings.Contains(err.Error(), "single precision") {
			t.Errorf("%s: it is packed: %v", name, err)
		}
		if _, err := packOf(t, text, ReadOptions{}, PackOptions{}); err != nil {
			t.Errorf("%s in double precision: %v", name, err)
		}
	}
	if _, err := packOf(t, "label,a\n1,3.4028235e38\n0,1e-300\n", ReadOptions{}, PackOptions{Float32: true}); err != nil {
		t.Errorf("the greatest single, and what is next to nothing: %v", err)
	}
}
