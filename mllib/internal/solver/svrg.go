package solver

import (
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
)

// SVRG is gradient descent on some rows, their noise reduced by an anchor.
const SVRG Name = "svrg"

var svrg = Method{Name: SVRG, Wants: Pairs, Scaled: true, Refuses: refusesClasses("use nesterov or lbfgs"),
	New: func() Solver { return &reduced{} }}

// refusesClasses refuses several classes, for solvers that need one margin for each row.
func refusesClasses(hint string) func(Wish) (string, string) {
	return func(w Wish) (string, string) {
		if w.Classes {
			return "it supports binary classification and regression only", hint
		}
		return "", ""
	}
}

// Anchored is a solver that also wants the gradient of a pass's rows at an anchor.
type Anchored interface {
	Solver
	// Anchor is the point; nil where SetAnchor is to be called first.
	Anchor() []float64
	// SetAnchor makes the point of a pass over all rows the anchor.
	SetAnchor(point, gradient []float64)
}

// reduced is gradient descent with reduced variance (SVRG; Johnson and Zhang, 2013): there is
// a point, and the gradient there on all rows. A step of some rows goes along their
// gradient at Y, less theirs at the anchor, plus the anchor's own: the noise of
// leaving rows out falls with the way from the anchor. Steps of some rows are
// mini-batches, or cut short.
type reduced struct {
	Point, Gradient []float64 // in the variables
	Visited         float64   // rows since, in parts of all
}

// anchorEvery is how many times all rows are visited between two anchors.
const anchorEvery = 2

// Anchor returns the point, unless it is time for another.
func (r *reduced) Anchor() []float64 {
	if r.Visited >= anchorEvery {
		return nil
	}
	return r.Point
}

// SetAnchor makes the point of a pass over all rows the anchor.
func (r *reduced) SetAnchor(point, gradient []float64) {
	*r = reduced{Point: append([]float64(nil), point...), Gradient: gradient}
}

// Step takes the gradient of some rows to what it would be of all, as far as the
// anchor knows, and goes along it.
func (r *reduced) Step(p *Point, s *Seen) Moved {
	kernel.Axpy(-1, s.Anchor, s.G)
	kernel.Add(r.Gradient, s.G)
	r.Visited += s.Share
	p.descend(p.Step, s)
	return Moved{}
}

// Forget drops the anchor.
func (r *reduced) Forget() { *r = reduced{} }

// MarshalBinary lays out what lasts.
func (r *reduced) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, []float64{r.Visited}, r.Point, r.Gradient), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (r *reduced) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 3)
	if err == nil && len(v[0]) != 1 {
		err = num.ErrCutShort
	}
	if err == nil {
		r.Visited, r.Point, r.Gradient = v[0][0], v[1], v[2]
	}
	return err
}
