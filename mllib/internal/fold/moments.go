package fold

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// MomentsParam is the parameter of the pass that sums moments: the number of
// features, and the label that counts as 1.
type MomentsParam struct {
	Features int
	Positive float64
	Shift    []float64 // that moments are taken about; nil is zero
}

// Near returns a row of dense data, about which its moments lose no digits to how
// far it is from zero.
func Near(meta *pack.Meta, sample []rdd.Point) []float64 {
	if meta.Layout != pack.DenseLayout || len(sample) == 0 {
		return nil
	}
	return sample[0].Values
}

// MomentsAggregator sums x and x² by feature, and, in Coef, labels: those of
// rows that count as 1, or, of a regression, their values; all times the rows'
// weights.
func MomentsAggregator(regression bool) rdd.Aggregator[MomentsParam, rdd.Point, Gradient] {
	add := func(g Gradient, p MomentsParam, b *rdd.Batch) Gradient {
		for _, r := range b.Rows {
			switch {
			case regression:
				g.Coef = math.FMA(b.WeightOf(r), b.Labels[r], g.Coef)
			case b.Labels[r] == p.Positive:
				g.Coef += b.WeightOf(r)
			}
		}
		sum, square := g.Sum[:p.Features], g.Sum[p.Features:]
		if b.X32 != nil {
			addSquares(sum, square, p.Shift, b, b.X32)
		} else {
			addSquares(sum, square, p.Shift, b, b.X64)
		}
		return g
	}
	return rdd.Aggregator[MomentsParam, rdd.Point, Gradient]{
		Zero:     func(p MomentsParam) Gradient { return Gradient{Sum: make([]float64, 2*p.Features)} },
		AddBatch: add,
		Merge:    MergeGradient,
		Scale:    ScaleGradient,
		Weighted: true,
	}
}

// addSquares adds the rows of a batch, minus a shift where they are dense, and their
// squares, by feature, all times the rows' weights.
func addSquares[T kernel.Float](sum, square, shift []float64, b *rdd.Batch, x []T) {
	d := len(sum)
	for _, r := range b.Rows {
		w := b.WeightOf(r)
		if b.Dense() && shift != nil {
			shift = shift[:d]
			for j, v := range x[int(r)*d : int(r)*d+d] {
				u := float64(v) - shift[j]
				wu := float64(w * u)
				sum[j] += wu
				square[j] = math.FMA(wu, u, square[j])
			}
			continue
		}
		if b.Dense() {
			for j, v := range x[int(r)*d : int(r)*d+d] {
				wv := float64(w * float64(v))
				sum[j] += wv
				square[j] = math.FMA(wv, float64(v), square[j])
			}
			continue
		}
		for k := b.Offsets[r]; k < b.Offsets[r+1]; k++ {
			j, v := b.Indices[k], float64(x[k])
			wv := float64(w * v)
			sum[j] += wv
			square[j] = math.FMA(wv, v, square[j])
		}
	}
}

// Moments are those of the features, and what is known of labels.
type Moments struct {
	Weight   float64 // of all rows
	Labels   float64 // of rows that count as 1, or the sum of labels
	Mean     []float64
	Variance []float64 // population
}

// MomentsOf returns the moments of rows of a weight from their sums about a shift.
func MomentsOf(weight float64, g Gradient, shift []float64) Moments {
	d := len(g.Sum) / 2
	m := Moments{Weight: weight, Labels: g.Coef, Mean: make([]float64, d), Variance: make([]float64, d)}
	for j := range d {
		mean := g.Sum[j] / weight
		m.Variance[j] = max(0, math.FMA(-mean, mean, g.Sum[d+j]/weight))
		if m.Mean[j] = mean; shift != nil {
			m.Mean[j] += shift[j]
		}
	}
	return m
}
