package storage

import (
	"math"
	"slices"
)

// Chunk is a run of rows as a reader hands them on, in input order. Either
// Width > 0 and Values is row-major with that many columns, or the rows are
// sparse: row r has the nonzeros Offsets[r] to Offsets[r+1]. Blobs holds
// encoded rows of a type that has no columns of its own.
type Chunk struct {
	Labels  []float64
	Weights []float64 // nil where rows have none
	Texts   []string  // where labels are text: Labels index into it
	Width   int
	Values  []float64
	Offsets []int64 // sparse only; len(Labels)+1
	Indices []int32 // sparse only, as the file has them
	Blobs   [][]byte
	// ZeroBased says that Indices count from zero whatever they look like.
	ZeroBased bool
	dropped   map[int]bool  // rows that are not to be handed on
	malformed int64         // records beside them that were left out
	missing   int64         // rows that were left out as they lack a number
	where     func() string // file and line of the first row, found out only to complain of it
	textIdx   map[string]int
}

// place names the chunk's first row, for complaints about the whole.
func (c *Chunk) place() string {
	if c.where == nil {
		return "the input"
	}
	return c.where()
}

// Rows is how many rows the chunk holds.
func (c *Chunk) Rows() int {
	if c.Blobs != nil {
		return len(c.Blobs)
	}
	return len(c.Labels)
}

// Bytes is about how much memory the chunk takes.
func (c *Chunk) Bytes() int64 {
	n := int64(8*len(c.Labels) + 8*len(c.Weights) + 8*len(c.Values) + 8*len(c.Offsets) + 4*len(c.Indices))
	for _, b := range c.Blobs {
		n += int64(len(b)) + 24
	}
	return n
}

// Dense reports whether rows are dense.
func (c *Chunk) Dense() bool { return c.Width > 0 }

// addText appends a label that is text.
func (c *Chunk) addText(s []byte) {
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

// indexBounds are the least and greatest column index of a sparse chunk;
// (MaxInt32, -1) where there is none.
func (c *Chunk) indexBounds() (lo, hi int32) {
	lo, hi = math.MaxInt32, -1
	for r := range len(c.Offsets) - 1 { // indices ascend within a row
		if a, b := c.Offsets[r], c.Offsets[r+1]; a < b {
			lo, hi = min(lo, c.Indices[a]), max(hi, c.Indices[b-1])
		}
	}
	return lo, hi
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

// AppendDense adds one dense row; every row has the same width.
func (c *Chunk) AppendDense(label float64, x []float64) {
	c.Width = len(x)
	c.Labels = append(c.Labels, label)
	c.Values = append(c.Values, x...)
}

// WeightOf is the weight of a row: 1 where rows have none.
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

// trim gives back what appending reserved beyond need.
func (c *Chunk) trim() {
	c.Labels, c.Weights, c.Values = slices.Clip(c.Labels), slices.Clip(c.Weights), slices.Clip(c.Values)
	c.Offsets, c.Indices, c.textIdx = slices.Clip(c.Offsets), slices.Clip(c.Indices), nil
}
