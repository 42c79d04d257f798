package pack

import (
	"context"
	"fmt"
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

	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// weightOf is that of row i of the files below.
func weightOf(i int) float64 { return float64(i%7) / 2 }

// weightFiles write rows with a label, weight and one or more features, of which the
// last is the row's number, in every format that has columns.
func weightFiles(t *testing.T, rows int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("label,w,a,id\n")
	flat := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.PrimitiveTypes.Float64},
		{Name: "a", Type: arrow.PrimitiveTypes.Float64},
		{Name: "w", Type: arrow.PrimitiveTypes.Float64}, {Name: "id", Type: arrow.PrimitiveTypes.Float64}}, nil)
	list := arrow.NewSchema([]arrow.Field{{Name: "features", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64)},
		{Name: "w", Type: arrow.PrimitiveTypes.Float64}, {Name: "label", Type: arrow.PrimitiveTypes.Float64}}, nil)
	fb, lb := array.NewRecordBuilder(memory.DefaultAllocator, flat),
		array.NewRecordBuilder(memory.DefaultAllocator, list)
	for i := range rows {
		fmt.Fprintf(&text, "%d,%v,1,%d\n", i%2, weightOf(i), i)
		for k, v := range []float64{float64(i % 2), 1, weightOf(i), float64(i)} {
			fb.Field(k).(*array.Float64Builder).Append(v)
		}
		features := lb.Field(0).(*array.ListBuilder)
		features.Append(true)
		features.ValueBuilder().(*array.Float64Builder).AppendValues([]float64{1, float64(i)}, nil)
		lb.Field(1).(*array.Float64Builder).Append(weightOf(i))
		lb.Field(2).(*array.Float64Builder).Append(float64(i % 2))
	}
	out := map[string]string{"csv": filepath.Join(dir, "x.csv"), "parquet": filepath.Join(dir, "flat.parquet"),
		"lists": filepath.Join(dir, "list.parquet"), "arrow": filepath.Join(dir, "x.arrow")}
	if err := os.WriteFile(out["csv"], []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	flatRec, listRec := fb.NewRecord(), lb.NewRecord()
	for name, rec := range map[string]arrow.Record{"parquet": flatRec, "lists": listRec} {
		f, err := os.Create(out[name])
		if err != nil {
			t.Fatal(err)
		}
		w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
		if err != nil || w.Write(rec) != nil || w.Close() != nil {
			t.Fatal(name, err)
		}
	}
	f, err := os.Create(out["arrow"])
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(flat))
	if err != nil || w.Write(flatRec) != nil || w.Close() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return out
}

// TestWeightsStayWithTheirRows, whatever rows are read from and laid out as.
func TestWeightsStayWithTheirRows(t *testing.T) {
	const all = 3000
	for name, path := range weightFiles(t, all) {
		for _, o := range []Options{{Splits: 3}, {Splits: 5, Random: true, Float32: true, Seed: 4}} {
			for _, ro := range []input.Options{{Weight: "w"}, {Weight: "w", Fold: rows.Fold{Number: 1, Of: 3}},
				{Weight: "w", Prepare: input.Prepare{Hash: []string{"a"}, Buckets: 8}}} {
				if ro.Prepare.Asked() && name != "csv" {
					continue
				}
				src, err := input.Open(context.Background(), ro, path)
				if err != nil {
					t.Fatal(name, err)
				}
				if src.WeightName() != "w" || src.LabelName() != "label" {
					t.Errorf("%s: the weights are called %q, the labels %q", name, src.WeightName(), src.LabelName())
				}
				checkWeights(t, name, src, o, ro, all)
			}
		}
	}
}

func checkWeights(t *testing.T, name string, src *input.Source, o Options, ro input.Options, n int) {
	t.Helper()
	p, err := packSource(t, src, o)
	if err != nil {
		t.Fatal(name, err)
	}
	seen, want := map[int]bool{}, 0
	sieve := ro.Fold.Sieve(0)
	for range n {
		if sieve.Keeps(rows.Class{}) {
			want++
		}
	}
	for i, meta := range p.Meta.Splits {
		s, err := OpenSplit(filepath.Join(p.Dir, SplitFile(i)), p.Meta, i)
		if err != nil {
			t.Fatal(name, err)
		}
		var sum float64
		for _, b := range s.Batches {
			for r, w := range b.Weights {
				row := rowNumber(s, &b, r)
				if w != weightOf(row) || b.Labels[r] != float64(row%2) || seen[row] {
					t.Fatalf("%s: row %d weighs %v, its label is %v", name, row, w, b.Labels[r])
				}
				seen[row] = true
				sum += w
			}
		}
		if s.Close(); sum != meta.Weight {
			t.Errorf("%s: split %d weighs %v, its description says %v", name, i, sum, meta.Weight)
		}
	}
	if len(seen) != want || !p.Meta.Weighted {
		t.Errorf("%s: %d rows of %d, weighted %v", name, len(seen), want, p.Meta.Weighted)
	}
}

// rowNumber is the last feature of a row.
func rowNumber(s *Split, b *Batch, r int) int {
	at := (r+1)*s.Meta.Features - 1
	if s.Meta.Layout == SparseLayout {
		if at = int(b.Offsets[r+1]) - 1; at < int(b.Offsets[r]) || int(b.Indices[at]) != s.Meta.Features-1 {
			return 0 // the number 0 is no entry
		}
	}
	if b.X32 != nil {
		return int(b.X32[at])
	}
	return int(b.X64[at])
}
