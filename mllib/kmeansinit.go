package mllib

import (
	"math"
	"math/rand/v2"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
)

// k-means‖ (Bahmani et al.): a few passes, each of which draws rows with a chance
// that grows with their distance from what was drawn before; what was drawn is
// weighted by the rows that are nearest to it and reduced to k centres by greedy
// k-means++.

// drawRounds is how many passes draw, and drawFactor how many rows a pass draws,
// in k.
const (
	drawRounds = 2
	drawFactor = 2
)

// drawParam is the parameter of a pass that draws rows.
type drawParam struct {
	centres
	Chance float64 // of a row, by squared distance
	Seed   uint64
}

// MarshalBinary lays the parameter out as floats.
func (p drawParam) MarshalBinary() ([]byte, error) {
	raw, err := p.centres.MarshalBinary()
	return append(putFloats(nil, []float64{p.Chance, math.Float64frombits(p.Seed)}), raw...), err
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *drawParam) UnmarshalBinary(raw []byte) error {
	v, err := getFloats(raw, 2)
	if err != nil {
		return err
	}
	p.Chance, p.Seed = v[0], math.Float64bits(v[1])
	return p.centres.UnmarshalBinary(raw[16:])
}

// drawn are rows that were drawn, and how many were looked at.
type drawn struct {
	Seen int64
	Rows [][]float64
}

// draw takes each row with its chance. What decides is a hash of the seed, the
// row and its place in its split, so that it depends on the data only.
func (a *assigner) draw(d drawn, p drawParam, b *rdd.Batch) drawn {
	w := a.work(len(b.Rows))
	defer a.pool.Put(w)
	a.assign(w, &p.centres, b)
	for i, r := range b.Rows {
		d.Seen++
		if chance := float64(float64(p.Chance*b.WeightOf(r)) * w.squared[i]); chance <= 0 || drawNumber(p.Seed, d.Seen, b, int(r)) >= chance {
			continue
		}
		row := make([]float64, p.D)
		times := 1.0
		if a.cosine {
			times = w.scale[i]
		}
		addTimes(row, times, b, int(r))
		d.Rows = append(d.Rows, row)
	}
	return d
}

// drawNumber is a number in [0, 1) that is as good as drawn.
func drawNumber(seed uint64, place int64, b *rdd.Batch, r int) float64 {
	h := mix(seed ^ mix(uint64(place)))
	from, to := r*b.Features, (r+1)*b.Features
	if !b.Dense() {
		from, to = int(b.Offsets[r]), int(b.Offsets[r+1])
	}
	for k := from; k < min(to, from+8); k++ {
		v := 0.0
		if b.X32 != nil {
			v = float64(b.X32[k])
		} else {
			v = b.X64[k]
		}
		h = mix(h ^ math.Float64bits(v))
	}
	return float64(h>>11) / (1 << 53)
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// plusPlus reduces weighted points to k of them by greedy k-means++ (Arthur and
// Vassilvitskii): each is the best of 2 + ⌊ln k⌋ that are drawn with a chance that
// grows with weight and squared distance from those before it. Fewer than k come
// back where there are not as many different points.
func plusPlus(points [][]float64, weight []float64, k int, seed uint64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	tries := 2 + int(kernel.Log(float64(k)))
	far := make([]float64, len(points)) // weighted squared distance from the nearest chosen
	copy(far, weight)
	var chosen [][]float64
	for len(chosen) < k {
		var best []float64
		var at int
		least := math.Inf(1)
		for range tries {
			c := drawFrom(far, rng)
			if c < 0 {
				return chosen
			}
			if left, sum := farFrom(points, weight, far, points[c], len(chosen) == 0); sum < least {
				best, least, at = left, sum, c
			}
		}
		far, chosen = best, append(chosen, points[at])
	}
	return chosen
}

// drawFrom draws an index with a chance that grows with its weight; −1 where all
// are zero.
func drawFrom(weight []float64, rng *rand.Rand) int {
	var total float64
	for _, w := range weight {
		total += w
	}
	left, last := float64(rng.Float64()*total), -1
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

// farFrom is far after another point is chosen, and its sum.
func farFrom(points [][]float64, weight, far []float64, point []float64, first bool) (left []float64, sum float64) {
	left = make([]float64, len(points))
	for i, p := range points {
		var sq float64
		for j, v := range p {
			sq = math.FMA(v-point[j], v-point[j], sq)
		}
		left[i] = float64(weight[i] * sq)
		if !first {
			left[i] = min(left[i], far[i])
		}
		sum += left[i]
	}
	return left, sum
}

// refineSteps is how many of Lloyd's steps are taken on the candidates.
const refineSteps = 20

// refined are centres after some of Lloyd's steps on weighted points.
func refined(centres, points [][]float64, weight []float64) [][]float64 {
	k, d := len(centres), len(centres[0])
	var near kernel.Nearest
	x, rows := make([]float64, 0, len(points)*d), make([]int32, len(points))
	for i, p := range points {
		x, rows[i] = append(x, p...), int32(i)
	}
	at, squared := make([]int32, len(points)), make([]float64, len(points))
	flat := make([]float64, 0, k*d)
	for _, c := range centres {
		flat = append(flat, c...)
	}
	for range refineSteps {
		near.Set(flat, k, d, nil)
		kernel.FindNearest(&near, at, squared, x, rows, nil, nil)
		sum, total := make([]float64, k*d), make([]float64, k)
		for i, c := range at {
			total[c] += weight[i]
			kernel.Axpy(weight[i], points[i], sum[int(c)*d:(int(c)+1)*d])
		}
		for c, n := range total {
			for j := range d {
				if n > 0 {
					flat[c*d+j] = sum[c*d+j] / n
				}
			}
		}
	}
	out := make([][]float64, k)
	for c := range out {
		out[c] = flat[c*d : (c+1)*d]
	}
	return out
}
