package train

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// Noise returns the standard error of the mean gradient of a number of splits, as a part of the length of the
// objective's gradient; see Signal.
func Noise(splits int, squares, weight, norm float64, sums ...[]float64) float64 {
	return apart(squares, weight, sums) / math.Sqrt(float64(splits)) / norm
}

// Signal lets the engine know how far apart the mean gradients of a step's splits
// lay, from the sums that the step came to, and how long the gradient of the
// objective was, all per unit of the rows' weight.
func Signal(s *rdd.Session, squares, weight, norm float64, sums ...[]float64) {
	s.Signal(apart(squares, weight, sums), norm)
}

// apart returns the standard deviation of splits' mean gradients.
func apart(squares, weight float64, sums [][]float64) float64 {
	mean := num.SquaredLength(sums...) / float64(weight*weight)
	return math.Sqrt(max(0, squares/weight-mean))
}
