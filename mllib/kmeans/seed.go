package kmeans

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// seeding chooses centres among weighted points: greedy k-means++ (Arthur &
// Vassilvitskii 2007), then, by turns, swaps of a centre for a point that is drawn by
// its distance from the centres, kept where they lower the cost (Lattanzi & Sohler
// 2019), and some of Lloyd's steps. Swaps take a centre from where there are two to
// where there is none, which Lloyd's steps cannot.
type seeding struct {
	k, d   int
	x      []float64 // points, row-major, about their mean
	mean   []float64
	weight []float64
	norm   []float64 // squared lengths
	rows   []int32
	rng    *rand.Rand

	at      []float64 // centres, row-major
	near    []int32   // nearest centre of each point
	squared []float64 // distance from it
	second  []float64 // and from the one after it
	index   kernel.Nearest
	dist    []float64 // from the point in hand
	gone    []float64 // from the centre that is taken away
}

// newSeeding prepares the choice of k centres.
func newSeeding(points [][]float64, weight []float64, k int, seed uint64) *seeding {
	s := &seeding{k: k, d: len(points[0]), weight: weight, rng: rand.New(rand.NewPCG(seed, 0))}
	s.center(points)
	n := len(points)
	s.norm, s.rows = make([]float64, n), make([]int32, n)
	s.near, s.squared, s.second = make([]int32, n), make([]float64, n), make([]float64, n)
	s.dist, s.gone = make([]float64, n), make([]float64, n)
	for i := range points {
		s.rows[i] = int32(i)
		s.norm[i] = num.SumOfSquares(s.point(i))
	}
	return s
}

// center lays points out about their mean, so that little is lost to rounding in
// distances.
func (s *seeding) center(points [][]float64) {
	s.mean = make([]float64, s.d)
	var total float64
	for i, p := range points {
		kernel.Axpy(s.weight[i], p, s.mean)
		total += s.weight[i]
	}
	kernel.Scale(1/max(total, math.SmallestNonzeroFloat64), s.mean)
	s.x = make([]float64, 0, len(points)*s.d)
	for _, p := range points {
		for j, v := range p {
			s.x = append(s.x, v-s.mean[j])
		}
	}
}

func (s *seeding) point(i int) []float64 { return s.x[i*s.d : (i+1)*s.d] }

// distances fills out with the squared distances of all points from one place.
func (s *seeding) distances(out, place []float64) {
	kernel.Dots(out, place, s.x, s.rows)
	own := num.SumOfSquares(place)
	for i, z := range out {
		out[i] = max(0, math.FMA(-2, z, s.norm[i]+own))
	}
}

// centres returns the places chosen: at most k, fewer where there are not as
// many different points. Searching takes a bounded number of swaps.
func (s *seeding) centres(swaps int) [][]float64 {
	chosen := s.plusPlus()
	s.k = chosen
	for phase := 0; phase < seedPhases && chosen > 1; phase++ {
		s.assign(s.rows)
		if s.search(swaps/seedPhases) == 0 && phase > 0 {
			break
		}
		s.lloyd(refineSteps)
	}
	out := make([][]float64, chosen)
	for c := range out {
		out[c] = slices.Clone(s.at[c*s.d : (c+1)*s.d])
		kernel.Axpy(1, s.mean, out[c])
	}
	return out
}

// seedPhases is how often swaps and Lloyd's steps take turns, and refineSteps how many
// steps those are.
const (
	seedPhases  = 3
	refineSteps = 20
)

// plusPlus chooses points by greedy k-means++: each is the best of 2 + ⌊ln k⌋ that are
// drawn with a chance that grows with weight and squared distance from those before
// it. It returns how many.
func (s *seeding) plusPlus() int {
	tries := 2 + int(kernel.Log(float64(s.k)))
	copy(s.squared, s.weight) // the first is drawn by weight
	for i := range s.second {
		s.second[i] = math.Inf(1) // distance from the nearest of those chosen
	}
	best, left := make([]float64, len(s.rows)), make([]float64, len(s.rows))
	for chosen := range s.k {
		at, least := -1, math.Inf(1)
		for range tries {
			c := drawFrom(s.squared, s.rng)
			if c < 0 {
				return chosen
			}
			if sum := s.farFrom(left, c); sum < least {
				best, left, least, at = left, best, sum, c
			}
		}
		for i, v := range best {
			s.second[i], s.squared[i] = v, float64(v*s.weight[i])
		}
		s.at = append(s.at, s.point(at)...)
	}
	return s.k
}

// farFrom fills out with the distances from the nearest centre after a point is
// chosen, and returns their weighted sum.
func (s *seeding) farFrom(out []float64, point int) (sum float64) {
	s.distances(out, s.point(point))
	for i, v := range out {
		out[i] = min(v, s.second[i])
		sum += float64(s.weight[i] * out[i])
	}
	return sum
}

// drawFrom draws an index with a chance that grows with its weight; −1 where all
// are zero.
func drawFrom(weight []float64, rng *rand.Rand) int {
	left, last := float64(rng.Float64()*num.Sum(weight)), -1
	for i, w := range weight {
		if w > 0 {
			if last = i; left < w {
				return i
			}
			left -= w
		}
	}
	return last
}

// assign finds the two centres that are nearest to some points.
func (s *seeding) assign(rows []int32) {
	s.index.Set(s.at, s.k, s.d, nil)
	at, squared, second := make([]int32, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
	kernel.FindNearestTwo(&s.index, at, squared, second, s.x, rows, nil, nil)
	for k, i := range rows {
		s.near[i], s.squared[i], s.second[i] = at[k], squared[k], second[k]
	}
}

// search tries n swaps and returns how many were kept.
func (s *seeding) search(swaps int) (kept int) {
	far, loss := make([]float64, len(s.rows)), make([]float64, s.k)
	for range swaps {
		var cost float64
		for i, v := range s.squared {
			far[i] = float64(v * s.weight[i])
			cost += far[i]
		}
		p := drawFrom(far, s.rng)
		if p < 0 {
			return kept
		}
		s.distances(s.dist, s.point(p))
		if c, after := s.bestSwap(loss); after < cost-float64(leastGain*cost) {
			s.swap(c, p)
			kept++
		}
	}
	return kept
}

// leastGain is what a swap must lower the cost by, relatively.
const leastGain = 1e-5

// bestSwap returns the centre that the point in hand best takes the place of, and the
// cost that is then left.
func (s *seeding) bestSwap(loss []float64) (best int, after float64) {
	clear(loss)
	var total float64
	for i, d := range s.dist {
		with := min(d, s.squared[i])
		total += float64(s.weight[i] * with)
		loss[s.near[i]] += float64(s.weight[i] * (min(d, s.second[i]) - with))
	}
	for c, l := range loss {
		if l < loss[best] {
			best = c
		}
	}
	return best, total + loss[best]
}

// swap moves a centre to a point. Points that had it for their nearest or second one
// look for new ones; to the others only the new place can be nearer.
func (s *seeding) swap(c, p int) {
	s.distances(s.gone, s.at[c*s.d:(c+1)*s.d])
	copy(s.at[c*s.d:], s.point(p))
	var again []int32
	for i, d := range s.dist {
		switch {
		case int(s.near[i]) == c || s.gone[i] <= float64(s.second[i]*(1+1e-6)):
			again = append(again, int32(i))
		case d < s.squared[i]:
			s.near[i], s.squared[i], s.second[i] = int32(c), d, s.squared[i]
		case d < s.second[i]:
			s.second[i] = d
		}
	}
	s.assign(again)
}

// lloyd takes some of Lloyd's steps on the points, fewer where nothing changes.
func (s *seeding) lloyd(steps int) {
	at, squared := make([]int32, len(s.rows)), make([]float64, len(s.rows))
	for step := range steps {
		s.index.Set(s.at, s.k, s.d, nil)
		before := slices.Clone(at)
		kernel.FindNearest(&s.index, at, squared, s.x, s.rows, nil, nil)
		if step > 0 && slices.Equal(before, at) {
			return
		}
		s.toMeans(at)
	}
}

// toMeans moves centres to the means of their points.
func (s *seeding) toMeans(at []int32) {
	sum, total := make([]float64, len(s.at)), make([]float64, s.k)
	for i, c := range at {
		total[c] += s.weight[i]
		kernel.Axpy(s.weight[i], s.point(i), sum[int(c)*s.d:(int(c)+1)*s.d])
	}
	for c, n := range total {
		for j := c * s.d; n > 0 && j < (c+1)*s.d; j++ {
			s.at[j] = sum[j] / n
		}
	}
}
