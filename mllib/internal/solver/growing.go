package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// Growing is Newton's method on samples of the rows that grow, where steps may be cut: gradient and second derivatives
// are those of the rows that a pass has folded, fresh ones each time, until what the next step promises is no more than
// what the sample hides; then, and where anything is decided, they are of all rows (Byrd, Chin, Nocedal and Wu, 2012;
// Roosta-Khorasani and Mahoney, 2019).
type Growing struct {
	Share     float64 // of all rows, that the next pass is to fold; 1 is all of them
	F, Err    float64 // objective at X, and its standard error
	Whole     float64 // 1: that is of all rows, as everything from then on
	Direction []float64
	Slope     float64 // of the objective along Direction
	Length    float64 // of the step that is tried, in Directions
	Tries     float64
}

// What the first sample has: a share of the rows, and a number of rows a variable; by how much a sample grows where the
// next step promises hardly more than the sample hides. Larger ones are all rows.
const (
	firstShare = 0.05
	firstRows  = 20
	grows      = 4
	hardly     = 4
	mostShare  = 0.4
)

// NewGrowing returns the method for some rows, those of the rarer label twice, and variables.
func NewGrowing(rows, variables float64) *Growing {
	q := &Growing{}
	q.growTo(max(firstShare, firstRows*variables/rows))
	return q
}

// Restart has all rows begin anew, from wherever the next pass is made.
func (q *Growing) Restart() { *q = Growing{Share: 1, Whole: 1} }

// All has all rows look next.
func (q *Growing) All() { q.growTo(1) }

func (q *Growing) growTo(share float64) {
	if q.Share = share; share > mostShare {
		q.Share = 1
	}
}

// Step takes objective and model at Y in, of some rows or of all, and moves Y to where the model, with the L1 penalty,
// is least. A sample that has nothing to gain is none to end by: all rows are to say so.
func (q *Growing) Step(p *Point, s *Seen) Moved {
	if !q.lower(s) {
		return q.back(p, s)
	}
	copy(p.X, p.Y)
	q.F, q.Err = s.F, s.Err
	flat(s.G, s.H)
	m := &Quadratic{G: s.G, H: s.H}
	done := Moved{Accepted: true}
	q.Direction, done.Falls = m.Minimize(p.X, s.Lasso)
	done.Unsure = m.unsure
	q.Slope, q.Length, q.Tries = -done.Falls, 1, 0
	if !(done.Falls > 0) {
		done.Falls, done.Over = 0, s.Share >= 1
		q.Share, q.Direction = 1, nil
		return done
	}
	if done.Falls <= float64(hardly*s.Hidden) {
		q.growTo(float64(grows * q.Share))
	}
	for j, x := range p.X {
		p.Y[j] = x + q.Direction[j]
	}
	return done
}

// lower reports whether the objective at Y is less than at X, as far as samples tell: what the first pass over all rows
// finds is not held against samples, which may have missed what matters most.
func (q *Growing) lower(s *Seen) bool {
	if s.Share >= 1 && q.Whole == 0 {
		q.Whole = 1
		return true
	}
	slack := math.FMA(3, math.Hypot(q.Err, s.Err), float64(4e-16*math.Abs(q.F)))
	return q.Direction == nil || s.F <= math.FMA(armijo*q.Length, q.Slope, q.F)+slack
}

// back halves the step that led to Y, and has more rows look.
func (q *Growing) back(p *Point, s *Seen) Moved {
	if q.Tries++; q.Tries > maxTries {
		copy(p.Y, p.X)
		q.Share, q.Direction = 1, nil
		return Moved{Over: s.Share >= 1}
	}
	q.Length /= 2
	q.growTo(float64(grows * q.Share))
	for j, x := range p.X {
		p.Y[j] = math.FMA(q.Length, q.Direction[j], x)
	}
	return Moved{Falls: math.Inf(1)}
}

// Forget drops what is known of X.
func (q *Growing) Forget() { q.Direction = nil }

// MarshalBinary lays out what lasts.
func (q *Growing) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, []float64{q.Share, q.F, q.Err, q.Whole, q.Slope, q.Length, q.Tries}, q.Direction), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *Growing) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 2)
	if err != nil {
		return err
	}
	if len(v) < 2 || len(v[0]) != 7 {
		return num.ErrCutShort
	}
	f := v[0]
	*q = Growing{Share: f[0], F: f[1], Err: f[2], Whole: f[3], Slope: f[4], Length: f[5], Tries: f[6], Direction: v[1]}
	return nil
}
