package mllib

import (
	"encoding/binary"
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
		for _, v := range x {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	return out
}

// getFloats reads floats, at least `least` of them.
func getFloats(raw []byte, least int) ([]float64, error) {
	if len(raw)%8 != 0 || len(raw) < 8*least {
		return nil, fmt.Errorf("%d bytes are not the numbers of a model", len(raw))
	}
	v := make([]float64, len(raw)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
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

// batchRows is how many rows are folded together: the cache misses of looking
// up their labels overlap.
const batchRows = 256

// scratch is the working space of a batch.
type scratch struct{ z, y, coef, loss [batchRows]float64 }

// sparseBlock is how many sparse rows are in work between the two times that
// each is read.
const sparseBlock = 16

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
	for from := 0; from < len(b.Rows); from += batchRows {
		g = addLogisticRows(g, p, b, b.Rows[from:min(from+batchRows, len(b.Rows))], wantSum)
	}
	return g
}

func addLogisticRows(g gradient, p linearParam, b *rdd.Batch, rows []int32, wantSum bool) gradient {
	var s scratch
	for i, r := range rows {
		if b.Labels[r] == p.Positive {
			s.y[i] = 1
		}
	}
	n := len(rows)
	switch {
	case !wantSum:
		margins(s.z[:n], p, b, rows)
		kernel.Logistic(s.coef[:n], s.loss[:n], s.z[:n], s.y[:n])
	case b.Dense() && b.X32 != nil:
		kernel.LogisticGradient(g.Sum, s.coef[:n], s.loss[:n], s.z[:n], p.W, p.Bias, b.X32, rows, s.y[:n])
	case b.Dense():
		kernel.LogisticGradient(g.Sum, s.coef[:n], s.loss[:n], s.z[:n], p.W, p.Bias, b.X64, rows, s.y[:n])
	default:
		addSparse(g.Sum, p, b, rows, &s)
	}
	for i := range n {
		g.Loss += s.loss[i]
		g.LossSq = math.FMA(s.loss[i], s.loss[i], g.LossSq)
		g.Coef += s.coef[i]
	}
	return g
}

// addSparse folds sparse rows, some at a time.
func addSparse(sum []float64, p linearParam, b *rdd.Batch, rows []int32, s *scratch) {
	for from := 0; from < len(rows); from += sparseBlock {
		to := min(from+sparseBlock, len(rows))
		margins(s.z[from:to], p, b, rows[from:to])
		kernel.Logistic(s.coef[from:to], s.loss[from:to], s.z[from:to], s.y[from:to])
		if b.X32 != nil {
			kernel.SparseAccumulate(sum, s.coef[from:to], sparseOf(b, b.X32), rows[from:to])
		} else {
			kernel.SparseAccumulate(sum, s.coef[from:to], sparseOf(b, b.X64), rows[from:to])
		}
	}
}

func sparseOf[T kernel.Float](b *rdd.Batch, values []T) kernel.Sparse[T] {
	return kernel.Sparse[T]{Offsets: b.Offsets, Indices: b.Indices, Values: values}
}

// margins computes z = w·x + bias for some rows of a batch.
func margins(z []float64, p linearParam, b *rdd.Batch, rows []int32) {
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Dots(z, p.W, b.X32, rows)
	case b.Dense():
		kernel.Dots(z, p.W, b.X64, rows)
	case b.X32 != nil:
		kernel.SparseDots(z, p.W, sparseOf(b, b.X32), rows)
	default:
		kernel.SparseDots(z, p.W, sparseOf(b, b.X64), rows)
	}
	for i := range z {
		z[i] += p.Bias
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
