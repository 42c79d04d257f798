package mllib

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

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
