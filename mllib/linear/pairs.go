package linear

import (
	"context"

	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
)

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
type pairSums struct{ Here, There fold.Gradient }

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

// pairPass folds rows at Y and at the solver's anchor, which is set anew where it is time,
// and returns the gradient of the objective on the same rows at the anchor, too.
func (t *trainer) pairPass(ctx context.Context, here linearParam) (fold.Gradient, []float64, error) {
	at := t.st.Solver.(solver.Anchored)
	if at.Anchor() == nil {
		g, err := t.plan.Gradient.Uncut().Run(ctx, t.Session, here)
		if err != nil {
			return fold.Gradient{}, nil, err
		}
		grad := make([]float64, t.prob.size())
		t.prob.gradient(grad, t.st.Y, g, t.Session.LastInfo().Weight)
		at.SetAnchor(t.st.Y, grad)
	}
	there := t.prob.param(at.Anchor())
	there.Width = here.Width
	s, err := t.plan.Pairs.Run(ctx, t.Session, pairParam{here, there})
	if err != nil {
		return fold.Gradient{}, nil, err
	}
	same := make([]float64, t.prob.size())
	t.prob.gradient(same, at.Anchor(), s.There, t.Session.LastInfo().Weight)
	return s.Here, same, nil
}
