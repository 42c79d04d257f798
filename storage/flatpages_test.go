package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// TestPlainPagesAreRead as decoders read them: numbers of all types, in pages of both
// versions that end within batches, compressed or not, required or without nulls, and
// next to columns that must be decoded.
func TestPlainPagesAreRead(t *testing.T) {
	for name, properties := range map[string][]parquet.WriterProperty{
		"version 1":     {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV1)},
		"version 2":     {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"snappy":        {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy)},
		"zstd, 2":       {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"gzip":          {parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Gzip)},
		"dictionaries":  {parquet.WithDictionaryDefault(true)},
		"no statistics": {parquet.WithDictionaryDefault(false), parquet.WithStats(false)},
	} {
		for _, nullable := range []bool{false, true} {
			for _, nulls := range []bool{false, true} {
				if nulls && !nullable {
					continue
				}
				t.Run(fmt.Sprintf("%s nullable %v nulls %v", name, nullable, nulls), func(t *testing.T) {
					plain := name != "dictionaries" && !nulls && (name != "no statistics" || !nullable)
					readNumbersOf(t, append(properties, parquet.WithDataPageSize(3000), parquet.WithBatchSize(100)), nullable, nulls, plain)
				})
			}
		}
	}
}

func readNumbersOf(t *testing.T, properties []parquet.WriterProperty, nullable, nulls, plain bool) {
	rec, valid := numbersOfAllTypes(nullable, nulls)
	path := filepath.Join(t.TempDir(), "numbers.parquet")
	writeParquet(t, path, rec, properties)
	f, err := openFlat(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var names []string
	for i, field := range rec.Schema().Fields() {
		names = append(names, field.Name)
		if p, err := f.pageColumn(0, i); err != nil || (p != nil) != plain {
			t.Fatalf("column %s is read by pages: %v, %v", field.Name, p != nil, err)
		}
	}
	row := 0
	err = f.read(context.Background(), []int{0, 1}, names, func(n int, cols []*FlatColumn) error {
		for i, c := range cols {
			got := make([]float64, max(len(c.Int32s), len(c.Int64s), len(c.Floats), len(c.Doubles)))
			c.numbers(got, 1)
			for r := range n {
				if c.Defs != nil && (c.Defs[r] == 1) != valid[row+r] {
					t.Fatalf("row %d of %s is null: %v", row+r, c.Name, valid[row+r])
				}
				if !valid[row+r] {
					continue
				}
				if want := float64(numberAt(rec.Column(i), row+r)); len(got) == 0 || got[0] != want {
					t.Fatalf("row %d of %s is not %v", row+r, c.Name, want)
				}
				got = got[1:]
			}
		}
		row += n
		return nil
	})
	if err != nil || row != int(rec.NumRows()) {
		t.Fatalf("%d rows, %v", row, err)
	}
}

func numbersOfAllTypes(nullable, nulls bool) (arrow.Record, []bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	var fields []arrow.Field
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64} {
		fields = append(fields, arrow.Field{Name: typ.Name(), Type: typ, Nullable: nullable})
	}
	const rows = 10000 // of which a group has no multiple of a batch
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	valid := make([]bool, rows)
	for i := range valid {
		if valid[i] = !nulls || rng.IntN(5) > 0; !valid[i] {
			for _, f := range b.Fields() {
				f.AppendNull()
			}
			continue
		}
		v := rng.IntN(100) - 50
		b.Field(0).(*array.Int32Builder).Append(int32(v))
		b.Field(1).(*array.Int64Builder).Append(int64(v) << 20)
		b.Field(2).(*array.Float32Builder).Append(float32(v) / 4)
		b.Field(3).(*array.Float64Builder).Append(float64(v) / 3)
	}
	return b.NewRecord(), valid
}

func numberAt(c arrow.Array, i int) float64 {
	switch c := c.(type) {
	case *array.Int32:
		return float64(c.Value(i))
	case *array.Int64:
		return float64(c.Value(i))
	case *array.Float32:
		return float64(c.Value(i))
	}
	return c.(*array.Float64).Value(i)
}

func writeParquet(t *testing.T, path string, rec arrow.Record, properties []parquet.WriterProperty) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	properties = append(slices.Clone(properties), parquet.WithMaxRowGroupLength(7000))
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPlainPagesAreErrors, whatever byte is wrong, never a panic: rows are
// numbers at least.
func TestDamagedPlainPagesAreErrors(t *testing.T) {
	rec, _ := numbersOfAllTypes(true, false)
	path := filepath.Join(t.TempDir(), "numbers.parquet")
	writeParquet(t, path, rec, []parquet.WriterProperty{parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageSize(3000), parquet.WithBatchSize(100)})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rng, failed := rand.New(rand.NewPCG(4, 4)), 0
	for range 300 {
		raw := slices.Clone(whole)
		for range 1 + rng.IntN(4) {
			raw[rng.IntN(len(raw)*9/10)] ^= byte(1 << rng.IntN(8)) // the footer is at the end
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openFlat(path)
		if err != nil {
			continue
		}
		for g := range f.r.NumRowGroups() {
			if f.read(context.Background(), []int{g}, []string{"int32", "float64"}, func(int, []*FlatColumn) error { return nil }) != nil {
				failed++
			}
		}
		f.close()
	}
	if failed == 0 {
		t.Fatal("no damage was noticed")
	}
}
