package linear

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// look is what a pass of the interior-point method is for.
type look int

// The looks of a step, in turn. Only the first two change row state.
const (
	beginRows   look = iota // rows begin, and are seen
	seeRows                 // rows take the last step, and are seen: certificate, Hessian, predictor
	alongAffine             // how far the predictor leads, and the gradient of the corrected model
	alongStep               // how far the step leads
)

// interiorParam is the parameter of a pass of the interior-point method: the model, and two steps of it, with the
// intercept's last (nil where they are not needed).
type interiorParam struct {
	linearParam
	Look              look
	Mu, Length        float64 // what products are to become, and how much of Direction rows take
	Affine, Direction []float64
}

// MarshalBinary lays the parameter out as floats.
func (p interiorParam) MarshalBinary() ([]byte, error) {
	own := num.PutVectors(nil, []float64{float64(p.Look), p.Mu, p.Length}, p.Affine, p.Direction)
	return num.PutPair(func() ([]byte, error) { return own, nil }, p.linearParam.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *interiorParam) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, func(raw []byte) error {
		v, err := num.GetVectors(raw, 3)
		if err != nil || len(v[0]) != 3 {
			return num.ErrCutShort
		}
		p.Look, p.Mu, p.Length, p.Affine, p.Direction = look(v[0][0]), v[0][1], v[0][2], v[1], v[2]
		return nil
	}, p.linearParam.UnmarshalBinary)
}

// interiorSums are what a pass finds out.
type interiorSums struct {
	certificate            // at the rows' dual variables
	Longest     float64    // step that leaves all slacks and dual variables above nothing
	Products    [3]float64 // Σ of products along a step: at its beginning, times its length, and the square of it
	Coef        float64    // Σ of derivatives by the margin of a model of the rows, and below of these times rows
	CoefPerMu   float64    // by how much it is more for each unit that products are to become; so below
	Grad        []float64
	GradPerMu   []float64
	H           []float64 // as curvature has it
}

// MarshalBinary lays the sums out.
func (s interiorSums) MarshalBinary() ([]byte, error) {
	own := num.PutVectors(nil, []float64{s.Longest, s.Products[0], s.Products[1], s.Products[2], s.Coef, s.CoefPerMu},
		s.Grad, s.GradPerMu, s.H)
	return num.PutPair(func() ([]byte, error) { return own, nil }, s.certificate.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *interiorSums) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, func(raw []byte) error {
		v, err := num.GetVectors(raw, 4)
		if err != nil || len(v[0]) != 6 {
			return num.ErrCutShort
		}
		s.Longest, s.Products, s.Coef, s.CoefPerMu = v[0][0], [3]float64(v[0][1:4]), v[0][4], v[0][5]
		s.Grad, s.GradPerMu, s.H = v[1], v[2], v[3]
		return nil
	}, s.certificate.UnmarshalBinary)
}

// interiors folds rows into the passes of the interior-point method. With each row live its dual variable, over the
// row's weight, and the slack of its loss.
func (r *rowLoss) interiors() rdd.Aggregator[interiorParam, rdd.Point, interiorSums] {
	return rdd.Aggregator[interiorParam, rdd.Point, interiorSums]{
		Zero:     r.noInterior,
		AddBatch: r.addInterior,
		Merge: func(a, b interiorSums) interiorSums {
			a.certificate = mergeCertificates(a.certificate, b.certificate)
			a.Longest, a.Coef, a.CoefPerMu = min(a.Longest, b.Longest), a.Coef+b.Coef, a.CoefPerMu+b.CoefPerMu
			for i := range a.Products {
				a.Products[i] += b.Products[i]
			}
			kernel.Add(b.Grad, a.Grad)
			kernel.Add(b.GradPerMu, a.GradPerMu)
			kernel.Add(b.H, a.H)
			return a
		},
		Scale: func(a interiorSums, _ float64) interiorSums { return a }, // all rows are seen
		State: 2, Weighted: true,
	}
}

// noInterior returns the sums of no rows.
func (r *rowLoss) noInterior(p interiorParam) interiorSums {
	d, s := len(p.W), interiorSums{Longest: math.Inf(1)}
	switch p.Look {
	case beginRows, seeRows:
		s.certificate, s.H = r.noCertificate(d), make([]float64, (d+1)*(d+1))
		s.Grad = make([]float64, d)
	case alongAffine:
		s.certificate, s.Grad, s.GradPerMu = certificate{K: 1}, make([]float64, d), make([]float64, d)
	default:
		s.certificate = certificate{K: 1}
	}
	return s
}

// innerRow is a row as the method sees it: its dual variable a over its weight, in (0, 1), the slack of its loss, and
// by how much its margin is beyond 1. Its other slack is what these leave, and the products that come down to nothing
// are a times the one and (1 − a) times the other slack.
type innerRow struct {
	a, loss, beyond float64
	slack           float64 // the other one
	byA, byRest     float64 // 1/a and 1/(1 − a)
	curve           float64 // second derivative of the row's model by its margin
}

// The least slack, and how near a dual variable may be to its ends: rounding leaves others at nothing.
const (
	leastSlack = 1e-30
	leastDual  = 1e-15
)

// rowAt returns a row of which dual variable and slack are known.
func rowAt(a, loss, beyond float64) innerRow {
	r := innerRow{a: a, loss: loss, beyond: beyond, byA: 1 / a, byRest: 1 / (1 - a)}
	r.slack = max(beyond+loss, leastSlack)
	r.curve = 1 / math.FMA(r.slack, r.byA, float64(r.loss*r.byRest))
	return r
}

// begun returns a row with both products mu.
func begun(beyond, mu float64) innerRow {
	rest := middle(beyond / mu)
	return rowAt(min(max(middle(-beyond/mu), leastDual), 1-leastDual), mu/rest, beyond)
}

// middle returns the a in (0, 1) where t + 1/a − 1/(1 − a) is 0.
func middle(t float64) float64 {
	root := math.Sqrt(math.FMA(t, t, 4))
	if t > 0 {
		return 2 / (2 + 4/(root+t))
	}
	return 2 / (root + 2 - t)
}

// innerStep is how a row moves.
type innerStep struct{ a, loss, slack float64 }

// along returns how a row moves where its margin moves by m, and its products are to become upper (of a) and lower.
func (r *innerRow) along(m, upper, lower float64) (s innerStep) {
	s.a = float64(r.curve * (math.FMA(upper, r.byA, float64(-lower*r.byRest)) - r.beyond - m))
	s.loss = math.FMA(math.FMA(r.loss, s.a, lower), r.byRest, -r.loss)
	s.slack = m + s.loss
	return s
}

// corrected returns what products are to become so that they come to mu after a step, by what they are beside the
// predictor's straight line.
func (s innerStep) corrected(mu float64) (upper, lower float64) {
	return math.FMA(-s.a, s.slack, mu), math.FMA(s.a, s.loss, mu)
}

// longest returns how much of a step a row can take.
func (r *innerRow) longest(s innerStep) float64 {
	most := 0.0 // of shares of what is there, that a whole step takes away
	if s.a < 0 {
		most = float64(-s.a * r.byA)
	} else {
		most = float64(s.a * r.byRest)
	}
	if s.loss < 0 {
		most = max(most, -s.loss/r.loss)
	}
	if s.slack < 0 {
		most = max(most, -s.slack/r.slack)
	}
	return 1 / most
}

// products returns a row's products along a step: at its beginning, times its length, and the square of it.
func (r *innerRow) products(s innerStep) [3]float64 {
	b := 1 - r.a
	return [3]float64{
		math.FMA(r.a, r.slack, float64(b*r.loss)),
		math.FMA(r.a, s.slack, float64(s.a*r.slack)) + math.FMA(b, s.loss, float64(-s.a*r.loss)),
		math.FMA(s.a, s.slack, float64(-s.a*s.loss)),
	}
}

// take returns dual variable and slack after a part of a step.
func (r *innerRow) take(s innerStep, length float64) (a, loss float64) {
	return min(max(math.FMA(length, s.a, r.a), leastDual), 1-leastDual),
		max(math.FMA(length, s.loss, r.loss), leastSlack)
}

// innerBatch is what a pass knows of the rows of a batch.
type innerBatch struct {
	p               *interiorParam
	b               *rdd.Batch
	f               kernel.Loss
	y, z            []float64 // labels, and dots of rows with the model and both steps
	affine, along   []float64
	coef, curve     []float64 // derivatives and second derivatives of a row's model, by its margin
	dual, ofOne     []float64 // derivatives that are the rows' dual variables, or those for each unit of Mu
	affineB, alongB float64   // the intercept of both steps
}

func (r *rowLoss) innerBatchOf(p *interiorParam, b *rdd.Batch) *innerBatch {
	n := len(b.Rows)
	s := b.Scratch(8 * n)
	part := func(i int) []float64 { return s[i*n : (i+1)*n] }
	in := &innerBatch{p: p, b: b, f: r.of(p.linearParam, b), y: part(0), z: part(1), affine: part(2), along: part(3),
		coef: part(4), curve: part(5), dual: part(6), ofOne: part(7)}
	r.labels(in.y, p.linearParam, b)
	fold.Dots(in.z, p.W, b, b.Rows)
	in.affineB = in.dots(in.affine, p.Affine)
	in.alongB = in.dots(in.along, p.Direction)
	return in
}

// dots computes the dots of rows with a step, and returns its intercept.
func (in *innerBatch) dots(z, step []float64) float64 {
	if step == nil {
		clear(z)
		return 0
	}
	d := len(in.p.W)
	fold.Dots(z, step[:d], in.b, in.b.Rows)
	return step[d]
}

// margins returns by how much the margin of the i-th row is beyond 1, the label as −1 or 1, and by how much both steps
// move the margin.
func (in *innerBatch) margins(i int) (beyond, sign, affine, along float64) {
	sign = math.FMA(2, in.y[i], -1)
	beyond = float64(sign*(in.z[i]+in.p.Bias)) - 1
	return beyond, sign, float64(sign * (in.affine[i] + in.affineB)), float64(sign * (in.along[i] + in.alongB))
}

// at returns the i-th row, with a margin.
func (in *innerBatch) at(i int, beyond float64) innerRow {
	return rowAt(in.b.State[2*i], in.b.State[2*i+1], beyond)
}

func (r *rowLoss) addInterior(s interiorSums, p interiorParam, b *rdd.Batch) interiorSums {
	in := r.innerBatchOf(&p, b)
	switch p.Look {
	case beginRows, seeRows:
		return r.see(s, in)
	case alongAffine:
		return in.correct(in.reach(s))
	}
	return in.reach(s)
}

// see has rows begin or take the last step, and sums what they have come to.
func (r *rowLoss) see(s interiorSums, in *innerBatch) interiorSums {
	for i := range in.y {
		beyond, sign, affine, along := in.margins(i)
		row := innerRow{}
		if in.p.Look == beginRows {
			row = begun(beyond, in.p.Mu)
		} else {
			before := in.at(i, math.FMA(-in.p.Length, along, beyond))
			upper, lower := before.along(affine, 0, 0).corrected(in.p.Mu)
			a, loss := before.take(before.along(along, upper, lower), in.p.Length)
			row = rowAt(a, loss, beyond)
		}
		in.b.State[2*i], in.b.State[2*i+1] = row.a, row.loss
		weight := in.f.Weight(i, in.y[i])
		in.dual[i] = float64(-sign * float64(weight*row.a))
		s.count(&row, weight, in.y[i])
		in.curve[i] = float64(weight * row.curve)
		in.coef[i] = float64(-sign * float64(weight*(row.a+row.along(0, 0, 0).a)))
		s.Coef += in.coef[i]
	}
	fold.Accumulate(s.Grad, in.coef, in.b)
	in.addDuals(&s.certificate)
	work, _ := r.pool.Get().(*curveWork)
	if work == nil {
		work = &curveWork{}
	}
	work.addGram(s.H, in.curve, in.p.linearParam, in.b)
	r.pool.Put(work)
	return s
}

// count adds a row to the certificate, but for its dual variable times the row.
func (s *interiorSums) count(r *innerRow, weight, y float64) {
	k := 0
	if s.K == 2 && y == 1 {
		k = 1
	}
	s.Loss[k] = math.FMA(weight, max(0, -r.beyond), s.Loss[k])
	s.Conj[k] = math.FMA(-weight, r.a, s.Conj[k])
	s.certificate.Coef[k] = math.FMA(-weight, math.FMA(2, y, -1)*r.a, s.certificate.Coef[k])
	s.Products[0] = math.FMA(weight, math.FMA(r.a, r.slack, float64((1-r.a)*r.loss)), s.Products[0])
}

// addDuals adds rows times their dual variables, those of each label apart.
func (in *innerBatch) addDuals(c *certificate) {
	d := len(in.p.W)
	for k := range c.K {
		for i, a := range in.dual {
			if in.ofOne[i] = a; c.K == 2 && (in.y[i] == 1) != (k == 1) {
				in.ofOne[i] = 0
			}
		}
		fold.Accumulate(c.Sum[k*d:(k+1)*d], in.ofOne, in.b)
	}
}

// correct sums the gradient of the corrected model where products become nothing, and by how much it is more for each
// unit that they are to become: what that is follows from how far rows can go.
func (in *innerBatch) correct(s interiorSums) interiorSums {
	for i := range in.y {
		beyond, sign, affine, _ := in.margins(i)
		row := in.at(i, beyond)
		upper, lower := row.along(affine, 0, 0).corrected(0)
		weight := float64(-sign * in.f.Weight(i, in.y[i]))
		in.coef[i] = float64(weight * (row.a + row.along(0, upper, lower).a))
		in.dual[i] = float64(weight * float64(row.curve*(row.byA-row.byRest)))
		s.Coef += in.coef[i]
		s.CoefPerMu += in.dual[i]
	}
	fold.Accumulate(s.Grad, in.coef, in.b)
	fold.Accumulate(s.GradPerMu, in.dual, in.b)
	return s
}

// reach finds how far a step leads, and what becomes of products along it.
func (in *innerBatch) reach(s interiorSums) interiorSums {
	for i := range in.y {
		beyond, _, affine, along := in.margins(i)
		row := in.at(i, beyond)
		step := row.along(affine, 0, 0)
		if in.p.Look == alongStep {
			upper, lower := step.corrected(in.p.Mu)
			step = row.along(along, upper, lower)
		}
		weight := in.f.Weight(i, in.y[i])
		if weight == 0 {
			continue
		}
		s.Longest = min(s.Longest, row.longest(step))
		for k, v := range row.products(step) {
			s.Products[k] = math.FMA(weight, v, s.Products[k])
		}
	}
	return s
}
