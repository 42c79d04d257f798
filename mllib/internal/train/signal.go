package train

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// Signal lets the engine know how far apart the mean gradients of a step's splits
// lay, from the sums that the step came to, and how long the gradient of the
// objective was, all per unit of the rows' weight.
func Signal(s *rdd.Session, squares, weight, norm float64, sums ...[]float64) {
	mean := num.SquaredLength(sums...) / float64(weight*weight)
	s.Signal(math.Sqrt(max(0, squares/weight-mean)), norm)
}
