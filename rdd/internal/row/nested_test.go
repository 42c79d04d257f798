package row

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/storage/input"
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
