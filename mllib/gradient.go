package mllib

import (
	"fmt"
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// linearParam is the parameter of a pass over a linear model: one weight a
// feature on the scale of the data, the intercept, and the label that counts
// as 1.
type linearParam struct {
	W        []float64
	Bias     float64
	Positive float64
}

// MarshalBinary lays the parameter out as floats.
func (p linearParam) MarshalBinary() ([]byte, error) {
	return putFloats(make([]byte, 0, 8*len(p.W)+16), []float64{p.Bias, p.Positive}, p.W), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *linearParam) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 2)
	if err == nil {
		p.Bias, p.Positive, p.W = v[0], v[1], v[2:]
	}
	return err
}

func putFloats(out []byte, parts ...[]float64) []byte {
	for _, x := range parts {
		out = rdd.AppendFloats(out, x)
	}
	return out
}

// getFloats reads floats, at least `least` of them.
func getFloats(raw []byte, least int) ([]float64, error) {
	v, err := rdd.ParseFloats(raw)
	if err != nil || len(v) < least {
		return nil, fmt.Errorf("%d bytes are not the numbers of a model", len(raw))
	}
	return v, nil
}

// gradient is the sum over some rows of loss, squared loss, the derivative
// of the loss by the margin, and, by feature, the gradient.
type gradient struct {
	Loss, LossSq, Coef float64
	Sum                []float64
}

// MarshalBinary lays the sums out as floats.
func (g gradient) MarshalBinary() ([]byte, error) {
	return putFloats(make([]byte, 0, 8*len(g.Sum)+24), []float64{g.Loss, g.LossSq, g.Coef}, g.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (g *gradient) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 3)
	if err == nil {
		g.Loss, g.LossSq, g.Coef, g.Sum = v[0], v[1], v[2], v[3:]
	}
	return err
}

func mergeGradient(a, b gradient) gradient {
	a.Loss += b.Loss
	a.LossSq += b.LossSq
	a.Coef += b.Coef
	kernel.Add(b.Sum, a.Sum)
	return a
}

func scaleGradient(a gradient, f float64) gradient {
	a.Loss *= f
	a.LossSq *= f
	a.Coef *= f
	kernel.Scale(f, a.Sum)
	return a
}

// logisticAggregator folds rows into the gradient of the logistic loss.
func logisticAggregator() rdd.Aggregator[linearParam, rdd.Point, gradient] {
	return rdd.Aggregator[linearParam, rdd.Point, gradient]{
		Zero:     func(p linearParam) gradient { return gradient{Sum: make([]float64, len(p.W))} },
		AddBatch: func(g gradient, p linearParam, b *rdd.Batch) gradient { return addLogistic(g, p, b, true) },
		Merge:    mergeGradient,
		Scale:    scaleGradient,
	}
}

// lossAggregator folds rows into the logistic loss alone.
func lossAggregator() rdd.Aggregator[linearParam, rdd.Point, gradient] {
	a := logisticAggregator()
	a.Zero = func(linearParam) gradient { return gradient{} }
	a.AddBatch = func(g gradient, p linearParam, b *rdd.Batch) gradient { return addLogistic(g, p, b, false) }
	return a
}

func addLogistic(g gradient, p linearParam, b *rdd.Batch, wantSum bool) gradient {
	prefetch(p, b)
	n := len(b.Rows)
	scratch := b.Scratch(2 * n)
	y, z := scratch[:n], scratch[n:]
	kernel.Match(y, b.Labels, b.Rows, p.Positive)
	acc := kernel.Losses{Loss: g.Loss, Squares: g.LossSq, Coef: g.Coef}
	switch {
	case !wantSum:
		dots(z, p.W, b, b.Rows)
		acc.Add(z, p.Bias, y)
	case b.Dense() && b.X32 != nil:
		kernel.LogisticGradient(&acc, g.Sum, p.W, p.Bias, b.X32, b.Rows, y)
	case b.Dense():
		kernel.LogisticGradient(&acc, g.Sum, p.W, p.Bias, b.X64, b.Rows, y)
	case b.X32 != nil:
		kernel.SparseLogisticGradient(&acc, g.Sum, p.W, p.Bias, sparseOf(b, b.X32), b.Rows, y)
	default:
		kernel.SparseLogisticGradient(&acc, g.Sum, p.W, p.Bias, sparseOf(b, b.X64), b.Rows, y)
	}
	g.Loss, g.LossSq, g.Coef = acc.Loss, acc.Squares, acc.Coef
	return g
}

// prefetch asks memory for the first dense rows while labels are looked up.
func prefetch(p linearParam, b *rdd.Batch) {
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Prefetch(b.X32, b.Labels, b.Rows, len(p.W))
	case b.Dense():
		kernel.Prefetch(b.X64, b.Labels, b.Rows, len(p.W))
	}
}

func sparseOf[T kernel.Float](b *rdd.Batch, values []T) kernel.Sparse[T] {
	return kernel.Sparse[T]{Offsets: b.Offsets, Indices: b.Indices, Values: values}
}

// dots computes z = w·x for some rows of a batch.
func dots(z, w []float64, b *rdd.Batch, rows []int32) {
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Dots(z, w, b.X32, rows)
	case b.Dense():
		kernel.Dots(z, w, b.X64, rows)
	case b.X32 != nil:
		kernel.SparseDots(z, w, sparseOf(b, b.X32), rows)
	default:
		kernel.SparseDots(z, w, sparseOf(b, b.X64), rows)
	}
}

// momentsParam is the parameter of the pass that sums moments: the number of
// features, and the label that counts as 1.
type momentsParam struct {
	Features int
	Positive float64
}

// momentsAggregator sums x and x² by feature, and, in Coef, the rows whose
// label is the positive one.
func momentsAggregator() rdd.Aggregator[momentsParam, rdd.Point, gradient] {
	return rdd.Aggregator[momentsParam, rdd.Point, gradient]{
		Zero:     func(p momentsParam) gradient { return gradient{Sum: make([]float64, 2*p.Features)} },
		AddBatch: addMoments,
		Merge:    mergeGradient,
		Scale:    scaleGradient,
	}
}

func addMoments(g gradient, p momentsParam, b *rdd.Batch) gradient {
	for _, r := range b.Rows {
		if b.Labels[r] == p.Positive {
			g.Coef++
		}
	}
	sum, square := g.Sum[:p.Features], g.Sum[p.Features:]
	if b.X32 != nil {
		addSquares(sum, square, b, b.X32)
	} else {
		addSquares(sum, square, b, b.X64)
	}
	return g
}

// addSquares adds the rows of a batch, and their squares, by feature.
func addSquares[T kernel.Float](sum, square []float64, b *rdd.Batch, x []T) {
	d := len(sum)
	for _, r := range b.Rows {
		if b.Dense() {
			for j, v := range x[int(r)*d : int(r)*d+d] {
				sum[j] += float64(v)
				square[j] = math.FMA(float64(v), float64(v), square[j])
			}
			continue
		}
		for k := b.Offsets[r]; k < b.Offsets[r+1]; k++ {
			j, v := b.Indices[k], float64(x[k])
			sum[j] += v
			square[j] = math.FMA(v, v, square[j])
		}
	}
}
