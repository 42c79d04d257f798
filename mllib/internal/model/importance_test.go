package model

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/storage/input/rows"
)

// TestAColumnOfSparseRowsIsMovedWhole: the features made of a column go to the other row together, those beside them
// stay, and places are in order.
func TestAColumnOfSparseRowsIsMovedWhole(t *testing.T) {
	c := &rows.Chunk{ZeroBased: true}
	c.AppendSparse(1, []int32{0, 2, 4, 7}, []float64{10, 12, 14, 17})
	c.AppendSparse(0, []int32{5}, []float64{25})
	c.AppendSparse(0, []int32{3}, []float64{33})
	g := columnGroup{"x", 2, 5}
	var all [][]entry
	for r := range c.Rows() {
		all = append(all, g.of(c, r))
	}
	g.put(c, func(r int) []entry { return all[(r+1)%3] })
	if !slices.Equal(c.Offsets, []int64{0, 2, 4, 6}) || !slices.Equal(c.Indices, []int32{0, 7, 3, 5, 2, 4}) ||
		!slices.Equal(c.Values, []float64{10, 17, 33, 25, 12, 14}) {
		t.Errorf("%v %v %v", c.Offsets, c.Indices, c.Values)
	}
	d := &rows.Chunk{Width: 2, Labels: []float64{0, 0}, Values: []float64{1, 2, 3, 4}}
	g = columnGroup{"y", 1, 2}
	first := g.of(d, 0)
	g.put(d, func(r int) []entry { return first })
	if !slices.Equal(d.Values, []float64{1, 2, 3, 2}) {
		t.Errorf("%v", d.Values)
	}
}
