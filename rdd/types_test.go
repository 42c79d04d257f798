package rdd_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/volley-engine/volley/rdd"
)

// invoice has a field of each type that is not a plain number or text.
type invoice struct {
	ID     uuid.UUID        `col:"id"`
	Amount string           `col:"amount" decimal:"12,2"`
	Rate   float64          `col:"rate" decimal:"6,4"`
	Cents  sql.Null[int64]  `col:"cents" decimal:"20,0"`
	Big    uint64           `col:"big"`
	Took   time.Duration    `col:"took"`
	Hash   [4]byte          `col:"hash"`
	Note   sql.Null[string] `col:"note"`
}

func invoices() []invoice {
	return []invoice{
		{uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef"), "-1234567890.10", 0.0625,
			sql.Null[int64]{V: -7, Valid: true}, 1<<64 - 1, 90 * time.Second, [4]byte{1, 2, 3, 255},
			sql.Null[string]{V: "a,b", Valid: true}},
		{Amount: "0.00", Rate: 12.5, Took: -1},
	}
}

// TestTypesBesideNumbersAndTexts come back from every format as they were saved.
func TestTypesBesideNumbersAndTexts(t *testing.T) {
	type graph = rdd.Graph
	for name, f := range map[string]struct {
		save func(rdd.Dataset[invoice], string, ...rdd.SaveOption) rdd.Action[int64]
		read func(*graph, string) rdd.Dataset[invoice]
	}{
		"parquet": {rdd.SaveParquet[invoice], func(g *graph, in string) rdd.Dataset[invoice] {
			return rdd.Parquet[invoice](g, in)
		}},
		"arrow": {rdd.SaveArrow[invoice], func(g *graph, in string) rdd.Dataset[invoice] {
			return rdd.Arrow[invoice](g, in)
		}},
		"csv": {rdd.SaveCSV[invoice], func(g *graph, in string) rdd.Dataset[invoice] {
			return rdd.CSV[invoice](g, rdd.CSVOptions{}, in)
		}},
		"json": {rdd.SaveJSONLines[invoice], func(g *graph, in string) rdd.Dataset[invoice] {
			return rdd.JSONLines[invoice](g, in)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			backAgain(t, invoices(), filepath.Join(t.TempDir(), "out"), f.save, f.read)
		})
	}
}

// TestNullsAreNullInJSON: an sql.Null is its value or null, within lists and structs, too.
func TestNullsAreNullInJSON(t *testing.T) {
	type inner struct {
		At   sql.Null[time.Time]
		Many []sql.Null[int]
		Map  map[string]sql.Null[bool]
	}
	type row struct {
		Name  sql.Null[string] `json:"name"`
		Left  sql.Null[int]    `json:"left,omitempty"`
		Inner inner
	}
	valid := func(n int) sql.Null[int] { return sql.Null[int]{V: n, Valid: true} }
	rows := []row{
		{Name: sql.Null[string]{V: "a", Valid: true}, Inner: inner{Many: []sql.Null[int]{valid(0), {}},
			At:  sql.Null[time.Time]{V: time.Unix(0, 0).UTC(), Valid: true},
			Map: map[string]sql.Null[bool]{"x": {V: true, Valid: true}, "y": {}}}},
		{Left: valid(3)}}
	dir := filepath.Join(t.TempDir(), "out")
	backAgain(t, rows, dir, rdd.SaveJSONLines[row],
		func(g *rdd.Graph, in string) rdd.Dataset[row] { return rdd.JSONLines[row](g, in) })
	files, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	var text strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(raw)
	}
	want := `{"name":"a","Inner":{"At":"1970-01-01T00:00:00Z","Many":[0,null],"Map":{"x":true,"y":null}}}` + "\n" +
		`{"name":null,"left":3,"Inner":{"At":null,"Many":null,"Map":null}}` + "\n"
	if text.String() != want {
		t.Errorf("saved is\n%swant\n%s", text.String(), want)
	}
}

// TestDecimalsThatDoNotFitAreRefused, and are not rounded.
func TestDecimalsThatDoNotFitAreRefused(t *testing.T) {
	type row struct {
		V string `decimal:"4,2"`
	}
	for value, says := range map[string]string{"1.005": "more than 2 places", "100": "more than the 2 digits",
		"1e2": "not a decimal number", "": "not a decimal number", "--1": "not a decimal number"} {
		dir := filepath.Join(t.TempDir(), "out")
		runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.SaveParquet(rdd.Parallelize(g, 1, row{value}), dir)
		}, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) {
			if _, err := a.Run(ctx, s); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, want %q", value, err, says)
			}
		})
	}
	g := rdd.NewGraph()
	rdd.SaveParquet(rdd.Parallelize(g, 1, struct {
		V bool `decimal:"4,2"`
	}{}), t.TempDir())
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "not for a bool") {
		t.Errorf("%v", err)
	}
}

// TestStructsWithinStructs of which only some fields are wanted, at two depths.
func TestStructsWithinStructs(t *testing.T) {
	type in struct{ X, Y *int64 }
	type wide struct {
		S struct {
			In *in
			Z  string
		}
		T string
	}
	type narrow struct {
		S struct{ In *struct{ X *int64 } }
	}
	dir, x := filepath.Join(t.TempDir(), "out"), int64(7)
	runPlan(t, testConfig(t), func(g *rdd.Graph) rdd.Action[int64] {
		var r wide
		r.S.In, r.S.Z = &in{X: &x}, "z"
		return rdd.SaveParquet(rdd.Parallelize(g, 1, r, wide{}), dir)
	}, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) { must(ctx, t, s, "save", a) })
	read := func(g *rdd.Graph) rdd.Action[[]narrow] { return rdd.Collect(rdd.Parquet[narrow](g, dir)) }
	runPlan(t, testConfig(t), read,
		func(ctx context.Context, s *rdd.Session, a rdd.Action[[]narrow]) {
			rows := must(ctx, t, s, "read", a)
			if len(rows) != 2 || rows[0].S.In == nil || *rows[0].S.In.X != 7 || rows[1].S.In != nil {
				t.Errorf("read are %+v", rows)
			}
		})
}

// TestNullsBesideEmbeddedStructs are refused when the plan is built: their fields could not be told apart.
func TestNullsBesideEmbeddedStructs(t *testing.T) {
	type base struct{ ID int }
	type row struct {
		base
		M sql.Null[int] `col:"-"`
	}
	g := rdd.NewGraph()
	rdd.JSONLines[row](g, t.TempDir())
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "embeds a struct") {
		t.Error(err)
	}
}

// TestWhatReadersCannotTake is refused, not written: texts that are not UTF-8, years beyond microseconds.
func TestWhatReadersCannotTake(t *testing.T) {
	save := func(says string, build func(g *rdd.Graph) rdd.Action[int64]) {
		t.Helper()
		runPlan(t, testConfig(t), build, func(ctx context.Context, s *rdd.Session, a rdd.Action[int64]) {
			if _, err := a.Run(ctx, s); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
		})
	}
	dir := t.TempDir()
	save("is not UTF-8", func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveParquet(rdd.Parallelize(g, 1, "a\xff"), filepath.Join(dir, "text"))
	})
	save("the year 300000", func(g *rdd.Graph) rdd.Action[int64] {
		far := time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)
		return rdd.SaveArrow(rdd.Parallelize(g, 1, far), filepath.Join(dir, "time"))
	})
}
