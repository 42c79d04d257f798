package fold

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Gradient is the sum over some rows of loss, squared loss, the derivative of
// the loss by the margin, how far the smoothed loss is above the loss, and, by
// feature, the gradient; and over splits of rows times the square of their mean
// gradient's length.
type Gradient struct {
	Loss, LossSq, Coef, Gap, Squares float64
	Sum                              []float64
}

// GradientHead is how many numbers come before Sum.
const GradientHead = 5

// Head returns the numbers that come before Sum.
func (g *Gradient) Head() []float64 { return []float64{g.Loss, g.LossSq, g.Coef, g.Gap, g.Squares} }

// Set takes back Head, and Sum after it.
func (g *Gradient) Set(v []float64) {
	g.Loss, g.LossSq, g.Coef, g.Gap, g.Squares, g.Sum = v[0], v[1], v[2], v[3], v[4], v[GradientHead:]
}

// Losses returns the sums that kernels add to.
func (g *Gradient) Losses() kernel.Losses {
	return kernel.Losses{Loss: g.Loss, Squares: g.LossSq, Coef: g.Coef, Gap: g.Gap}
}

// SetLosses takes back what kernels have added to.
func (g *Gradient) SetLosses(l kernel.Losses) {
	g.Loss, g.LossSq, g.Coef, g.Gap = l.Loss, l.Squares, l.Coef, l.Gap
}

// MarshalBinary lays the sums out as floats.
func (g Gradient) MarshalBinary() ([]byte, error) {
	return num.PutFloats(make([]byte, 0, 8*(len(g.Sum)+GradientHead)), g.Head(), g.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (g *Gradient) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, GradientHead)
	if err == nil {
		g.Set(v)
	}
	return err
}

// MergeGradient adds b to a.
func MergeGradient(a, b Gradient) Gradient {
	a.Loss += b.Loss
	a.LossSq += b.LossSq
	a.Coef += b.Coef
	a.Gap += b.Gap
	a.Squares += b.Squares
	kernel.Add(b.Sum, a.Sum)
	return a
}

// ScaleGradient makes the sums stand for f times as many rows.
func ScaleGradient(a Gradient, f float64) Gradient {
	a.Loss *= f
	a.LossSq *= f
	a.Coef *= f
	a.Gap *= f
	kernel.Scale(f, a.Sum)
	return a
}
