package mllib

import (
	"math"
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// linearParam is the parameter of a pass over a linear model: one weight a
// feature on the scale of the data, the intercept, the label that counts as 1,
// the width of a smoothed hinge, the weights of rows with label 0 and 1 (zeros are
// ones), and what second moments are taken about (nil is zero).
type linearParam struct {
	W        []float64
	Bias     float64
	Positive float64
	Width    float64
	Weights  [2]float64
	Shift    []float64
}

// paramHead is how many numbers come before W.
const paramHead = 6

// MarshalBinary lays the parameter out as floats.
func (p linearParam) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(p.W)+len(p.Shift)+paramHead))
	return num.PutFloats(out, []float64{p.Bias, p.Positive, p.Width, p.Weights[0], p.Weights[1], float64(len(p.W))}, p.W, p.Shift), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *linearParam) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, paramHead)
	if err != nil {
		return err
	}
	d := int(v[paramHead-1])
	if d < 0 || d > len(v)-paramHead {
		return num.ErrCutShort
	}
	p.Bias, p.Positive, p.Width, p.Weights = v[0], v[1], v[2], [2]float64{v[3], v[4]}
	if p.W, v = v[paramHead:paramHead+d], v[paramHead+d:]; len(v) == d {
		p.Shift = v
	}
	return nil
}

// gradient is the sum over some rows of loss, squared loss, the derivative of
// the loss by the margin, how far the smoothed loss lies above the loss, and, by
// feature, the gradient; and over splits of rows times the square of their mean
// gradient's length.
type gradient struct {
	Loss, LossSq, Coef, Gap, Squares float64
	Sum                              []float64
}

// gradientHead is how many numbers come before Sum.
const gradientHead = 5

func (g *gradient) head() []float64 { return []float64{g.Loss, g.LossSq, g.Coef, g.Gap, g.Squares} }

func (g *gradient) set(v []float64) {
	g.Loss, g.LossSq, g.Coef, g.Gap, g.Squares, g.Sum = v[0], v[1], v[2], v[3], v[4], v[gradientHead:]
}

// losses are the sums that kernels add to.
func (g *gradient) losses() kernel.Losses {
	return kernel.Losses{Loss: g.Loss, Squares: g.LossSq, Coef: g.Coef, Gap: g.Gap}
}

func (g *gradient) setLosses(l kernel.Losses) {
	g.Loss, g.LossSq, g.Coef, g.Gap = l.Loss, l.Squares, l.Coef, l.Gap
}

// MarshalBinary lays the sums out as floats.
func (g gradient) MarshalBinary() ([]byte, error) {
	return num.PutFloats(make([]byte, 0, 8*(len(g.Sum)+gradientHead)), g.head(), g.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (g *gradient) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, gradientHead)
	if err == nil {
		g.set(v)
	}
	return err
}

func mergeGradient(a, b gradient) gradient {
	a.Loss += b.Loss
	a.LossSq += b.LossSq
	a.Coef += b.Coef
	a.Gap += b.Gap
	a.Squares += b.Squares
	kernel.Add(b.Sum, a.Sum)
	return a
}

func scaleGradient(a gradient, f float64) gradient {
	a.Loss *= f
	a.LossSq *= f
	a.Coef *= f
	a.Gap *= f
	kernel.Scale(f, a.Sum)
	return a
}

// rowLoss folds rows under the loss of a configuration. It is used by several
// goroutines.
type rowLoss struct {
	config LinearConfig
	pool   sync.Pool // of *curveWork
}

// of is the loss of a batch's rows under a parameter.
func (r *rowLoss) of(p linearParam, b *rdd.Batch) kernel.Loss {
	return kernel.Loss{Kind: r.config.Loss.kind(), Width: p.Width, Weights: p.Weights, Rows: b.VisitedWeights()}
}

// labels fills y with what the rows of a batch are to be: 0 or 1, or numbers.
func (r *rowLoss) labels(y []float64, p linearParam, b *rdd.Batch) {
	if r.config.regression() {
		kernel.Take(y, b.Labels, b.Rows)
	} else {
		kernel.Match(y, b.Labels, b.Rows, p.Positive)
	}
}

// gradients folds rows into the gradient of the loss.
func (r *rowLoss) gradients() rdd.Aggregator[linearParam, rdd.Point, gradient] {
	return rdd.Aggregator[linearParam, rdd.Point, gradient]{
		Zero:     func(p linearParam) gradient { return gradient{Sum: make([]float64, len(p.W))} },
		AddBatch: r.addGradient,
		Merge:    mergeGradient,
		Scale:    scaleGradient,
		Close: func(g gradient, _ linearParam, rows float64) gradient {
			if g.Squares = 0; rows > 0 {
				g.Squares = num.SquaredLength(g.Sum, []float64{g.Coef}) / rows
			}
			return g
		},
		Weighted: true,
	}
}

// losses folds rows into the loss alone.
func (r *rowLoss) losses() rdd.Aggregator[linearParam, rdd.Point, gradient] {
	return rdd.Aggregator[linearParam, rdd.Point, gradient]{
		Zero: func(linearParam) gradient { return gradient{} },
		AddBatch: func(g gradient, p linearParam, b *rdd.Batch) gradient {
			n := len(b.Rows)
			scratch := b.Scratch(2 * n)
			y, z := scratch[:n], scratch[n:]
			r.labels(y, p, b)
			dots(z, p.W, b, b.Rows)
			acc := g.losses()
			acc.Add(r.of(p, b), z, p.Bias, y)
			g.setLosses(acc)
			return g
		},
		Merge:    mergeGradient,
		Scale:    scaleGradient,
		Weighted: true,
	}
}

func (r *rowLoss) addGradient(g gradient, p linearParam, b *rdd.Batch) gradient {
	prefetch(p, b)
	y, f := b.Scratch(len(b.Rows)), r.of(p, b)
	r.labels(y, p, b)
	acc := g.losses()
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Gradient(&acc, f, g.Sum, p.W, p.Bias, b.X32, b.Rows, y)
	case b.Dense():
		kernel.Gradient(&acc, f, g.Sum, p.W, p.Bias, b.X64, b.Rows, y)
	case b.X32 != nil:
		kernel.SparseGradient(&acc, f, g.Sum, p.W, p.Bias, sparseOf(b, b.X32), b.Rows, y)
	default:
		kernel.SparseGradient(&acc, f, g.Sum, p.W, p.Bias, sparseOf(b, b.X64), b.Rows, y)
	}
	g.setLosses(acc)
	return g
}

// addScores appends margin, label and weight of every row.
func (r *rowLoss) addScores(out []float64, p linearParam, b *rdd.Batch) []float64 {
	n := len(b.Rows)
	z, y := make([]float64, n), make([]float64, n)
	dots(z, p.W, b, b.Rows)
	r.labels(y, p, b)
	for i := range z {
		out = append(out, z[i]+p.Bias, y[i], b.WeightOf(b.Rows[i]))
	}
	return out
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
	Shift    []float64 // that moments are taken about; nil is zero
}

// near is a row of dense data, about which its moments lose no digits to how far it
// lies from zero.
func near(meta *pack.Meta, sample []rdd.Point) []float64 {
	if meta.Layout != pack.DenseLayout || len(sample) == 0 {
		return nil
	}
	return sample[0].Values
}

// momentsAggregator sums x and x² by feature, and, in Coef, labels: those of
// rows that count as 1, or, of a regression, their values; all times the rows'
// weights.
func momentsAggregator(c LinearConfig) rdd.Aggregator[momentsParam, rdd.Point, gradient] {
	add := func(g gradient, p momentsParam, b *rdd.Batch) gradient {
		for _, r := range b.Rows {
			switch {
			case c.regression():
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
	return rdd.Aggregator[momentsParam, rdd.Point, gradient]{
		Zero:     func(p momentsParam) gradient { return gradient{Sum: make([]float64, 2*p.Features)} },
		AddBatch: add,
		Merge:    mergeGradient,
		Scale:    scaleGradient,
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
