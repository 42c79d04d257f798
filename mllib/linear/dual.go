package linear

import (
	"math"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// dualParam is the parameter of a step of dual ascent: the model, by how much a
// variable moves with the dual (1/s_j, the intercept last), σ′, what all
// rows weigh, the label that counts as 1, and weights as linearParam has them. Check
// changes nothing: it sums what the dual variables stand for.
type dualParam struct {
	W, Inverse  []float64 // one a feature, and the intercept, if there is one
	Shift       []float64 // that dense rows are taken about; nil is zero
	Sigma, Rows float64
	Positive    float64
	Weights     [2]float64
	Intercept   bool
	Check       bool
}

const dualHead = 8

// MarshalBinary lays the parameter out as floats.
func (p dualParam) MarshalBinary() ([]byte, error) {
	head := []float64{p.Sigma, p.Rows, p.Positive, p.Weights[0], p.Weights[1], flag(p.Intercept), flag(p.Check),
		float64(len(p.W))}
	return num.PutFloats(make([]byte, 0, 8*(3*len(p.W)+dualHead)), head, p.W, p.Inverse, p.Shift), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *dualParam) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, dualHead)
	if err != nil {
		return err
	}
	n := int(v[dualHead-1])
	if n < 0 || len(v) < dualHead+2*n {
		return num.ErrCutShort
	}
	p.Sigma, p.Rows, p.Positive, p.Weights = v[0], v[1], v[2], [2]float64{v[3], v[4]}
	p.Intercept, p.Check = v[5] != 0, v[6] != 0
	p.W, p.Inverse = v[dualHead:dualHead+n], v[dualHead+n:dualHead+2*n]
	if len(v) > dualHead+2*n {
		p.Shift = v[dualHead+2*n:]
	}
	return nil
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// dualSums are what the rows of a split have come to: Σ Δa·x, and by how much their
// conjugate losses rose.
type dualSums struct {
	Conj  float64
	Move  []float64
	local []float64 // the model as the split has moved it
}

// MarshalBinary lays the sums out as floats.
func (s dualSums) MarshalBinary() ([]byte, error) {
	return num.PutFloats(make([]byte, 0, 8*(len(s.Move)+1)), []float64{s.Conj}, s.Move), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *dualSums) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 1)
	if err == nil {
		s.Conj, s.Move = v[0], v[1:]
	}
	return err
}

// ascents folds rows into steps of dual coordinate ascent (Shalev-Shwartz and
// Zhang, 2013), each split for itself in the frame of CoCoA+ (Ma et al., 2015):
// that all splits move at once is made up for by σ′. One dual variable lives with
// each row.
func (r *rowLoss) ascents() rdd.Aggregator[dualParam, rdd.Point, dualSums] {
	return rdd.Aggregator[dualParam, rdd.Point, dualSums]{
		Zero:     func(p dualParam) dualSums { return dualSums{Move: make([]float64, len(p.W))} },
		AddBatch: r.ascend,
		Merge: func(a, b dualSums) dualSums {
			a.Conj += b.Conj
			kernel.Add(b.Move, a.Move)
			return a
		},
		// What was not visited keeps its dual variables: nothing stands for it.
		Scale: func(a dualSums, _ float64) dualSums { return a },
		State: 1, Weighted: true,
	}
}

func (r *rowLoss) ascend(s dualSums, p dualParam, b *rdd.Batch) dualSums {
	if s.local == nil {
		s.local = append([]float64(nil), p.W...)
	}
	y, f := b.Scratch(len(b.Rows)), r.of(linearParam{Weights: p.Weights}, b)
	r.labels(y, linearParam{Positive: p.Positive}, b)
	if b.X32 != nil {
		ascendRows(f, &s, &p, b, b.X32, y)
	} else {
		ascendRows(f, &s, &p, b, b.X64, y)
	}
	return s
}

// ascendRows takes the dual variable of one row after the other to where the dual
// is highest, all others held.
func ascendRows[T kernel.Float](all kernel.Loss, s *dualSums, p *dualParam, b *rdd.Batch, values []T, y []float64) {
	features := len(p.W)
	if p.Intercept {
		features--
	}
	about := make([]float64, features)
	copy(about, p.Shift)
	for i, row := range b.Rows {
		x, at := rowOf(b, values, row, features)
		a, f := b.State[i], all.Of(i, i+1)
		if p.Check {
			addRow(s.Move, x, at, about, a, p.Intercept)
			s.Conj += f.Conjugate(a, y[i])
			continue
		}
		z, q := weigh(s.local, p.Inverse, x, at, about, p.Intercept)
		next := f.Ascend(a, z, float64(p.Sigma*q)/p.Rows, y[i])
		if next == a {
			continue
		}
		b.State[i] = next
		s.Conj += f.Conjugate(next, y[i]) - f.Conjugate(a, y[i])
		addRow(s.Move, x, at, about, next-a, p.Intercept)
		pull(s.local, p.Inverse, x, at, about, float64(p.Sigma*(next-a))/p.Rows, p.Intercept)
	}
}

// rowOf returns the values of a row, and of a sparse one its columns.
func rowOf[T kernel.Float](b *rdd.Batch, values []T, row int32, features int) (x []T, at []int32) {
	if b.Dense() {
		return values[int(row)*features : (int(row)+1)*features], nil
	}
	from, to := b.Offsets[row], b.Offsets[row+1]
	return values[from:to], b.Indices[from:to]
}

// weigh computes w·x and Σ x²/s; dense rows are taken about a point.
func weigh[T kernel.Float](w, inverse []float64, x []T, at []int32, about []float64, intercept bool) (z, q float64) {
	if intercept {
		z, q = w[len(w)-1], inverse[len(w)-1]
	}
	if at == nil {
		for j, v := range x {
			u := float64(v) - about[j]
			z = math.FMA(w[j], u, z)
			q = math.FMA(float64(u*u), inverse[j], q)
		}
		return z, q
	}
	for k, j := range at {
		u := float64(x[k])
		z = math.FMA(w[j], u, z)
		q = math.FMA(float64(u*u), inverse[j], q)
	}
	return z, q
}

// addRow adds a·x to a sum.
func addRow[T kernel.Float](sum []float64, x []T, at []int32, about []float64, a float64, intercept bool) {
	if intercept {
		sum[len(sum)-1] += a
	}
	if at == nil {
		for j, v := range x {
			sum[j] = math.FMA(a, float64(v)-about[j], sum[j])
		}
		return
	}
	for k, j := range at {
		sum[j] = math.FMA(a, float64(x[k]), sum[j])
	}
}

// pull moves w by a·x/s.
func pull[T kernel.Float](w, inverse []float64, x []T, at []int32, about []float64, a float64, intercept bool) {
	if intercept {
		w[len(w)-1] = math.FMA(a, inverse[len(w)-1], w[len(w)-1])
	}
	if at == nil {
		for j, v := range x {
			w[j] = math.FMA(float64(a*(float64(v)-about[j])), inverse[j], w[j])
		}
		return
	}
	for k, j := range at {
		w[j] = math.FMA(float64(a*float64(x[k])), inverse[j], w[j])
	}
}
