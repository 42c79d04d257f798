package fold

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// ClassSums are the sums over some rows of loss, squared loss, rows whose label has
// the highest margin, the loss's derivatives by margin, and by weight.
type ClassSums struct {
	Loss, LossSq, Right float64
	Squares             float64 // as Gradient's
	Coef                []float64
	Sum                 []float64 // D × K
}

// TakeNumber adds a row whose prediction is z[0], which becomes the derivative.
func (s *ClassSums) TakeNumber(z []float64, y, weight float64) {
	z[0] -= y
	loss := float64(weight*float64(z[0]*z[0])) / 2
	z[0] *= weight
	s.Loss += loss
	s.LossSq = math.FMA(loss, loss, s.LossSq)
}

// MarshalBinary lays the sums out as floats.
func (s ClassSums) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 8*(len(s.Sum)+len(s.Coef)+5))
	return num.PutFloats(out, []float64{s.Loss, s.LossSq, s.Right, s.Squares, float64(len(s.Coef))}, s.Coef, s.Sum), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *ClassSums) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 5)
	if err != nil {
		return err
	}
	k := int(v[4])
	if k < 0 || len(v) < 5+k {
		return num.ErrCutShort
	}
	s.Loss, s.LossSq, s.Right, s.Squares, s.Coef, s.Sum = v[0], v[1], v[2], v[3], v[5:5+k:5+k], v[5+k:]
	return nil
}

// Close notes the squared length of a split's mean gradient.
func (s ClassSums) Close(rows float64) ClassSums {
	if s.Squares = 0; rows > 0 {
		s.Squares = num.SquaredLength(s.Sum, s.Coef) / rows
	}
	return s
}

// Take adds a row of margins, of which z becomes the derivatives; k is its class. A row
// of no class weighs nothing.
func (s *ClassSums) Take(z []float64, k int, weight float64) {
	top, best := z[0], 0
	for c, v := range z {
		if v > top {
			top, best = v, c
		}
	}
	if k < 0 {
		clear(z)
		return
	}
	own := z[k] - top
	var sum float64
	for c, v := range z {
		z[c] = kernel.ExpNeg(v - top)
		sum += z[c]
	}
	loss := float64(weight * (kernel.Log(sum) - own))
	s.Loss += loss
	s.LossSq = math.FMA(loss, loss, s.LossSq)
	if best == k {
		s.Right += weight
	}
	for c := range z {
		z[c] /= sum
	}
	z[k]--
	if weight != 1 {
		kernel.Scale(weight, z)
	}
	for c := range s.Coef {
		s.Coef[c] += z[c]
	}
}

// TakeRest adds a row of margins, of which z becomes the derivatives, by the squared hinge of each class against the
// others; k is its class. A row of no class weighs nothing.
func (s *ClassSums) TakeRest(z []float64, k int, weight float64) {
	if k < 0 {
		clear(z)
		return
	}
	best := 0
	for c, v := range z {
		if v > z[best] {
			best = c
		}
	}
	if best == k {
		s.Right += weight
	}
	var loss float64
	for c, v := range z {
		sign := -1.0
		if c == k {
			sign = 1
		}
		short := max(0, 1-float64(sign*v))
		loss = math.FMA(short, short, loss)
		z[c] = float64(weight * float64(-2*sign*short))
	}
	loss *= weight
	s.Loss += loss
	s.LossSq = math.FMA(loss, loss, s.LossSq)
	for c := range s.Coef {
		s.Coef[c] += z[c]
	}
}

// BlockRows is how many rows are in work at a time.
const BlockRows = 128

// MergeClasses adds b to a.
func MergeClasses(a, b ClassSums) ClassSums {
	a.Loss, a.LossSq, a.Right, a.Squares = a.Loss+b.Loss, a.LossSq+b.LossSq, a.Right+b.Right, a.Squares+b.Squares
	kernel.Add(b.Coef, a.Coef)
	kernel.Add(b.Sum, a.Sum)
	return a
}

// ScaleClasses makes the sums stand for `by` times as many rows.
func ScaleClasses(a ClassSums, by float64) ClassSums {
	a.Loss, a.LossSq, a.Right = a.Loss*by, a.LossSq*by, a.Right*by
	kernel.Scale(by, a.Coef)
	kernel.Scale(by, a.Sum)
	return a
}
