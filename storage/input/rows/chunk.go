package rows

import (
	"fmt"
	"slices"
)

// Chunk is a run of rows from a reader, in input order. Either Width > 0 and
// Values is row-major with that many columns, or the rows are sparse: row r has
// the nonzeros Offsets[r] to Offsets[r+1]. Blobs holds encoded rows of a type
// that has no columns of its own.
type Chunk struct {
	Labels  []float64
	Weights []float64 // nil where rows have none
	Texts   []string  // where labels are text: Labels index into it
	Width   int
	Values  []float64
	Same    *float64 // sparse only: what all nonzeros are, where Values is empty
	Offsets []int64  // sparse only; len(Labels)+1
	Indices []int32  // sparse only, as the file has them
	Blobs   [][]byte
	// ZeroBased reports that Indices count from zero.
	ZeroBased bool
	Malformed int64         // records beside the rows that were left out
	Missing   int64         // rows that were left out as they lack a number
	Where     func() string // file and line of the first row, determined only for errors
	dropped   map[int]bool  // rows that are dropped
	textIdx   map[string]int
}

// MaxIndex is the greatest column index a sparse row may have: vectors of
// that length are allocated, so a wild index must not get through.
const MaxIndex = 1<<28 - 1

// Rows returns how many rows the chunk holds.
func (c *Chunk) Rows() int {
	if c.Blobs != nil {
		return len(c.Blobs)
	}
	return len(c.Labels)
}

// Bytes returns about how much memory the chunk takes.
func (c *Chunk) Bytes() int64 {
	n := int64(8*len(c.Labels) + 8*len(c.Weights) + 8*len(c.Values) + 8*len(c.Offsets) + 4*len(c.Indices))
	for _, b := range c.Blobs {
		n += int64(len(b)) + 24
	}
	return n
}

// Clone returns a copy of a chunk of points.
func (c *Chunk) Clone() *Chunk {
	return &Chunk{Labels: slices.Clone(c.Labels), Weights: slices.Clone(c.Weights), Texts: slices.Clone(c.Texts),
		Width: c.Width, Values: slices.Clone(c.Values), Same: c.Same, Offsets: slices.Clone(c.Offsets),
		Indices: slices.Clone(c.Indices), ZeroBased: c.ZeroBased, Malformed: c.Malformed, Missing: c.Missing,
		Where: c.Where}
}

// Dense reports whether rows are dense.
func (c *Chunk) Dense() bool { return c.Width > 0 }

// LabelText makes text the label of the row that was added last.
func (c *Chunk) LabelText(s string) {
	c.Labels = c.Labels[:len(c.Labels)-1]
	c.AddText([]byte(s))
}

// AddText appends a label that is text.
func (c *Chunk) AddText(s []byte) {
	if c.textIdx == nil {
		c.textIdx = map[string]int{}
	}
	i, ok := c.textIdx[string(s)]
	if !ok {
		i = len(c.Texts)
		c.Texts = append(c.Texts, string(s))
		c.textIdx[string(s)] = i
	}
	c.Labels = append(c.Labels, float64(i))
}

// AppendSparse adds one sparse row with ascending indices.
func (c *Chunk) AppendSparse(label float64, idx []int32, val []float64) {
	if c.Offsets == nil {
		c.Offsets = []int64{0}
	}
	c.Labels = append(c.Labels, label)
	c.Indices = append(c.Indices, idx...)
	c.Values = append(c.Values, val...)
	c.Offsets = append(c.Offsets, int64(len(c.Indices)))
}

// Value returns the value of a nonzero.
func (c *Chunk) Value(k int64) float64 {
	if c.Same != nil {
		return *c.Same
	}
	return c.Values[k]
}

// AppendSparseOf adds a sparse row of another chunk, with a label.
func (c *Chunk) AppendSparseOf(label float64, from *Chunk, row int) {
	begin, end := from.Offsets[row], from.Offsets[row+1]
	if from.Same != nil && len(c.Labels) == 0 {
		c.Same = from.Same
	}
	if c.Same != nil && (from.Same == nil || *from.Same != *c.Same) { // they differ from here on
		c.Values, c.Same = slices.Repeat([]float64{*c.Same}, len(c.Indices)), nil
	}
	switch {
	case c.Same != nil:
		c.AppendSparse(label, from.Indices[begin:end], nil)
	case from.Same != nil:
		c.AppendSparse(label, from.Indices[begin:end], slices.Repeat([]float64{*from.Same}, int(end-begin)))
	default:
		c.AppendSparse(label, from.Indices[begin:end], from.Values[begin:end])
	}
}

// AppendDense adds one dense row; every row has the same width.
func (c *Chunk) AppendDense(label float64, x []float64) {
	c.Width = len(x)
	c.Labels = append(c.Labels, label)
	c.Values = append(c.Values, x...)
}

// WeightOf returns the weight of a row: 1 where rows have none.
func (c *Chunk) WeightOf(row int) float64 {
	if c.Weights == nil {
		return 1
	}
	return c.Weights[row]
}

// AppendWeight gives the row that was added last a weight; those before it that were
// given none have zero.
func (c *Chunk) AppendWeight(w float64) {
	if n := len(c.Labels); len(c.Weights) < n-1 {
		c.Weights = append(c.Weights, make([]float64, n-1-len(c.Weights))...)
	}
	c.Weights = append(c.Weights, w)
}

// Drop drops the row that was added last.
func (c *Chunk) Drop() {
	if c.dropped == nil {
		c.dropped = map[int]bool{}
	}
	c.dropped[len(c.Labels)-1] = true
}

// Trim gives back what appending reserved beyond need.
func (c *Chunk) Trim() {
	c.Labels, c.Weights, c.Values = slices.Clip(c.Labels), slices.Clip(c.Weights), slices.Clip(c.Values)
	c.Offsets, c.Indices, c.textIdx = slices.Clip(c.Offsets), slices.Clip(c.Indices), nil
}

// Mark is a position in a chunk.
type Mark struct{ labels, weights, values, offsets, indices, texts int }

// Mark returns the chunk's present position.
func (c *Chunk) Mark() Mark {
	return Mark{len(c.Labels), len(c.Weights), len(c.Values), len(c.Offsets), len(c.Indices), len(c.Texts)}
}

// BackTo removes what was appended since a mark.
func (c *Chunk) BackTo(m Mark) {
	c.Labels, c.Weights, c.Values = c.Labels[:m.labels], c.Weights[:m.weights], c.Values[:m.values]
	c.Offsets, c.Indices = c.Offsets[:m.offsets], c.Indices[:m.indices]
	for _, t := range c.Texts[m.texts:] {
		delete(c.textIdx, t)
	}
	if c.Texts = c.Texts[:m.texts]; m.texts == 0 {
		c.Texts = nil
	}
}

// FormatLabel returns a numeric label in its shortest form.
func FormatLabel(v float64) string { return fmt.Sprintf("%v", v) }
