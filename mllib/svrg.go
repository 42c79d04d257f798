package mllib

import (
	"context"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
)

// anchorState is where variance reduction stands (SVRG; Johnson and Zhang, 2013): a
// point, and the gradient there on all rows. A step of some rows goes along their
// gradient at Y, less theirs at the anchor, plus the anchor's own: the noise of
// leaving rows out falls with the way from the anchor. Steps of some rows are
// mini-batches, or cut short.
type anchorState struct {
	Point, Gradient []float64 // in the variables
	Visited         float64   // rows since, in parts of all
}

// anchorEvery is how many times all rows are visited between two anchors.
const anchorEvery = 2

// pairParam is the parameter of a step that folds rows at two models.
type pairParam struct{ Here, There linearParam }

// MarshalBinary lays both out, the first one's length before it.
func (p pairParam) MarshalBinary() ([]byte, error) {
	return num.PutPair(p.Here.MarshalBinary, p.There.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *pairParam) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, p.Here.UnmarshalBinary, p.There.UnmarshalBinary)
}

// pairSums are the sums at two models.
type pairSums struct{ Here, There gradient }

// MarshalBinary lays both out, the first one's length before it.
func (s pairSums) MarshalBinary() ([]byte, error) {
	return num.PutPair(s.Here.MarshalBinary, s.There.MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *pairSums) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, s.Here.UnmarshalBinary, s.There.UnmarshalBinary)
}

// pairs folds the same rows into the gradients at two models.
func (r *rowLoss) pairs() rdd.Aggregator[pairParam, rdd.Point, pairSums] {
	one := r.gradients()
	return rdd.Aggregator[pairParam, rdd.Point, pairSums]{
		Zero: func(p pairParam) pairSums { return pairSums{one.Zero(p.Here), one.Zero(p.There)} },
		AddBatch: func(s pairSums, p pairParam, b *rdd.Batch) pairSums {
			return pairSums{one.AddBatch(s.Here, p.Here, b), one.AddBatch(s.There, p.There, b)}
		},
		Merge: func(a, b pairSums) pairSums { return pairSums{one.Merge(a.Here, b.Here), one.Merge(a.There, b.There)} },
		Scale: func(a pairSums, f float64) pairSums { return pairSums{one.Scale(a.Here, f), one.Scale(a.There, f)} },
		Close: func(a pairSums, p pairParam, rows float64) pairSums {
			a.Here = one.Close(a.Here, p.Here, rows)
			return a
		},
		Weighted: true,
	}
}

// pairPass folds rows at Y and at the anchor, which is set anew where it is time.
func (t *trainer) pairPass(ctx context.Context, here linearParam) (gradient, error) {
	st := &t.st.Anchor
	if st.Point == nil || st.Visited >= anchorEvery {
		g, err := t.plan.Gradient.Uncut().Run(ctx, t.s, here)
		if err != nil {
			return gradient{}, err
		}
		*st = anchorState{Point: append([]float64(nil), t.st.Y...), Gradient: make([]float64, t.prob.size())}
		t.prob.gradient(st.Gradient, st.Point, g, t.s.LastInfo().Weight)
	}
	there := t.prob.param(st.Point)
	there.Width = here.Width
	s, err := t.plan.Pairs.Run(ctx, t.s, pairParam{here, there})
	t.there = s.There
	return s.Here, err
}

// correct takes the gradient of some rows to what it would be of all, as far as the
// anchor knows.
func (t *trainer) correct(weight, share float64) {
	st := &t.st.Anchor
	same := make([]float64, len(t.grad))
	t.prob.gradient(same, st.Point, t.there, weight)
	kernel.Axpy(-1, same, t.grad)
	kernel.Add(st.Gradient, t.grad)
	st.Visited += share
}
