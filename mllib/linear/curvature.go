package linear

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// curvature is a gradient and, beside it, the upper triangle of Σ c·x̃·x̃ᵀ over
// some rows, row-major, of d+1 rows and columns: c is the second derivative of
// the row's loss by its margin, x̃ the row's features minus the parameter's Shift
// and a 1 after them.
type curvature struct {
	fold.Gradient
	H      []float64
	Spread float64 // Σ of the squares of the derivatives by the margin, times weights as they are
}

// MarshalBinary lays the sums out as floats.
func (c curvature) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(c.H)+len(c.Sum)+7))
	return num.PutFloats(out, []float64{float64(len(c.Sum)), c.Spread}, c.Head(), c.Sum, c.H), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (c *curvature) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 2+fold.GradientHead)
	if err != nil {
		return err
	}
	d := int(v[0])
	c.Spread = v[1]
	if v = v[2:]; d < 0 || d > len(v)-fold.GradientHead {
		return num.ErrCutShort
	}
	c.Set(v[:fold.GradientHead+d])
	c.H = v[fold.GradientHead+d:]
	return nil
}

// curvatures folds rows into the curvature of the loss.
func (r *rowLoss) curvatures() rdd.Aggregator[linearParam, rdd.Point, curvature] {
	return rdd.Aggregator[linearParam, rdd.Point, curvature]{
		Zero: func(p linearParam) curvature {
			d := len(p.W)
			return curvature{Gradient: fold.Gradient{Sum: make([]float64, d)}, H: make([]float64, (d+1)*(d+1))}
		},
		AddBatch: r.addCurvature,
		Merge: func(a, b curvature) curvature {
			a.Gradient = fold.MergeGradient(a.Gradient, b.Gradient)
			kernel.Add(b.H, a.H)
			a.Spread += b.Spread
			return a
		},
		Scale: func(a curvature, f float64) curvature {
			a.Gradient = fold.ScaleGradient(a.Gradient, f)
			kernel.Scale(f, a.H)
			a.Spread *= f
			return a
		},
		Weighted: true,
	}
}

func (r *rowLoss) addCurvature(c curvature, p linearParam, b *rdd.Batch) curvature {
	n, f := len(b.Rows), r.of(p, b)
	scratch := b.Scratch(5 * n)
	y, z, coef, loss, curve := scratch[:n], scratch[n:2*n], scratch[2*n:3*n], scratch[3*n:4*n], scratch[4*n:5*n]
	r.labels(y, p, b)
	fold.Dots(z, p.W, b, b.Rows)
	acc := c.Losses()
	f.Derive(coef, loss, z, p.Bias, y)
	acc.AddDerived(f, coef, loss, z, p.Bias, y)
	f.Curve(curve, coef, z, p.Bias, y)
	c.Spread += kernel.Dot(coef, coef)
	c.SetLosses(acc)
	fold.Accumulate(c.Sum, coef, b)
	work, _ := r.pool.Get().(*curveWork)
	if work == nil {
		work = &curveWork{}
	}
	work.addGram(c.H, curve, p, b)
	r.pool.Put(work)
	return c
}

// curveWork is what addCurvature keeps from one batch to the next.
type curveWork struct {
	products kernel.Product
	rows     []int32
}

// addGram adds the products of the rows whose loss is curved: few of them, where
// the loss is a hinge.
func (w *curveWork) addGram(h, curve []float64, p linearParam, b *rdd.Batch) {
	w.rows = w.rows[:0]
	for i, c := range curve {
		if c != 0 {
			curve[len(w.rows)] = c
			w.rows = append(w.rows, b.Rows[i])
		}
	}
	curve = curve[:len(w.rows)]
	switch {
	case b.Dense() && b.X32 != nil:
		kernel.Gram(&w.products, h, curve, b.X32, w.rows, p.Shift, len(p.W))
	case b.Dense():
		kernel.Gram(&w.products, h, curve, b.X64, w.rows, p.Shift, len(p.W))
	case b.X32 != nil:
		kernel.SparseGram(h, curve, fold.SparseOf(b, b.X32), w.rows, len(p.W))
	default:
		kernel.SparseGram(h, curve, fold.SparseOf(b, b.X64), w.rows, len(p.W))
	}
}
