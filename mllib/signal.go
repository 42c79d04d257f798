package mllib

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// signal lets the engine know how far apart the mean gradients of a step's splits
// lay, from the sums that the step came to, and how long the gradient of the
// objective was, all per unit of the rows' weight.
func signal(s *rdd.Session, squares, weight, norm float64, sums ...[]float64) {
	mean := num.SquaredLength(sums...) / float64(weight*weight)
	s.Signal(math.Sqrt(max(0, squares/weight-mean)), norm)
}

// steepness is the length of the objective's gradient at v on the scale of the
// data: with an L1 penalty that of its shortest subgradient.
func (p *problem) steepness(grad, v []float64) float64 {
	var sq float64
	for j, g := range grad {
		if p.lasso != nil {
			switch l := p.lasso[j]; {
			case v[j] > 0:
				g += l
			case v[j] < 0:
				g -= l
			default:
				g = num.Soft(g, l)
			}
		}
		if j < len(p.scale) {
			g *= p.scale[j]
		}
		sq = math.FMA(g, g, sq)
	}
	return math.Sqrt(sq)
}
