package linear

import (
	"context"
	"errors"
	"slices"

	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// progresses reports whether L-BFGS begins on samples of the rows.
func (c *Config) progresses(m *solver.Method) bool {
	return c.Cut && m.Name == solver.LBFGS && c.Loss != Hinge && c.Init == nil && c.InitClasses == nil
}

// startPart notes the objective where L-BFGS begins on samples, so that the run ends nowhere above.
func (t *trainer) startPart(ctx context.Context, m fold.Moments) (err error) {
	if t.part == nil {
		return nil
	}
	start := t.prob.objective(t.st.Y, t.constantLoss(m), m.Weight)
	if t.cfg.Loss == Squared {
		if start, err = t.evaluate(ctx, 0); err != nil {
			return err
		}
	}
	t.st.Guard.Note(t.st.Y, start, true)
	return nil
}

// progress takes one step of L-BFGS on a sample of the rows, which may be cut.
func (t *trainer) progress(ctx context.Context, it *rdd.Iteration) error {
	t.Session.Sample(t.part.Share)
	defer t.Session.Sample(0)
	s, err := t.plan.Pairs.Run(ctx, t.Session, pairParam{t.prob.param(t.st.Y), t.prob.param(t.st.X)})
	if errors.Is(err, rdd.ErrNoWeight) {
		t.part.All()
		return nil
	}
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	seen := solver.Seen{F: t.prob.objective(t.st.Y, s.Here.Loss, info.Weight), Share: info.Share,
		AnchorF: t.prob.objective(t.st.X, s.There.Loss, info.Weight), Anchor: make([]float64, len(t.grad))}
	o := t.Observed(it.Number, seen.F, t.StandardError(s.Here.Loss, s.Here.LossSq)/t.prob.counted)
	if over, err := t.JudgeSample(it, t.cfg.job(), &t.stop, o); over || err != nil {
		return err
	}
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	t.prob.gradient(seen.Anchor, t.st.X, s.There, info.Weight)
	t.prob.gradient(t.grad, t.st.Y, s.Here, info.Weight)
	steep := float64(t.prob.counted * t.prob.steepness(t.grad, t.st.Y))
	seen.Noise = train.Noise(len(t.meta.Splits), s.Here.Squares, info.Weight, steep, s.Here.Sum, []float64{s.Here.Coef})
	seen.G = t.grad
	t.st.Solver.Step(&t.st.Point, &seen)
	return nil
}

// progress takes one step of L-BFGS on a sample of the rows, which may be cut.
func (t *softmax) progress(ctx context.Context, it *rdd.Iteration) error {
	t.Session.Sample(t.part.Share)
	defer t.Session.Sample(0)
	s, err := t.plan.Pairs.Run(ctx, t.Session, pairOf[softmaxParam]{t.param(t.st.Y), t.param(t.st.X)})
	if errors.Is(err, rdd.ErrNoWeight) {
		t.part.All()
		return nil
	}
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	seen := solver.Seen{F: t.objective(t.st.Y, s.Here.Loss, info.Weight), Share: info.Share,
		AnchorF: t.objective(t.st.X, s.There.Loss, info.Weight)}
	o := t.Observed(it.Number, seen.F, t.StandardError(s.Here.Loss, s.Here.LossSq)/t.prob.counted)
	if over, err := t.JudgeSample(it, t.cfg.job(), &t.stop, o); over || err != nil {
		return err
	}
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	t.gradient(t.st.X, s.There, info.Weight)
	seen.Anchor = slices.Clone(t.grad)
	t.gradient(t.st.Y, s.Here, info.Weight)
	seen.Noise = train.Noise(len(t.meta.Splits), s.Here.Squares, info.Weight, t.steepness(), s.Here.Sum, s.Here.Coef)
	seen.G = t.grad
	t.st.Solver.Step(&t.st.Point, &seen)
	return nil
}
