package solver

import (
	"math"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// Interior is the interior-point method, of the hinge.
const Interior Name = "interior"

var interior = Method{Name: Interior, Exact: true, Scaled: true, Wants: Interiors, Kinked: true,
	Refuses: refusesInterior, New: func() Solver { return &Inner{} }}

func refusesInterior(w Wish) (why, hint string) {
	switch {
	case !w.Hinge:
		return "it is for the hinge of svm", "use newton, lbfgs or owlqn"
	case w.Lasso:
		return "it takes no L1 penalty", "use newton or owlqn"
	case w.OtherEnd:
		return "it ends by its duality gap", "leave --stop out, or use lbfgs or newton"
	}
	return "", ""
}

// Inner is what the interior-point method keeps between two steps: primal-dual, with Mehrotra's predictor and
// corrector (Ferris and Munson, 2002, for support vector machines). With each row live a dual variable and two slacks,
// which move along with the variables, so that products of the one with the others come down to nothing together.
type Inner struct {
	Affine    []float64 // the last step, were products to become nothing at once; nil before the first
	Direction []float64 // the last step, in whole
	Mu        float64   // what products were to become
	Length    float64   // of the step that was taken, in Directions
	Lower     float64   // the greatest lower bound of the objective that is known
	Stuck     float64   // how often rows have begun anew
	Assumed   float64   // 1: it holds if no variable without a penalty is further off than by 1 and as much as it is
}

// What products are at first; the share of the longest step that is taken; which step is none, and how often rows begin
// anew after one.
const (
	startMu   = 3.0
	inside    = 0.995
	noStep    = 1e-9
	mostStuck = 3
)

// Begin has rows begin where the variables are.
func (q *Inner) Begin() {
	*q = Inner{Mu: startMu, Lower: math.Inf(-1)}
}

// Predict takes in gradient and Hessian of the model under which products become nothing at once.
func (q *Inner) Predict(g, h []float64) {
	for j := range g { // what no row has and no penalty holds stays where it is
		if at := j*len(g) + j; h[at] <= 0 {
			h[at] = 1
		}
	}
	q.Affine, _ = (&Quadratic{G: g, H: h}).Minimize(nil, nil)
}

// Aim chooses what products are to become: the less, the more of the step under which they become nothing can be
// taken. products are their sums at the beginning of that step, and, along it, times its length and the square of it.
func (q *Inner) Aim(longest float64, products [3]float64, weight float64) {
	t := min(1, longest)
	left := products[0] + float64(t*math.FMA(t, products[2], products[1]))
	share := 0.0
	if products[0] > 0 {
		share = max(0, left) / products[0]
	}
	q.Mu = float64(float64(share*share)*share) * products[0] / (2 * weight)
}

// Move takes as much of the step as leaves slacks and dual variables above nothing. Where that is none rows begin
// anew; over says that they have often enough.
func (q *Inner) Move(p *Point, longest float64) (over bool) {
	length := min(1, float64(inside*longest))
	if !(length > noStep) || !num.Finite(num.SquaredLength(q.Direction)) {
		q.Stuck++
		q.Mu, q.Affine, q.Direction = startMu, nil, nil
		return q.Stuck > mostStuck
	}
	q.Length = length
	for j, d := range q.Direction {
		p.Y[j] = math.FMA(q.Length, d, p.Y[j])
	}
	return false
}

// Step takes in the gradient of the corrected model, of which the Hessian is the same, and chooses where to go from
// p.Y; Move goes there.
func (q *Inner) Step(_ *Point, s *Seen) Moved {
	q.Direction, _ = (&Quadratic{G: s.G, H: s.H}).Minimize(nil, nil)
	return Moved{}
}

// Forget has rows begin anew from where the variables are.
func (q *Inner) Forget() { q.Mu, q.Affine, q.Direction = startMu, nil, nil }

// MarshalBinary lays out what lasts.
func (q *Inner) MarshalBinary() ([]byte, error) {
	return num.PutVectors(nil, []float64{q.Mu, q.Length, q.Lower, q.Assumed, q.Stuck}, q.Affine, q.Direction), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *Inner) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 3)
	if err != nil {
		return err
	}
	if len(v) < 3 || len(v[0]) != 5 {
		return num.ErrCutShort
	}
	f := v[0]
	*q = Inner{Mu: f[0], Length: f[1], Lower: f[2], Assumed: f[3], Stuck: f[4], Affine: v[1], Direction: v[2]}
	return nil
}
