package linear

import (
	"context"
	"encoding"

	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/rdd"
)

// pairOf are two parameters of a pass that folds the same rows at two models, or the sums at these.
type pairOf[T any] struct{ Here, There T }

type (
	pairParam = pairOf[linearParam]
	pairSums  = pairOf[fold.Gradient]
)

// MarshalBinary lays both out, the first one's length before it.
func (p pairOf[T]) MarshalBinary() ([]byte, error) {
	return num.PutPair(any(p.Here).(encoding.BinaryMarshaler).MarshalBinary,
		any(p.There).(encoding.BinaryMarshaler).MarshalBinary)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (p *pairOf[T]) UnmarshalBinary(raw []byte) error {
	return num.GetPair(raw, any(&p.Here).(encoding.BinaryUnmarshaler).UnmarshalBinary,
		any(&p.There).(encoding.BinaryUnmarshaler).UnmarshalBinary)
}

// pairsOf folds the same rows at two models.
func pairsOf[P, A any](one rdd.Aggregator[P, rdd.Point, A]) rdd.Aggregator[pairOf[P], rdd.Point, pairOf[A]] {
	return rdd.Aggregator[pairOf[P], rdd.Point, pairOf[A]]{
		Zero: func(p pairOf[P]) pairOf[A] { return pairOf[A]{one.Zero(p.Here), one.Zero(p.There)} },
		AddBatch: func(s pairOf[A], p pairOf[P], b *rdd.Batch) pairOf[A] {
			return pairOf[A]{one.AddBatch(s.Here, p.Here, b), one.AddBatch(s.There, p.There, b)}
		},
		Merge: func(a, b pairOf[A]) pairOf[A] {
			return pairOf[A]{one.Merge(a.Here, b.Here), one.Merge(a.There, b.There)}
		},
		Scale: func(a pairOf[A], f float64) pairOf[A] { return pairOf[A]{one.Scale(a.Here, f), one.Scale(a.There, f)} },
		Close: func(a pairOf[A], p pairOf[P], rows float64) pairOf[A] {
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
