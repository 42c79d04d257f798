package input

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
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

// randomTable returns a table with nulls, as CSV and as columns: texts, as they are or in a dictionary, numbers of
// three kinds, weights.
func randomTable(r *rand.Rand, n int, city arrow.DataType) (string, arrow.Record) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: arrow.BinaryTypes.String},
		{Name: "city", Type: city, Nullable: true},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "age", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "paid", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "floor", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "w", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var csv strings.Builder
	csv.WriteString("label,city,note,age,paid,floor,w\n")
	for range n {
		fields := []string{[]string{"no", "yes"}[r.IntN(2)], fmt.Sprint("city ", r.IntN(9)),
			fmt.Sprint("word", r.IntN(50), " good"), fmt.Sprint(r.IntN(90)), fmt.Sprint(float64(r.IntN(1000)) / 8),
			fmt.Sprint(r.IntN(5)), fmt.Sprint(1 + r.IntN(3))}
		for k := range fields {
			if k > 0 && r.IntN(12) == 0 {
				fields[k] = ""
			}
		}
		for k, f := range fields {
			switch c := b.Field(k); {
			case f == "":
				c.AppendNull()
			default:
				if err := c.AppendValueFromString(f); err != nil {
					panic(err)
				}
			}
		}
		csv.WriteString(strings.Join(fields, ",") + "\n")
	}
	return csv.String(), b.NewRecord()
}

// writeColumns writes a record to a file of Parquet, in row groups of some rows, or of Arrow.
func writeColumns(t *testing.T, path string, rec arrow.Record) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".arrow") {
		w, err := ipc.NewFileWriter(f, ipc.WithSchema(rec.Schema()))
		if err == nil {
			err = w.Write(rec)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(70)),
		pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); err == nil && from < rec.NumRows(); from += 70 {
		err = w.Write(rec.NewSlice(from, min(rec.NumRows(), from+70)))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pointsOf returns what a source's rows are: labels, weights, features, whatever the chunks.
func pointsOf(t *testing.T, s *Source) (out []string) {
	t.Helper()
	for part := range s.Len() {
		err := s.Read(context.Background(), part, func(c *rows.Chunk) error {
			for r := range c.Rows() {
				x := map[int]float64{}
				for j := 0; c.Dense() && j < c.Width; j++ {
					if v := c.Values[r*c.Width+j]; v != 0 {
						x[j] = v
					}
				}
				for k := 0; !c.Dense() && k < int(c.Offsets[r+1]-c.Offsets[r]); k++ {
					x[int(c.Indices[int(c.Offsets[r])+k])] += c.Values[int(c.Offsets[r])+k]
				}
				out = append(out, fmt.Sprint(c.Texts[int(c.Labels[r])], c.WeightOf(r), x))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestColumnsOfParquetAndArrowArePrepared as those of CSV are: the preparation is the same to the bit, and so are the
// points; and one that was fitted to either prepares the other.
func TestColumnsOfParquetAndArrowArePrepared(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := 1 + r.IntN(300)
		text, rec := randomTable(rand.New(rand.NewPCG(seed, 8)), n, arrow.BinaryTypes.String)
		_, dictionary := randomTable(rand.New(rand.NewPCG(seed, 8)), n, &arrow.DictionaryType{
			IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String})
		dir := t.TempDir()
		paths := map[string]string{}
		for _, end := range []string{".csv", ".parquet", ".arrow"} {
			paths[end] = filepath.Join(dir, "table"+end)
		}
		if err := os.WriteFile(paths[".csv"], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		writeColumns(t, paths[".parquet"], rec)
		writeColumns(t, paths[".arrow"], dictionary)
		o := Options{Weight: "w", Prepare: Prepare{OneHot: []string{"city"}, Text: []string{"note"}, Buckets: 64,
			Missing: []Missing{MissingZero, MissingMean, MissingDrop}[seed%3],
			Scale:   []Scale{ScaleNone, ScaleStandard, ScaleMinMax, ScaleMaxAbs}[seed%4]}}
		if seed%2 == 0 {
			o.Prepare.Hash = []string{"floor"}
		}
		if o.Prepare.Missing != MissingDrop { // a row without a weight is an error
			o.Weight = ""
			o.Prepare.OneHot = append(o.Prepare.OneHot, "w")
		}
		want, err := Open(context.Background(), o, paths[".csv"])
		if err != nil {
			if seed%3 == 2 && strings.Contains(err.Error(), "no rows") {
				continue // all were dropped
			}
			t.Fatal(err)
		}
		points := pointsOf(t, want)
		for _, end := range []string{".parquet", ".arrow"} {
			got, err := Open(context.Background(), o, paths[end])
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, end, err)
			}
			if !reflect.DeepEqual(got.Prepared.Columns, want.Prepared.Columns) {
				t.Errorf("seed %d, %s: prepared as\n%+v, CSV as\n%+v", seed, end, got.Prepared.Columns,
					want.Prepared.Columns)
			}
			if p := pointsOf(t, got); !reflect.DeepEqual(p, points) {
				t.Errorf("seed %d, %s: %d points, CSV has %d, or others\n%.300s\n%.300s", seed, end, len(p),
					len(points), p, points)
			}
			fitted, err := Open(context.Background(), Options{Fitted: want.Prepared}, paths[end])
			if err != nil {
				t.Fatal(err)
			}
			other, err := Open(context.Background(), Options{Fitted: got.Prepared}, paths[".csv"])
			if err != nil {
				t.Fatal(err)
			}
			if a, b := pointsOf(t, fitted), pointsOf(t, other); !reflect.DeepEqual(a, b) {
				t.Errorf("seed %d, %s: by each other's preparation they differ", seed, end)
			}
		}
	}
}

// TestColumnsThatCannotBePrepared are named, with the row.
func TestColumnsThatCannotBePrepared(t *testing.T) {
	_, rec := randomTable(rand.New(rand.NewPCG(1, 2)), 100, arrow.BinaryTypes.String)
	path := filepath.Join(t.TempDir(), "table.parquet")
	writeColumns(t, path, rec)
	for want, p := range map[string]Prepare{
		`column "city" is "city`:            {OneHot: []string{"note"}, Missing: MissingZero},
		`there is no column "town"`:         {OneHot: []string{"town"}},
		` is null in row`:                   {OneHot: []string{"city", "note"}},
		`column "note" is used twice`:       {OneHot: []string{"note"}, Hash: []string{"note"}},
		`the weight in column "w" is "" in`: {OneHot: []string{"city", "note"}, Missing: MissingZero},
	} {
		o := Options{Prepare: p}
		if strings.Contains(want, "weight") {
			o.Weight = "w"
		}
		if _, err := Open(context.Background(), o, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
