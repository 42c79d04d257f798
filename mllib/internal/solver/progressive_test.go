package solver

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisyBowl is Σ c·(x − at)²/2 of samples that put the least elsewhere by a law of a deviation.
type noisyBowl struct {
	c, at []float64
	off   float64 // deviation of where one row puts the least
	rows  float64
	rng   *rand.Rand
}

// sample returns objective and gradient at points, of the same sample of a share of the rows.
func (b *noisyBowl) sample(share float64, points ...[]float64) (f []float64, g [][]float64) {
	move := make([]float64, len(b.at))
	if share < 1 {
		for j := range move {
			move[j] = b.off * b.rng.NormFloat64() / math.Sqrt(share*b.rows)
		}
	}
	for _, x := range points {
		var sum float64
		slope := make([]float64, len(x))
		for j := range x {
			d := x[j] - b.at[j] - move[j]
			slope[j] = b.c[j] * d
			sum += b.c[j] * d * d / 2
		}
		f, g = append(f, sum), append(g, slope)
	}
	return f, g
}

// TestSamplesGrowUntilAllRowsEndTheRun: passes over samples come near, those over all rows end at the optimum, and
// samples grow however noise is measured.
func TestSamplesGrowUntilAllRowsEndTheRun(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b := &noisyBowl{rows: 1e5, off: math.Exp(2 * rng.NormFloat64()), rng: rng}
		for range 2 + rng.IntN(8) {
			b.c, b.at = append(b.c, math.Exp(2*rng.NormFloat64())), append(b.at, 3*rng.NormFloat64())
		}
		n := len(b.at)
		q, p := NewProgressive(b.rows), &Point{X: make([]float64, n), Y: make([]float64, n), Step: 0.1}
		noise, passes, last := []float64{0, 0.3, 10, math.NaN()}[seed%4], 0, 0.0
		for q.Share < 1 && passes < 500 {
			if q.Share < last {
				t.Fatalf("seed %d: samples shrink", seed)
			}
			last = q.Share
			f, g := b.sample(q.Share, p.Y, p.X)
			q.Step(p, &Seen{F: f[0], G: g[0], AnchorF: f[1], Anchor: g[1], Noise: noise, Share: q.Share})
			passes++
		}
		near, _ := b.sample(1, p.Y)
		for range 100 {
			f, g := b.sample(1, p.Y)
			if q.Step(p, &Seen{F: f[0], G: g[0], Share: 1}).Over {
				break
			}
		}
		end, _ := b.sample(1, p.X)
		began, _ := b.sample(1, make([]float64, n))
		if passes > 2*stepsOfOne*sampleTries || !(end[0] < 1e-9*began[0]) {
			t.Errorf("seed %d: %d passes over samples from %v to %v, and all rows end at %v", seed, passes, began[0],
				near[0],
				end[0])
		}
	}
}
