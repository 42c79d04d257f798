package row

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/parquet"
)

// TestOnlyTheFieldsThatRowsHaveAreRead: of columns of structs, at any depth, and of lists.
func TestOnlyTheFieldsThatRowsHaveAreRead(t *testing.T) {
	path := filepath.Join(datasets.Path(t, "parquet-testing"), "data", "nullable.impala.parquet")
	type inner struct {
		A *int32
		C *struct{ D *[]*[]*struct{ F *string } }
	}
	type nested struct {
		ID     int64     `col:"id"`
		Struct *inner    `col:"nested_struct"`
		Array  *[]*int32 `col:"int_array"`
	}
	c, err := ColumnsOf[nested]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := input.Open(context.Background(), input.Options{Typed: c.Names(), Format: input.Parquet}, path)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	err = s.ArrowRecords(context.Background(), 0, c.paths(), func(_ string, rec arrow.Record) error {
		at := rec.Schema().FieldIndices("nested_struct")[0]
		st := rec.Schema().Field(at).Type.(*arrow.StructType)
		for _, f := range st.Fields() {
			fields = append(fields, strings.ReplaceAll(f.Name+": "+f.Type.String(), ", nullable", ""))
		}
		return nil
	})
	want := []string{"A: int32", "C: struct<d: list<list: list<list: struct<E: int32, F: utf8>>>>"}
	if err != nil || !reflect.DeepEqual(fields, want) {
		t.Errorf("read were %q, %v; want %q", fields, err, want)
	}
	var rows []nested
	take := func(r []nested) error { rows = append(rows, r...); return nil }
	if err := c.ReadArrow(context.Background(), s, 0, take); err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	r := rows[0]
	if *r.Struct.A != 1 || *(*(*r.Struct.C.D)[0])[0].F != "aaa" ||
		rows[5].Struct != nil || *rows[6].Struct.A != 7 {
		t.Errorf("the first row is %+v, the others %+v", rows[0].Struct, rows[5:])
	}
}

// TestFlatColumnsAreWhatTheyAreInArrow: times are no numbers, and times of day have their unit.
func TestFlatColumnsAreWhatTheyAreInArrow(t *testing.T) {
	dir := t.TempDir()
	day, at := arrow.Date32(20455), arrow.Timestamp(1_600_000_000_123)
	for name, c := range map[string]struct {
		typ arrow.DataType
		add func(array.Builder)
	}{
		"date": {arrow.FixedWidthTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(day) }},
		"timestamp": {arrow.FixedWidthTypes.Timestamp_ms,
			func(b array.Builder) { b.(*array.TimestampBuilder).Append(at) }},
		"time32": {arrow.FixedWidthTypes.Time32ms,
			func(b array.Builder) { b.(*array.Time32Builder).Append(3_600_000) }},
		"time64": {arrow.FixedWidthTypes.Time64us,
			func(b array.Builder) { b.(*array.Time64Builder).Append(3_600_000_000) }},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.typ}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		c.add(b.Field(0))
		path := filepath.Join(dir, name+".parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := pqarrow.NewFileWriter(schema, f, nil, pqarrow.DefaultWriterProps())
		if err == nil {
			err = errors.Join(w.Write(b.NewRecord()), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for kind, read := range map[string]func(string, string) ([]*string, error){
			"int64": readerOf["whole"], "float64": readerOf["float"]} {
			if got, err := read(path, "v"); err == nil {
				t.Errorf("a %s is read into an %s: %v", name, kind, *got[0])
			}
		}
		got, err := readerOf["duration"](path, "v")
		if ofDay := strings.HasPrefix(name, "time3") || strings.HasPrefix(name, "time6"); ofDay &&
			(err != nil || *got[0] != "3600000000000") || !ofDay && err == nil {
			t.Errorf("a %s is read into a time.Duration: %v", name, err)
		}
	}
}

// TestHalves: every half float is itself.
func TestHalves(t *testing.T) {
	for bits, want := range map[uint16]float32{0: 0, 1: 0x1p-24, 0x8001: -0x1p-24, 0x3ff: 1023 * 0x1p-24,
		0x400:  0x1p-14,
		0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1))} {
		if got := parquet.Half(bits); got != want {
			t.Errorf("%#x is %v, want %v", bits, got, want)
		}
	}
	if got := parquet.Half(0x7e00); got == got {
		t.Errorf("a NaN is %v", got)
	}
}
