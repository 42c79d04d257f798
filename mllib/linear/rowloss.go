package linear

import (
	"sync"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
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
	return num.PutFloats(out, []float64{p.Bias, p.Positive, p.Width, p.Weights[0], p.Weights[1], float64(len(p.W))},
		p.W, p.Shift), nil
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

// rowLoss folds rows under the loss of a configuration. It is used by several
// goroutines.
type rowLoss struct {
	config Config
	pool   sync.Pool // of *curveWork
}

// of returns the loss of a batch's rows under a parameter.
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
func (r *rowLoss) gradients() rdd.Aggregator[linearParam, rdd.Point, fold.Gradient] {
	return rdd.Aggregator[linearParam, rdd.Point, fold.Gradient]{
		Zero:     func(p linearParam) fold.Gradient { return fold.Gradient{Sum: make([]float64, len(p.W))} },
		AddBatch: r.addGradient,
		Merge:    fold.MergeGradient,
		Scale:    fold.ScaleGradient,
		Close: func(g fold.Gradient, _ linearParam, rows float64) fold.Gradient {
			if g.Squares = 0; rows > 0 {
				g.Squares = num.SquaredLength(g.Sum, []float64{g.Coef}) / rows
			}
			return g
		},
		Weighted: true,
	}
}

// losses folds rows into the loss alone.
func (r *rowLoss) losses() rdd.Aggregator[linearParam, rdd.Point, fold.Gradient] {
	return rdd.Aggregator[linearParam, rdd.Point, fold.Gradient]{
		Zero: func(linearParam) fold.Gradient { return fold.Gradient{} },
		AddBatch: func(g fold.Gradient, p linearParam, b *rdd.Batch) fold.Gradient {
			n := len(b.Rows)
			scratch := b.Scratch(2 * n)
			y, z := scratch[:n], scratch[n:]
			r.labels(y, p, b)
			fold.Dots(z, p.W, b, b.Rows)
			acc := g.Losses()
			acc.Add(r.of(p, b), z, p.Bias, y)
			g.SetLosses(acc)
			return g
		},
		Merge:    fold.MergeGradient,
		Scale:    fold.ScaleGradient,
		Weighted: true,
	}
}

func (r *rowLoss) addGradient(g fold.Gradient, p linearParam, b *rdd.Batch) fold.Gradient {
	prefetch(p, b)
	y, f := b.Scratch(len(b.Rows)), r.of(p, b)
	r.labels(y, p, b)
	acc := g.Losses()
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Gradient(&acc, f, g.Sum, p.W, p.Bias, b.X32, b.Rows, y)
	case b.Dense():
		kernel.Gradient(&acc, f, g.Sum, p.W, p.Bias, b.X64, b.Rows, y)
	case b.X32 != nil:
		kernel.SparseGradient(&acc, f, g.Sum, p.W, p.Bias, fold.SparseOf(b, b.X32), b.Rows, y)
	default:
		kernel.SparseGradient(&acc, f, g.Sum, p.W, p.Bias, fold.SparseOf(b, b.X64), b.Rows, y)
	}
	g.SetLosses(acc)
	return g
}

// addScores appends margin, label and weight of every row.
func (r *rowLoss) addScores(out []float64, p linearParam, b *rdd.Batch) []float64 {
	n := len(b.Rows)
	z, y := make([]float64, n), make([]float64, n)
	fold.Dots(z, p.W, b, b.Rows)
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
