package linear

import (
	"context"
	"math"
	"slices"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Metrics computes the metrics of the model on its training data.
func (t *Trained) Metrics(ctx context.Context, s *rdd.Session, p Plan) (map[string]float64, error) {
	splits, err := p.Scores.Run(ctx, s, t.param)
	if err != nil {
		return nil, err
	}
	all := make([]model.Scored, 0, t.Rows)
	for _, triples := range splits {
		for i := 0; i+2 < len(triples); i += 3 {
			all = append(all, model.Scored{Z: triples[i], Y: triples[i+1], Weight: triples[i+2]})
		}
	}
	return t.Model.metrics(all), nil
}

// trainer trains one linear model.
type trainer struct {
	train.Training
	cfg     Config // with the solver that was chosen
	plan    Plan
	meta    *pack.Meta
	prob    *problem
	method  *solver.Method
	st      state
	stop    train.Stopper
	out     Trained
	grad    []float64
	center  []float64           // that second moments are taken about
	dual    *solver.Ascent      // of solvers that ascend; nil of others
	inner   *solver.Inner       // of the interior-point method; nil of others
	part    *solver.Progressive // of L-BFGS where steps may be cut; nil of others
	led     *solver.Led         // of a hinge that dual ascent leads; nil of others
	sample  *solver.Growing     // of Newton's method where steps may be cut; nil of others
	about   []float64           // that dense rows are taken about by ascents; nil is zero
	held    *pack.Meta          // of the rows to stop by; nil without
	means   []float64           // of the features
	moments fold.Moments
}

// Train runs the loop and returns the model.
func Train(ctx context.Context, s *rdd.Session, c Config, p Plan) (*Trained, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &trainer{cfg: c, plan: p}
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

// rules returns what ends a run.
func (c *Config) rules() train.Rules {
	return train.Rules{Tol: c.Tol, Target: c.Target, Stop: c.Stop, MaxTime: c.MaxTime}
}

// prepare loads the data and chooses solver, variables and step size.
func (t *trainer) prepare(ctx context.Context) error {
	var err error
	if t.meta, err = t.plan.Rows.Meta(ctx, t.Session); err != nil {
		return err
	}
	if t.held, err = train.HeldMeta(ctx, t.Session, t.cfg.Input, t.plan.Held, t.meta); err != nil {
		return err
	}
	positive, labels, err := t.cfg.labels(t.meta)
	if err != nil {
		return err
	}
	if err := t.cfg.fitErrors(t.meta.Features); err != nil {
		return err
	}
	t.cfg.choosePenalty(&t.out.Summary, t.meta.Rows)
	if t.cfg.Solver == solver.Auto || t.cfg.Solver == "" {
		t.cfg.Solver, t.out.SolverWhy = t.cfg.choose(t.meta)
		t.chooseLed()
	}
	t.method = solver.Of(t.cfg.Solver)
	t.Begins(t.meta, t.cfg.Solver)
	t.ChosenLabel(t.cfg.Input, t.meta)
	t.out.Model = t.cfg.newModel(t.meta, labels)
	sample, err := t.plan.Sample.Run(ctx, t.Session)
	if err != nil {
		return err
	}
	m, err := t.Moments(ctx, t.meta, t.plan.Moments, sample, positive)
	if err != nil {
		return err
	}
	t.moments, t.means = m, m.Mean
	t.prob = newProblem(t.cfg, t.scales(), m, positive)
	if t.prob.mean != nil && t.meta.Layout == pack.DenseLayout {
		t.center = t.prob.mean
	}
	t.grad = make([]float64, t.prob.size())
	t.stop = train.Stopper{Rule: t.cfg.Stop, Tol: t.cfg.Tol, Target: t.cfg.Target, Deadline: t.cfg.MaxTime,
		State: &t.st.Rules}
	if err := t.begin(m); err != nil {
		return err
	}
	if err := t.narrow(ctx); err != nil {
		return err
	}
	switch t.method.Wants {
	case solver.Ascents:
		t.startAscent(m)
		return nil
	case solver.Interiors:
		t.startInterior()
		return nil
	}
	if t.cfg.samples(t.method) {
		return t.startSamples(ctx, m)
	}
	if err := t.startPart(ctx, m); err != nil {
		return err
	}
	t.method.Begin(&t.st.Point, func() float64 { return t.prob.steepnessOf(t.meta, sample, m) })
	return nil
}

// samples reports whether a method takes samples of the rows at first.
func (c *Config) samples(m *solver.Method) bool {
	return c.Cut && m.Samples && c.Loss != Hinge && c.Loss != Squared
}

// begin chooses the first point: that of a model given, or the best constant.
func (t *trainer) begin(m fold.Moments) error {
	n := t.prob.size()
	method := t.method.New()
	if t.led != nil {
		method = t.led
	}
	if t.cfg.progresses(t.method) {
		t.part = solver.NewProgressive(float64(t.meta.Rows))
		method = t.part
	}
	if t.cfg.samples(t.method) {
		method = &solver.Growing{}
	}
	t.st = state{State: train.NewState(n, t.cfg.StepSize, method), Width: t.cfg.width(t.method), Best: math.NaN()}
	switch {
	case t.cfg.Init != nil:
		if err := t.out.Model.sameKind(&t.cfg.Init.Model); err != nil {
			return err
		}
		copy(t.st.Y, t.prob.variables(t.cfg.Init.Numbers, t.cfg.Init.Intercept))
	case t.cfg.Intercept:
		t.st.Y[n-1] = t.cfg.constant(m, t.prob.weights)
	}
	copy(t.st.X, t.st.Y)
	return nil
}

// narrow chooses what the hinge is smoothed over about a model given to begin with: as
// much as hides no more than the tolerance. If the model is at the optimum, so it is of
// the loss that is smoothed so.
func (t *trainer) narrow(ctx context.Context) error {
	if t.cfg.Init == nil || t.cfg.Loss != Hinge || !t.method.Exact || t.method.Kinked || t.cfg.Tol <= 0 {
		return nil
	}
	p := t.prob.param(t.st.Y)
	for t.st.Width > leastWidth {
		p.Width = t.st.Width
		g, err := t.plan.Loss.Run(ctx, t.Session, p)
		if err != nil {
			return err
		}
		weight := t.Session.LastInfo().Weight
		f := t.prob.objective(t.st.Y, g.Loss, weight)
		if g.Gap/float64(weight*t.prob.counted) <= float64(t.cfg.Tol*max(1, math.Abs(f))) {
			break
		}
		t.st.Width = float64(narrower * t.st.Width)
	}
	return nil
}

// constant returns the intercept of the best model without features.
func (c *Config) constant(m fold.Moments, w [2]float64) float64 {
	if w == [2]float64{} {
		w = [2]float64{1, 1}
	}
	if c.Loss == Squared {
		return m.Labels / m.Weight
	}
	ones, zeros := float64(w[1]*m.Labels), float64(w[0]*(m.Weight-m.Labels))
	switch {
	case ones <= 0 || zeros <= 0:
		return 0
	case c.Loss == SquaredHinge:
		return (ones - zeros) / (ones + zeros)
	case c.Loss == Hinge && ones == zeros:
		return 0
	case c.Loss == Hinge:
		return math.Copysign(1, ones-zeros)
	}
	return kernel.Log(ones) - kernel.Log(zeros)
}

// What the hinge is smoothed over: by methods that need the same objective ever
// less, by those of first order always the same; by MLlib's not at all.
const (
	startWidth  = 4.0 // margins of 0 lie within
	steadyWidth = 0.02
	narrower    = 0.2
	leastWidth  = 1e-9
)

// width returns what the hinge is smoothed over at first.
func (c *Config) width(m *solver.Method) float64 {
	switch {
	case c.Loss != Hinge || m.Kinked:
		return 0
	case m.Exact:
		return startWidth
	}
	return steadyWidth
}

// pass folds all rows at Y: into the gradient, and into what else the solver wants.
func (t *trainer) pass(ctx context.Context) (g fold.Gradient, seen solver.Seen, err error) {
	p := t.prob.param(t.st.Y)
	p.Width = t.st.Width
	seen.Few = p.Width > 0
	switch t.method.Wants {
	case solver.Pairs:
		g, seen.Anchor, err = t.pairPass(ctx, p)
	case solver.Curvatures:
		var c curvature
		p.Shift = t.center
		if c, err = decides(t, t.plan.Curvature).Run(ctx, t.Session, p); err == nil {
			g, seen.H = c.Gradient, t.prob.hessian(c, p.Shift, t.Session.LastInfo().Weight)
		}
	default:
		g, err = decides(t, t.plan.Gradient).Run(ctx, t.Session, p)
	}
	return g, seen, err
}

// decides returns a step of a solver that holds one objective against another: over all rows, by leases where steps may
// be cut.
func decides[P, A any](t *trainer, s rdd.Step[P, A]) rdd.Step[P, A] {
	if t.cfg.Cut && t.method.Exact {
		return s.Uncut()
	}
	return s
}

// iterate takes one step of the loop.
func (t *trainer) iterate(ctx context.Context, it *rdd.Iteration) error {
	t.follow()
	switch {
	case t.part != nil && t.part.Share < 1:
		return t.progress(ctx, it)
	case t.dual != nil:
		return t.ascend(ctx, it)
	case t.inner != nil:
		return t.inward(ctx, it)
	case t.sample != nil:
		return t.grow(ctx, it)
	}
	g, seen, err := t.pass(ctx)
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	objective := t.prob.objective(t.st.Y, g.Loss, info.Weight)
	it.Report("objective", objective)
	o := t.Observed(it.Number, objective, t.StandardError(g.Loss, g.LossSq)/t.prob.counted)
	if t.method.Exact {
		if err := train.FiniteAtFirst(t.cfg.job(), objective); it.Number == 1 && err != nil {
			return err
		}
		if t.cfg.Loss == Hinge && o.Exact { // what is smoothed over much may fall while the loss rises
			t.st.Guard.Lowest(t.st.Y, objective)
		}
	} else if back, err := t.st.Away(ctx, it, t.cfg.job(), o, t.evaluate); back || err != nil {
		t.out.Iterations = it.Number
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
	if t.led != nil && it.Number >= leadingSteps+fewSteps {
		t.lowest(objective)
		t.goOn(solver.Interior)
		return nil
	}
	before := append([]float64(nil), t.at()...)
	t.prob.gradient(t.grad, t.st.Y, g, info.Weight)
	if !t.method.Exact {
		train.Signal(t.Session, g.Squares, info.Weight, float64(t.prob.counted*t.prob.steepness(t.grad, t.st.Y)), g.Sum,
			[]float64{g.Coef})
	}
	first := it.Number == 1 && o.Exact && t.cfg.Init != nil
	if first && t.cfg.Init.Ended.is(&t.cfg, t.meta, objective) {
		t.st.Best = objective
		t.End(it, "tolerance")
		copy(t.st.X, t.st.Y)
		return nil
	}
	gap := g.Gap / float64(info.Weight*t.prob.counted)
	seen.F, seen.G, seen.Lasso, seen.Share = objective+gap, t.grad, t.prob.lasso, info.Share
	if t.move(it.Number, &seen, objective, gap) {
		if on, err := t.goesOn(ctx); on || err != nil {
			return err
		}
		if proves, err := t.proves(ctx); proves || err != nil {
			return err
		}
		t.End(it, "tolerance")
		return nil
	}
	moved := num.Distance(before, t.at())
	if t.cfg.Stop == train.ByWeights && (moved > 0 || !t.method.Exact) {
		o.HasMoved, o.Moved, o.Norm = true, moved, math.Sqrt(kernel.Dot(t.at(), t.at()))
		if v := t.stop.Check(o); v.Stop != "" {
			t.End(it, v.Stop)
		}
	}
	return nil
}

// at returns the point that steps are judged by: with passes over all rows the last one accepted, since
// a line search tries others in between.
func (t *trainer) at() []float64 {
	if t.method.Exact {
		return t.st.X
	}
	return t.st.Y
}

// move takes what the pass has found out to the next point; over says that there
// is none better.
func (t *trainer) move(iteration int, seen *solver.Seen, objective, gap float64) (over bool) {
	moved := t.st.Solver.Step(&t.st.Point, seen)
	if !t.method.Exact {
		return false
	}
	falls, over, h := moved.Falls, moved.Over, seen.H
	if moved.Accepted {
		t.st.Best = objective
	}
	enough := float64(t.cfg.Tol * max(1, math.Abs(objective)))
	if t.cfg.Loss == Hinge && t.cfg.Init != nil && iteration == 1 && enough > 0 {
		if h == nil {
			falls = t.prob.above(t.grad, t.st.X)
		}
		if over || falls <= max(gap, enough) {
			return true
		}
		t.st.Width = steadyWidth // the model given is not at the optimum, but may be near
		t.st.Solver.Forget()
		copy(t.st.Y, t.st.X)
		return false
	}
	switch {
	case t.cfg.Loss == Hinge:
		if hides := max(gap, enough); !over &&
			(h != nil && falls > hides || h == nil && falls > float64(slowShare*hides)) {
			return false
		}
		if gap <= enough {
			t.st.Ahead = !over && h != nil
			return over || h != nil // the other rules end L-BFGS
		}
		t.st.Width = float64(narrower * t.st.Width)
		t.st.Solver.Forget() // what is known is of another width
		return false
	case h == nil:
		return over
	case moved.Unsure:
		return false
	case t.cfg.Loss == Squared && !over: // the model is the objective
		copy(t.st.X, t.st.Y)
		t.st.Best = math.NaN()
		return true
	}
	t.st.Ahead = !over && falls <= enough
	return over || t.st.Ahead
}

// slowShare is how little of what the smoothing hides a step of L-BFGS gains when it
// is time for less of it.
const slowShare = 0.02

// judge applies the stop rules at the point where the pass was made; a run that
// stops keeps that point.
func (t *trainer) judge(ctx context.Context, it *rdd.Iteration, o train.Observation) (done bool, err error) {
	t.out.Iterations = it.Number
	if t.cfg.Stop == train.ByWeights && t.cfg.Target == nil && t.cfg.MaxTime == 0 {
		return false, nil
	}
	why, o, err := t.Training.Judge(ctx, it, &t.stop, o, t.evaluate)
	if why == "" || err != nil {
		return false, err
	}
	if why == "tolerance" && t.narrower(o.Objective) {
		return false, nil
	}
	if why == "tolerance" && t.led != nil {
		t.lowest(o.Objective)
		if proves, err := t.proves(ctx); proves || err != nil {
			return true, err
		}
	}
	if why == "tolerance" && o.Exact && t.method.Exact && t.cfg.Loss != Hinge && t.stop.MayGoOn() {
		if _, err := t.certify(ctx); err != nil || !t.out.Converged {
			t.stop.GoOn()
			return false, err
		}
	}
	t.End(it, why)
	if t.method.Exact && o.Objective >= t.st.Best {
		return true, nil // the last step was not one downhill
	}
	copy(t.st.X, t.st.Y)
	if t.st.Best = math.NaN(); o.Exact {
		t.st.Best = o.Objective
	}
	return true, nil
}

// goesOn reports whether Newton's method, which would end where its next step promises
// no more than the tolerance, takes that step and goes on: where the result would not
// have converged. With an L1 penalty the gap closes slower than the error.
func (t *trainer) goesOn(ctx context.Context) (bool, error) {
	if !t.st.Ahead || !t.stop.MayGoOn() {
		return false, nil
	}
	objective, err := t.certify(ctx)
	if err != nil || t.out.Converged || !(objective <= t.st.Best) {
		return false, err
	}
	t.st.Ahead = false
	t.stop.GoOn()
	return true, nil
}

// narrower smooths the hinge over less, and reports whether it did: an objective that
// stalls while the loss is smoothed over much says little.
func (t *trainer) narrower(objective float64) bool {
	hides := t.st.Width / 8
	if !t.method.Exact || t.st.Width <= leastWidth || hides <= float64(t.cfg.Tol*max(1, math.Abs(objective))) {
		return false
	}
	t.st.Width = float64(narrower * t.st.Width)
	t.st.Solver.Forget()
	t.st.Rules.Streak = 0
	return true
}

// evaluate finds the objective at Y on all data by an uncut pass.
func (t *trainer) evaluate(ctx context.Context, iteration int) (float64, error) {
	began := t.Session.Now()
	g, err := t.plan.Loss.Run(ctx, t.Session, t.prob.param(t.st.Y))
	if err != nil {
		return 0, err
	}
	f := t.prob.objective(t.st.Y, g.Loss, t.Session.LastInfo().Weight)
	t.Session.Evaluated(rdd.Evaluation{Iteration: iteration, Objective: f, Took: t.Session.Now() - began})
	return f, nil
}

// finish evaluates the final parameters where their objective is not known
// and makes the model of them.
func (t *trainer) finish(ctx context.Context) (*Trained, error) {
	t.follow()
	why := t.WhyEnded()
	if t.dual != nil && why != "interrupted" {
		if err := t.checkDual(ctx); err != nil {
			return nil, err
		}
		t.st.Best = math.NaN()
	}
	if err := t.settle(ctx, why); err != nil {
		return nil, err
	}
	p := t.prob.param(t.st.Y)
	t.out.param, t.out.Model.Weights, t.out.Model.Intercept = p, p.W, p.Bias
	var err error
	t.out.Model.Quality = train.QualityOf(&t.out.Summary)
	if t.cfg.Errors && why != "interrupted" {
		if err := t.standardErrors(ctx); err != nil {
			return nil, err
		}
	}
	t.out.Model.Ended, err = t.cfg.ended(t.meta, &t.out.Summary, t.st.Guard.Halts > 0, t.st.Held.Point != nil)
	return &t.out, err
}

// settle chooses the point of the model, and bounds its quality. Where the user does not
// wait, nothing is looked at any more.
func (t *trainer) settle(ctx context.Context, why string) error {
	best := math.NaN()
	switch held := t.st.Held.Point; {
	case held != nil && why != "interrupted":
		copy(t.st.Y, held)
	case t.st.Ahead && why != "interrupted": // Y is to be looked at
	case t.method.Exact || why != "max-iterations":
		copy(t.st.Y, t.st.X) // Y has not been looked at
		best = t.st.Best
	}
	if t.out.Objective, t.out.Converged = best, false; why == "interrupted" {
		t.out.Gap = math.NaN()
		copy(t.st.X, t.st.Y)
		return nil
	}
	objective, err := t.certify(ctx)
	if err == nil && t.st.Ahead && t.st.Best < objective {
		copy(t.st.Y, t.st.X)
		objective, err = t.certify(ctx)
	}
	if err != nil {
		return err
	}
	settled := t.out.Converged && t.method.Exact
	if point, ok := t.st.Guard.Better(objective); ok && !settled && t.st.Held.Point == nil {
		copy(t.st.Y, point)
		if objective, err = t.certify(ctx); err != nil {
			return err
		}
		best = objective
	}
	if t.out.Objective = best; math.IsNaN(best) {
		t.out.Objective = objective
	}
	copy(t.st.X, t.st.Y)
	return nil
}

// heldLoss returns the loss of the linear model at Y on the rows held out.
func (t *trainer) heldLoss(ctx context.Context) (float64, error) {
	p := t.prob.param(t.st.Y)
	p.W = num.Resized(p.W, t.held.Features)
	g, err := t.plan.HeldLoss.Run(ctx, t.Session, p)
	return g.Loss / t.prob.counted, err
}
