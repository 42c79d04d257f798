package linear

import (
	"context"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Classified is the outcome of training a model of several classes.
type Classified struct {
	train.Summary
	Model    *SoftmaxModel
	Accuracy float64 // on the training data
	LogLoss  float64 // the mean loss, of whatever kind it is
}

// softmax trains one model. Its variables are those of one class after the other,
// each as a problem of its own has them.
type softmax struct {
	train.Training
	cfg     Config
	plan    SoftmaxPlan
	meta    *pack.Meta
	prob    *problem
	label   []float64 // of each class, as stored
	weights []float64 // of classes; nil is ones
	lasso   []float64 // of all variables
	method  *solver.Method
	st      train.State
	stop    train.Stopper
	out     Classified
	grad    []float64
	best    float64    // objective at X; NaN where it is not known
	held    *pack.Meta // of the rows to stop by; nil without
	moments fold.Moments
	part    *solver.Progressive // of L-BFGS where steps may be cut; nil of others
}

// TrainSoftmax runs the loop and returns the model.
func TrainSoftmax(ctx context.Context, s *rdd.Session, c Config, p SoftmaxPlan) (*Classified, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &softmax{cfg: c, plan: p, best: math.NaN()}
	t.Training = train.Training{Session: s, Summary: &t.out.Summary, Ending: &t.st.Ending}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	if c.Bounded != nil {
		if err := t.trainBounded(ctx); err != nil {
			return nil, err
		}
		return t.finish(context.WithoutCancel(ctx))
	}
	if err := train.Loop(ctx, &t.Training, &t.st, c.MaxIterations, c.rules(), t.iterate); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// prepare loads the data and chooses solver, variables and step size.
func (t *softmax) prepare(ctx context.Context) error {
	var err error
	if t.meta, err = t.plan.Rows.Meta(ctx, t.Session); err != nil {
		return err
	}
	if t.held, err = train.HeldMeta(ctx, t.Session, t.cfg.Input, t.plan.Held, t.meta); err != nil {
		return err
	}
	if len(t.meta.Labels) < 2 {
		return fault.Newf(fault.BadInput, "train", t.cfg.job(),
			"the label column has %s distinct values: a classifier needs 2 to 1000", train.ManyLabels(t.meta)).
			WithHint("--label chooses the column")
	}
	for k := range t.meta.Labels {
		t.label = append(t.label, train.StoredLabel(t.meta, k))
	}
	t.cfg.choosePenalty(&t.out.Summary, t.meta.Rows)
	if t.cfg.Solver == solver.Auto || t.cfg.Solver == "" {
		if t.cfg.Solver, t.out.SolverWhy = t.cfg.chooseWide("there are several classes"); t.cfg.Bounded != nil {
			t.cfg.Solver, t.out.SolverWhy = t.cfg.choose(t.meta)
		}
	}
	t.method = solver.Of(t.cfg.Solver)
	t.Begins(t.meta, t.cfg.Solver)
	t.ChosenLabel(t.cfg.Input, t.meta)
	sample, err := t.plan.Sample.Run(ctx, t.Session)
	if err != nil {
		return err
	}
	m, err := t.Moments(ctx, t.meta, t.plan.Moments, sample, 0)
	if err != nil {
		return err
	}
	t.moments = m
	alike := t.cfg
	alike.Balanced = false // of two classes
	t.prob = newProblem(alike, t.method, m, 0)
	if t.prob.steepest = 0.5; t.cfg.Loss == OneVsRest { // of all classes together (Böhning)
		t.prob.steepest = 2 // each class has margins of its own
	}
	if err := t.weigh(ctx); err != nil {
		return err
	}
	for range t.label {
		t.lasso = append(t.lasso, t.prob.lasso...)
	}
	t.grad = make([]float64, t.prob.size()*len(t.label))
	if err := t.begin(); err != nil {
		return err
	}
	t.stop = train.Stopper{Rule: t.cfg.Stop, Tol: t.cfg.Tol, Target: t.cfg.Target, Deadline: t.cfg.MaxTime,
		State: &t.st.Rules}
	t.method.Begin(&t.st.Point, func() float64 { return t.prob.steepnessOf(t.meta, sample, m) })
	if t.part == nil {
		return nil
	}
	start := math.Log(float64(len(t.label))) // of margins of zero
	if t.cfg.Loss == OneVsRest {
		if start, err = t.evaluate(ctx, 0); err != nil {
			return err
		}
	}
	t.st.Guard.Note(t.st.Y, start, true)
	return nil
}

// of returns the part of all variables that class k has.
func (t *softmax) of(v []float64, k int) []float64 {
	n := t.prob.size()
	return v[k*n : (k+1)*n]
}

// param returns the model that variables stand for.
func (t *softmax) param(v []float64) softmaxParam {
	k, d := len(t.label), t.meta.Features
	p := softmaxParam{K: k, D: d, Labels: t.label, Counts: t.weights}
	t.prob.classesParam(&p, v)
	return p
}

// classesParam sets the weights of several classes by their variables.
func (p *problem) classesParam(out *softmaxParam, v []float64) {
	if out.W == nil {
		out.W, out.Bias = make([]float64, out.K*out.D), make([]float64, out.K)
	}
	for c := range out.K {
		one := p.param(v[c*p.size() : (c+1)*p.size()])
		out.Bias[c] = one.Bias
		for j, w := range one.W {
			out.W[j*out.K+c] = w
		}
	}
}

// objective returns mean loss plus penalty.
func (t *softmax) objective(v []float64, loss, weight float64) float64 {
	f := loss / float64(weight*t.prob.counted)
	for k := range t.label {
		f += t.prob.objective(t.of(v, k), 0, 1)
	}
	return f
}

// gradient turns sums over rows into derivatives by variable.
func (t *softmax) gradient(v []float64, s fold.ClassSums, weight float64) {
	t.slopes(t.grad, s, weight)
	for i, x := range v {
		if j := i % t.prob.size(); j < len(t.prob.penalty) {
			t.grad[i] = math.FMA(float64(t.prob.reg*t.prob.penalty[j]), x, t.grad[i])
		}
	}
}

// slopes turns sums over rows into the gradient of the mean loss in the variables.
func (t *softmax) slopes(out []float64, s fold.ClassSums, weight float64) {
	k, sum := len(t.label), make([]float64, t.meta.Features)
	for c := range k {
		for j := range sum {
			sum[j] = s.Sum[j*k+c]
		}
		t.prob.slopes(t.of(out, c), sum, s.Coef[c], weight)
	}
}

// iterate takes one step of the loop.
func (t *softmax) iterate(ctx context.Context, it *rdd.Iteration) error {
	if t.part != nil && t.part.Share < 1 {
		return t.progress(ctx, it)
	}
	step := t.plan.Gradient
	if t.cfg.Cut && t.method.Exact {
		step = step.Uncut()
	}
	s, err := step.Run(ctx, t.Session, t.param(t.st.Y))
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	t.out.Iterations = it.Number
	objective := t.objective(t.st.Y, s.Loss, info.Weight)
	it.Report("objective", objective)
	o := t.Observed(it.Number, objective, t.StandardError(s.Loss, s.LossSq)/t.prob.counted)
	if t.method.Exact {
		if err := train.FiniteAtFirst(t.cfg.job(), objective); it.Number == 1 && err != nil {
			return err
		}
	} else if back, err := t.st.Away(ctx, it, t.cfg.job(), o, t.evaluate); back || err != nil {
		return err
	}
	if done, err := t.judge(ctx, it, o); done || err != nil {
		return err
	}
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	if t.part != nil && t.part.Begins() && !(objective <= t.st.Guard.F) && !slices.Equal(t.st.Y, t.st.Guard.Point) {
		t.part.Return(&t.st.Point, t.st.Guard.Point) // samples led astray
		return nil
	}
	before := append([]float64(nil), t.at()...)
	t.gradient(t.st.Y, s, info.Weight)
	if t.atTheEnd(it, o) {
		t.End(it, "tolerance")
		copy(t.st.X, t.st.Y)
		return nil
	}
	if !t.method.Exact {
		train.Signal(t.Session, s.Squares, info.Weight, t.steepness(), s.Sum, s.Coef)
	}
	moved := t.st.Solver.Step(&t.st.Point, &solver.Seen{F: objective, G: t.grad, Lasso: t.penalty(), Share: info.Share})
	if moved.Over {
		t.End(it, "tolerance")
		return nil
	}
	if moved.Accepted {
		t.best = objective
	}
	way := num.Distance(before, t.at())
	if t.cfg.Stop == train.ByWeights && (moved.Accepted && way > 0 || !t.method.Exact) {
		o.HasMoved, o.Moved, o.Norm = true, way, math.Sqrt(kernel.Dot(t.at(), t.at()))
		if v := t.stop.Check(o); v.Stop != "" {
			t.End(it, v.Stop)
		}
	}
	return nil
}

// steepness returns how long the gradient is, as sums over rows have it.
func (t *softmax) steepness() float64 {
	var steep float64
	for k := range t.label {
		one := t.prob.steepness(t.of(t.grad, k), t.of(t.st.Y, k))
		steep = math.FMA(one, one, steep)
	}
	return float64(t.prob.counted * math.Sqrt(steep))
}

// at returns the point that steps are judged by: with passes over all rows the last one accepted, since
// a line search tries others in between.
func (t *softmax) at() []float64 {
	if t.method.Exact {
		return t.st.X
	}
	return t.st.Y
}

// penalty returns the L1 weight of each variable; nil without one.
func (t *softmax) penalty() []float64 {
	if t.prob.lasso == nil {
		return nil
	}
	return t.lasso
}

// judge applies the stop rules at the point where the pass was made; a run that
// stops keeps that point.
func (t *softmax) judge(ctx context.Context, it *rdd.Iteration, o train.Observation) (done bool, err error) {
	if t.cfg.Stop == train.ByWeights && t.cfg.Target == nil && t.cfg.MaxTime == 0 {
		return false, nil
	}
	why, o, err := t.Training.Judge(ctx, it, &t.stop, o, t.evaluate)
	if why == "" || err != nil {
		return false, err
	}
	certified := why == "tolerance" && o.Exact && t.method.Exact && t.stop.MayGoOn()
	if certified {
		if err := t.certify(ctx); err != nil || !t.out.Converged {
			t.stop.GoOn()
			return false, err
		}
	}
	if t.End(it, why); t.method.Exact && !certified && o.Objective >= t.best {
		return true, nil // the last step was not one downhill
	}
	copy(t.st.X, t.st.Y)
	return true, nil
}

// evaluate finds the objective at Y on all data by an uncut pass.
func (t *softmax) evaluate(ctx context.Context, iteration int) (float64, error) {
	began := t.Session.Now()
	s, err := t.plan.Loss.Run(ctx, t.Session, t.param(t.st.Y))
	if err != nil {
		return 0, err
	}
	weight := t.Session.LastInfo().Weight
	t.out.Accuracy, t.out.LogLoss = s.Right/weight, s.Loss/weight
	f := t.objective(t.st.Y, s.Loss, weight)
	t.Session.Evaluated(rdd.Evaluation{Iteration: iteration, Objective: f, Took: t.Session.Now() - began})
	return f, nil
}

// measure finds accuracy and log-loss where classes count differently: these are of
// rows that count alike.
func (t *softmax) measure(ctx context.Context) error {
	if t.weights == nil {
		return nil
	}
	p := t.param(t.st.Y)
	p.Counts = nil
	s, err := t.plan.Loss.Run(ctx, t.Session, p)
	weight := t.Session.LastInfo().Weight
	t.out.Accuracy, t.out.LogLoss = s.Right/weight, s.Loss/weight
	return err
}

// finish evaluates the final parameters and makes the model of them.
func (t *softmax) finish(ctx context.Context) (*Classified, error) {
	why := t.WhyEnded()
	if t.method.Exact || why != "max-iterations" {
		copy(t.st.Y, t.st.X) // Y has not been looked at
	}
	if why == "interrupted" {
		t.out.Objective, t.out.Gap, t.out.Converged = math.NaN(), math.NaN(), false
	} else if best := t.st.Held.Point; best != nil {
		copy(t.st.Y, best)
	}
	if why != "interrupted" {
		if err := t.certify(ctx); err != nil {
			return nil, err
		}
		if best, ok := t.st.Guard.Better(t.out.Objective); ok && t.st.Held.Point == nil {
			copy(t.st.Y, best)
			if err := t.certify(ctx); err != nil {
				return nil, err
			}
		}
		if err := t.measure(ctx); err != nil {
			return nil, err
		}
	}
	p := t.param(t.st.Y)
	t.out.Model = &SoftmaxModel{RowModel: model.RowModel{Margins: t.cfg.Loss == OneVsRest, Labels: t.meta.Labels,
		TextLabels: t.meta.TextLabels,
		Features:   t.meta.Features, IndexBase: t.meta.IndexBase, Prepared: t.meta.Prepared,
		Names: t.meta.Names, Label: t.meta.LabelName, Weight: t.meta.WeightName}, Intercepts: p.Bias, weights: p.W}
	var err error
	t.out.Model.Quality = train.QualityOf(&t.out.Summary)
	t.out.Model.Ended, err = t.cfg.ended(t.meta, &t.out.Summary, t.st.Guard.Halts > 0, t.st.Held.Point != nil)
	return &t.out, err
}

// heldLoss returns the loss of the model at Y on the rows held out.
func (t *softmax) heldLoss(ctx context.Context) (float64, error) {
	p := t.param(t.st.Y)
	p.D = t.held.Features
	p.W = num.Resized(p.W, p.D*p.K)
	s, err := t.plan.HeldLoss.Run(ctx, t.Session, p)
	return s.Loss / t.prob.counted, err
}
