package input

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/storage/input/rows"
)

// TestDecimalsAndHalfFloatsAreFeatures: each the double nearest to it.
func TestDecimalsAndHalfFloatsAreFeatures(t *testing.T) {
	dir := filepath.Join(datasets.Path(t, "parquet-testing"), "data")
	for _, c := range []struct {
		file string
		want []float64
	}{
		{"int32_decimal.parquet", []float64{1, 2, 3}}, {"int64_decimal.parquet", []float64{1, 2, 3}},
		{"fixed_length_decimal.parquet", []float64{1, 2, 3}}, {"byte_array_decimal.parquet", []float64{1, 2, 3}},
	} {
		s, err := Open(context.Background(), Options{NoLabel: true}, filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		err = s.Read(context.Background(), 0, func(b *rows.Chunk) error { got = append(got, b.Values...); return nil })
		if err != nil || len(got) != 24 || got[0] != c.want[0] || got[1] != c.want[1] || got[2] != c.want[2] {
			t.Errorf("%s: %v, %v", c.file, got, err)
		}
	}
}
