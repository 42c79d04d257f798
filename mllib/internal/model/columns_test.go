package model

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
)

// saved returns the bytes of columns.
func saved(t testing.TB, c *Columns) []byte {
	t.Helper()
	raw, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestColumnsComeBack(t *testing.T) {
	var c Columns
	c.Texts("name", []string{"a", ""}).Ints("n", []int64{-1, 1 << 60}).Floats("x", []float64{0.1, math.MaxFloat64}).
		Vectors("v", []float64{1, 2, 3, 4, 5, 6}, 3).Lists("l", [][]float64{nil, {7}}).
		IntLists("i", [][]int64{{8, 9}, {}})
	err := LoadColumns(saved(t, &c), 2, func(s *Stored) {
		for _, of := range []struct{ got, want any }{
			{s.Texts("name"), []string{"a", ""}}, {s.Ints("n"), []int64{-1, 1 << 60}},
			{s.Floats("x"), []float64{0.1, math.MaxFloat64}}, {s.Vectors("v", 3), []float64{1, 2, 3, 4, 5, 6}},
			{s.Lists("l"), [][]float64{nil, {7}}}, {s.IntLists("i"), [][]int64{{8, 9}, nil}},
		} {
			if !reflect.DeepEqual(of.got, of.want) {
				t.Errorf("%v has become %v", of.want, of.got)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// What does not fit is refused as damage, with the column's name.
func TestColumnsThatDoNotFitAreRefused(t *testing.T) {
	for name, of := range map[string]struct {
		columns *Columns
		rows    int
		says    string
	}{
		"rows":      {(&Columns{}).Floats("weight", []float64{1}), 2, "1 rows, the model has 2"},
		"name":      {(&Columns{}).Floats("w", []float64{1}), 1, `0 columns "weight"`},
		"twice":     {(&Columns{}).Floats("weight", []float64{1}).Floats("weight", []float64{1}), 1, `2 columns "weight"`},
		"kind":      {(&Columns{}).Texts("weight", []string{"1"}), 1, `"weight" is utf8`},
		"no number": {(&Columns{}).Floats("weight", []float64{math.NaN()}), 1, `"weight" is NaN`},
		"infinite":  {(&Columns{}).Floats("weight", []float64{math.Inf(1)}), 1, `"weight" is +Inf`},
		"negative":  {(&Columns{}).Floats("weight", nil), -1, "cannot have"},
	} {
		err := LoadColumns(saved(t, of.columns), of.rows, func(s *Stored) { s.Floats("weight") })
		if err == nil || fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), of.says) {
			t.Errorf("%s: loading gives %v", name, err)
		}
	}
	wide := saved(t, (&Columns{}).Vectors("v", []float64{1, 2}, 2))
	if err := LoadColumns(wide, 1, func(s *Stored) { s.Vectors("v", 3) }); err == nil {
		t.Error("vectors of another width are taken")
	}
}
