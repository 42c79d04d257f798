package solver

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// Progressive is L-BFGS on samples of the rows that grow, where steps may be cut: a pass folds the same rows at the
// point that is tried and at the last one accepted, so that neither the decrease nor the curvature that is remembered
// has the noise of two samples. Where the standard error of the gradient is no more small against it the next sample is
// larger, and in the end all rows, over which L-BFGS goes on with what it remembers (Berahas, Nocedal and Takáč, 2016;
// Bollapragada, Mudigere, Nocedal, Shi and Tang, 2018: the norm test).
type Progressive struct {
	quasiNewton
	Share float64 // of all rows, that the next pass is to fold; 1 is all of them, from then on
	Steps float64 // on samples of this share
}

// What the first sample has at least; the standard error of a gradient, as a part of its length, from which on the next
// sample is larger; after how many steps it is in any case; how often a step on samples is shortened.
const (
	leastSample = 1000
	mostNoise   = 0.7
	stepsOfOne  = 8
	sampleTries = 5
)

// NewProgressive returns the method for some rows.
func NewProgressive(rows float64) *Progressive {
	q := &Progressive{}
	q.growTo(max(firstShare, leastSample/rows))
	return q
}

func (q *Progressive) growTo(share float64) {
	if q.Share, q.Steps = share, 0; share > mostShare {
		q.Share = 1
		q.Forget()
	}
}

// All has all rows go on.
func (q *Progressive) All() { q.growTo(1) }

// Begins reports whether no pass over all rows has been taken in yet.
func (q *Progressive) Begins() bool { return q.Share >= 1 && q.G == nil }

// Return goes back to a point, without what is remembered of others.
func (q *Progressive) Return(p *Point, to []float64) {
	copy(p.X, to)
	copy(p.Y, to)
	q.quasiNewton = quasiNewton{}
}

// Step takes in what a pass has found out: on a sample, at Y and, of the same rows, at X.
func (q *Progressive) Step(p *Point, s *Seen) Moved {
	if q.Share >= 1 {
		return q.quasiNewton.Step(p, s)
	}
	if q.Direction != nil {
		if !(s.F <= math.FMA(armijo*q.Length, q.Slope, s.AnchorF)) {
			return q.back(p, s)
		}
		q.remember(difference(p.Y, p.X), difference(s.G, s.Anchor))
	}
	copy(p.X, p.Y)
	q.Steps++
	q.Direction = q.downhill(s.G, p.Step)
	q.Slope, q.Length, q.Tries = kernel.Dot(s.G, q.Direction), 1, 0
	q.place(p, nil)
	switch {
	case !(q.Slope < 0):
		copy(p.Y, p.X)
		q.growTo(1)
	case !(s.Noise <= mostNoise) || q.Steps >= stepsOfOne:
		q.growTo(float64(grows * q.Share))
	}
	return Moved{Accepted: true, Falls: math.Inf(1)}
}

// back shortens the step that led to Y; where that does not help, more rows look.
func (q *Progressive) back(p *Point, s *Seen) Moved {
	if q.Tries++; q.Tries > sampleTries || !num.Finite(s.F) {
		copy(p.Y, p.X)
		q.Direction = nil
		q.growTo(float64(grows * q.Share))
		return Moved{Falls: math.Inf(1)}
	}
	q.F = s.AnchorF
	q.shorten(s.F)
	q.place(p, nil)
	return Moved{Falls: math.Inf(1)}
}

// MarshalBinary lays out what lasts.
func (q *Progressive) MarshalBinary() ([]byte, error) {
	share := func() ([]byte, error) { return num.PutFloats(nil, []float64{q.Share, q.Steps}), nil }
	return num.PutPair(share, q.quasiNewton.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *Progressive) UnmarshalBinary(raw []byte) error {
	share := func(raw []byte) error {
		v, err := num.GetFloats(raw, 2)
		if err == nil {
			q.Share, q.Steps = v[0], v[1]
		}
		return err
	}
	return num.GetPair(raw, share, q.quasiNewton.UnmarshalBinary)
}
