package solver

import (
	"math"
	"slices"

	"github.com/volley-engine/volley/mllib/internal/num"
)

// SDCA is stochastic dual coordinate ascent in the frame of CoCoA+.
const SDCA Name = "sdca"

var sdca = Method{Name: SDCA, Wants: Ascents, Kinked: true, Refuses: refusesAscent,
	New: func() Solver { return &Ascent{} }}

func refusesAscent(w Wish) (why, hint string) {
	switch {
	case w.OtherEnd:
		return "it ends by its duality gap", "leave --stop out, or use another solver"
	case w.Begins:
		return "it starts from dual variables, which a saved model does not contain", "use another solver with --init"
	}
	return refusesClasses("use lbfgs, owlqn or nesterov")(w)
}

// Ascent is dual coordinate ascent. Its variables are those of the data's scale, the
// intercept, if there is one, the last. With u = Σ a·x/n, the model is what
// minimizes Σ (s_j/2)·w_j² + l_j·|w_j| − k_j·c_j·w_j − u_j·w_j over w: s_j = k_j
// plus the L2 penalty, l_j the L1 penalty, and k_j a proximal term about the centre
// c, which makes the dual well conditioned and vanishes as the centre comes to the
// model. The centre runs ahead of the model by Nesterov's momentum, with restarts
// (accelerated proximal SDCA; Shalev-Shwartz and Zhang, 2014). The intercept, which
// has no penalty, and an L1 penalty alone are fitted in the same way. That steps are
// not exact can make the centre run in circles, as about rows with more features than
// there are rows: where the gap stays, the proximal terms of variables that have an L2
// penalty are eased, in the end to none. Without others, that leaves CoCoA+, whose dual
// rises with every step.
type Ascent struct {
	dualState
	n        float64   // rows, by weight
	rows     float64   // and by number
	eased    float64   // share of whole that prox is
	l2       []float64 // penalties
	lasso    []float64
	prox     []float64 // proximal terms
	inverse  []float64 // 1/s_j
	whole    []float64 // proximal terms, before any are eased
	splits   int
	cut      bool
	variable func(w []float64) []float64
}

// dualState is what lasts of an Ascent from one step to the next.
type dualState struct {
	U, Center, Last []float64
	Solved          []float64 // the model at which the centre moved last
	Began           float64   // the objective at the first look; 0 before
	Careful         float64   // 1: the centre has run away, and moves only where the model is near enough
	Conj            float64   // Σ ℓ*(−a)
	Momentum        float64   // Nesterov's t
	Share           float64   // of the proximal terms that is left
	Gap             float64   // the least that was seen, when it last fell by a good part
	FellAt          float64   // the iteration of that; 0 before the first look
}

// What is a good part of the gap; in what part of all iterations, but not less than a
// few, it is to fall by as much; and what is done where it does not.
const (
	goodPart  = 0.1
	patience  = 0.7
	fewSteps  = 20
	easedTo   = 0.01
	leastEase = 5e-3
)

// DualProblem is what dual ascent is to minimize: of each variable its penalties, and its part
// in the mean squared length of rows, times how many features there are.
type DualProblem struct {
	Weight, Rows    float64 // of all rows, by weight and by number
	Splits          int     // that move at the same time
	Cut             bool    // steps may be, and are then less exact than the momentum takes them for
	L2, Lasso, Size []float64
	// Variable takes a model on the scale of the data to where Points are.
	Variable func(w []float64) []float64
}

// Begin begins with dual variables of zero. Proximal terms as large as those of rows over
// their number, for each split that moves at the same time, make a step of all rows a good
// one.
func (d *Ascent) Begin(p DualProblem, at *Point) {
	features := len(p.L2)
	*d = Ascent{n: p.Weight, rows: p.Rows, eased: 1, splits: p.Splits, cut: p.Cut, l2: p.L2, lasso: p.Lasso,
		variable: p.Variable}
	for j, l2 := range p.L2 {
		prox := max(0, max(1e-12, float64(p.Size[j]*float64(d.splits))/d.rows)-l2)
		d.prox, d.whole, d.inverse = append(d.prox, prox), append(d.whole, prox), append(d.inverse, 1/(l2+prox))
	}
	empty := func() []float64 { return make([]float64, features) }
	d.dualState = dualState{U: empty(), Center: empty(), Last: empty(), Solved: empty(), Momentum: 1, Share: 1}
	d.stand(at)
}

// stand puts a point where the model is.
func (d *Ascent) stand(p *Point) {
	copy(p.Y, d.variable(d.Last))
	copy(p.X, p.Y)
}

// ease leaves a share of the proximal terms of all variables that have an L2 penalty.
func (d *Ascent) ease(share float64) {
	d.eased = share
	for j, l2 := range d.l2 {
		if l2 > 0 {
			d.prox[j] = float64(share * d.whole[j])
			d.inverse[j] = 1 / (l2 + d.prox[j])
		}
	}
}

// watch takes in what gap an iteration has left, and reports whether proximal terms are
// to be eased.
func (d *Ascent) watch(iteration int, gap float64) (ease bool) {
	now := float64(iteration)
	switch {
	case d.FellAt == 0 || gap < float64((1-goodPart)*d.Gap):
		d.Gap, d.FellAt = gap, now
	case d.Share > 0 && now-d.FellAt >= max(fewSteps, float64(patience*now)):
		if d.Share, d.FellAt = float64(easedTo*d.Share), now; d.Share < leastEase {
			d.Share = 0
		}
		return true
	}
	return false
}

// Model returns what minimizes over w, where the next step begins.
func (d *Ascent) Model() []float64 {
	w := make([]float64, len(d.U))
	for j, u := range d.U {
		w[j] = float64(num.Soft(math.FMA(d.prox[j], d.Center[j], u), d.lasso[j]) * d.inverse[j])
	}
	return w
}

// Value returns the value of the dual: nowhere above the least objective, if no
// variable without an L2 penalty is then further off than by 1 and as much as it is
// now.
func (d *Ascent) Value() float64 {
	value := -d.Conj / d.n
	for j, u := range d.U {
		v := num.Soft(u, d.lasso[j])
		if d.l2[j] > 0 {
			value = math.FMA(-v/2, v/d.l2[j], value)
			continue
		}
		w := d.Last[j]
		value = math.FMA(-v, w, value)
		value = math.FMA(-math.Abs(v), 1+math.Abs(w), value)
	}
	return value
}

// Step takes what a step came to: u moves, the model with it, and the centre ahead of
// that.
func (d *Ascent) Step(p *Point, s *Seen) Moved {
	for j, v := range s.G {
		d.U[j] += v / d.n
	}
	d.Conj += s.F
	d.Last = d.Model()
	if d.Careful == 0 {
		d.goOn()
	}
	d.stand(p)
	return Moved{}
}

// Forget drops nothing: dual variables live with the rows.
func (d *Ascent) Forget() {}

// goOn moves the centre ahead of the model.
func (d *Ascent) goOn() {
	w := d.Last
	var back float64
	for j := range w {
		back = math.FMA(float64(d.prox[j]*(d.Center[j]-w[j])), w[j]-d.Solved[j], back)
	}
	t := (1 + math.Sqrt(math.FMA(4*d.Momentum, d.Momentum, 1))) / 2
	ahead := (d.Momentum - 1) / t
	if back > 0 { // the last step was one back
		t, ahead = 1, 0
	}
	d.Momentum = t
	for j := range w {
		d.Center[j] = math.FMA(ahead, w[j]-d.Solved[j], w[j])
	}
	copy(d.Solved, w)
}

// What tells that the centre has run away: an objective, or of cut steps a gap, this many times that of the
// first look. What part of the proximal terms the rest of the gap of the problem with
// them may be for the centre to move, from then on.
const (
	farAbove   = 2
	nearEnough = 0.25
)

// watchCentre takes in the objective at the model. A centre that has run away moves only
// here, and only where the model is near to what these proximal terms make best: then
// the method converges however far steps are from exact (Lin, Mairal and Harchaoui,
// 2015).
func (d *Ascent) watchCentre(objective float64) {
	if d.Began == 0 {
		d.Began = objective
	}
	if !(objective <= float64(farAbove*d.Began)) {
		d.Careful = 1
	}
	if d.Careful == 0 {
		return
	}
	if away, least := d.proximal(); objective+away-least <= float64(nearEnough*away) {
		d.goOn()
	}
}

// proximal returns Σ k/2·(w − c)², and the value of the dual of the problem with these
// terms.
func (d *Ascent) proximal() (away, value float64) {
	value = -d.Conj / d.n
	for j, u := range d.U {
		k, c, w := d.prox[j], d.Center[j], d.Last[j]
		away = math.FMA(float64(k/2*(w-c)), w-c, away)
		m := num.Soft(math.FMA(k, c, u), d.lasso[j])
		value = math.FMA(float64(k/2*c), c, value)
		value = math.FMA(float64(-m/2*m), d.inverse[j], value)
	}
	return away, value
}

// Look takes in the objective at the model, and how far the dual is below it.
func (d *Ascent) Look(iteration int, objective, gap float64) {
	if d.cut && d.FellAt > 0 && gap > float64(farAbove*d.Gap) {
		d.Careful = 1
	}
	if !d.watch(iteration, gap) {
		d.watchCentre(objective)
		return
	}
	d.ease(d.Share)
	d.Last = d.Model()
	copy(d.Center, d.Last)
	copy(d.Solved, d.Last)
	d.Momentum = 1
}

// Inverse returns by how much each variable moves with the dual.
func (d *Ascent) Inverse() []float64 { return d.inverse }

// Weight returns what all rows weigh.
func (d *Ascent) Weight() float64 { return d.n }

// Sure reports whether every variable has an L2 penalty, so that the dual bounds the
// objective whatever the variables are.
func (d *Ascent) Sure() bool {
	return !slices.ContainsFunc(d.l2, func(l2 float64) bool { return l2 <= 0 })
}

// Drift returns how far u is from what dual variables stand for, relative to its
// length: of these, move is Σ a·x.
func (d *Ascent) Drift(move []float64) float64 {
	var off, length float64
	for j, v := range move {
		u := v / d.n
		off, length = max(off, math.Abs(u-d.U[j])), max(length, math.Abs(u))
	}
	return off / max(length, 1e-300)
}

// MarshalBinary lays out what lasts.
func (d *Ascent) MarshalBinary() ([]byte, error) {
	head := []float64{d.Began, d.Careful, d.Share, d.Gap, d.FellAt, d.Conj, d.Momentum}
	return num.PutVectors(nil, head, d.U, d.Center, d.Last, d.Solved), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (d *Ascent) UnmarshalBinary(raw []byte) error {
	v, err := num.GetVectors(raw, 5)
	if err == nil && len(v[0]) != 7 {
		err = num.ErrCutShort
	}
	if err != nil {
		return err
	}
	h := v[0]
	d.dualState = dualState{U: v[1], Center: v[2], Last: v[3], Solved: v[4],
		Began: h[0], Careful: h[1], Share: h[2], Gap: h[3], FellAt: h[4], Conj: h[5], Momentum: h[6]}
	if d.eased != d.Share {
		d.ease(d.Share)
	}
	return nil
}
