package fold

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// SparseOf returns the rows of a sparse batch, as kernels take them.
func SparseOf[T kernel.Float](b *rdd.Batch, values []T) kernel.Sparse[T] {
	return kernel.Sparse[T]{Offsets: b.Offsets, Indices: b.Indices, Values: values}
}

// Dots computes z = w·x for some rows of a batch.
func Dots(z, w []float64, b *rdd.Batch, rows []int32) {
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Dots(z, w, b.X32, rows)
	case b.Dense():
		kernel.Dots(z, w, b.X64, rows)
	case b.X32 != nil:
		kernel.SparseDots(z, w, SparseOf(b, b.X32), rows)
	default:
		kernel.SparseDots(z, w, SparseOf(b, b.X64), rows)
	}
}

// Accumulate adds Σ coef·x to sum.
func Accumulate(sum, coef []float64, b *rdd.Batch) {
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Accumulate(sum, coef, b.X32, b.Rows)
	case b.Dense():
		kernel.Accumulate(sum, coef, b.X64, b.Rows)
	case b.X32 != nil:
		kernel.SparseAccumulate(sum, coef, SparseOf(b, b.X32), b.Rows)
	default:
		kernel.SparseAccumulate(sum, coef, SparseOf(b, b.X64), b.Rows)
	}
}

// ValueAt returns a number of a batch, whatever its precision.
func ValueAt(b *rdd.Batch, at int) float64 {
	if b.X32 != nil {
		return float64(b.X32[at])
	}
	return b.X64[at]
}
