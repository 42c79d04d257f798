package linear

import (
	"context"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// ClassBeginning is a multinomial model that training begins with, numbers and all.
type ClassBeginning struct {
	SoftmaxModel
	Numbers []float64 // the model's weights
}

// BeginWithClasses returns a model to begin with.
func BeginWithClasses(m *SoftmaxModel) *ClassBeginning { return &ClassBeginning{*m, m.weights} }

// sameKind reports whether training on a pack's rows can begin with a model.
func (t *softmax) sameKind(m *SoftmaxModel) error {
	var why string
	switch {
	case m.Features != t.meta.Features || m.IndexBase != t.meta.IndexBase:
		why = fmt.Sprintf("it has %d features counted from %d, this job %d counted from %d", m.Features, m.IndexBase,
			t.meta.Features, t.meta.IndexBase)
	case m.Margins != (t.cfg.Loss == OneVsRest):
		why = "one is by softmax, the other tells each class from the rest"
	case !slices.Equal(m.Labels, t.meta.Labels):
		why = fmt.Sprintf("its classes are %.200q, the data's are %.200q", m.Labels, t.meta.Labels)
	case len(m.Names) > 0 && len(t.meta.Names) > 0 && !slices.Equal(m.Names, t.meta.Names):
		why = fmt.Sprintf("its features are %.200q, those of the data %.200q", m.Names, t.meta.Names)
	default:
		return nil
	}
	return fault.Newf(fault.Usage, "begin with", "the model of --init", "%s", why)
}

// begin chooses the first point: that of a model given, or zero.
func (t *softmax) begin() error {
	n := t.prob.size() * len(t.label)
	method := t.method.New()
	if t.cfg.progresses(t.method) {
		t.part = solver.NewProgressive(float64(t.meta.Rows))
		method = t.part
	}
	t.st = train.NewState(n, t.cfg.StepSize, method)
	first := t.cfg.InitClasses
	if first == nil {
		return nil
	}
	if err := t.sameKind(&first.SoftmaxModel); err != nil {
		return err
	}
	k, w := len(t.label), make([]float64, t.meta.Features)
	for c := range k {
		for j := range w {
			w[j] = first.Numbers[j*k+c]
		}
		copy(t.of(t.st.Y, c), t.prob.variables(w, first.Intercepts[c]))
	}
	copy(t.st.X, t.st.Y)
	return nil
}

// atTheEnd reports whether a model given to begin with is the end of this very training.
func (t *softmax) atTheEnd(it *rdd.Iteration, o train.Observation) bool {
	first := t.cfg.InitClasses
	return first != nil && it.Number == 1 && o.Exact && first.Ended.is(&t.cfg, t.meta, o.Objective)
}

// weigh finds the weights of classes, and what these make of the weight of all rows.
func (t *softmax) weigh(ctx context.Context) error {
	t.prob.counted = 1
	if !t.cfg.Balanced && t.cfg.Classes == nil {
		return nil
	}
	k := len(t.label)
	if n := len(t.cfg.Classes); n > 0 && n != k {
		return fault.Newf(fault.Usage, "train", "--class-weights",
			"%d weights are given for %d classes, which are %.200q", n, k, t.meta.Labels)
	}
	s, err := t.plan.Counts.Run(ctx, t.Session, softmaxParam{K: k, Bias: make([]float64, k), Labels: t.label})
	if err != nil {
		return err
	}
	t.weights = t.cfg.Classes
	if t.cfg.Balanced {
		t.weights = make([]float64, k)
	}
	all, counted := t.meta.Weight(), 0.0
	for c, of := range s.Coef {
		if t.cfg.Balanced && of > 0 {
			t.weights[c] = all / float64(float64(k)*of)
		}
		counted += float64(t.weights[c] * of)
	}
	if !(counted > 0) {
		return fault.Newf(fault.Usage, "train", "--class-weights", "the weights of the rows sum to zero")
	}
	t.prob.counted = counted / all
	t.prob.steepest *= slices.Max(t.weights)
	return nil
}

// counts folds rows into what those of each class weigh.
func (f *softmaxFold) counts() rdd.Aggregator[softmaxParam, rdd.Point, fold.ClassSums] {
	a := f.aggregator(false)
	a.Zero = func(p softmaxParam) fold.ClassSums { return fold.ClassSums{Coef: make([]float64, p.K)} }
	a.AddBatch = func(s fold.ClassSums, p softmaxParam, b *rdd.Batch) fold.ClassSums {
		for _, r := range b.Rows {
			if k := slices.Index(p.Labels, b.Labels[r]); k >= 0 {
				s.Coef[k] += b.WeightOf(r)
			}
		}
		return s
	}
	a.Close = nil
	return a
}
