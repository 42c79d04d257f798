package mllib

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// LogisticConfig says what to train on and how. Objective: mean log-loss plus
// (Reg/2)·‖w‖², the intercept not penalized.
type LogisticConfig struct {
	Data          []string
	Input         rdd.Input
	Positive      string // label that counts as 1, all others as 0; empty: the greater of two
	Splits        int
	Random        bool
	Seed          uint64
	Float32       bool
	Solver        Solver
	StepSize      float64 // 0: chosen from the data (nesterov, constant), or 1 (sqrt)
	Reg           float64
	Intercept     bool
	Standardize   bool
	MaxIterations int
	Tol           float64
	Target        *float64 `json:",omitempty"`
	MaxTime       time.Duration
	Stop          StopRule
}

// LogisticPlan is the plan of a logistic regression.
type LogisticPlan struct {
	Rows     rdd.Packed[rdd.Point]
	Moments  rdd.Step[momentsParam, gradient]
	Gradient rdd.Step[linearParam, gradient]
	Loss     rdd.Step[linearParam, gradient]
	Sample   rdd.Action[[]rdd.Point]
	Scores   rdd.Scan[linearParam, []float64]
}

// sampleRows is how many rows the curvature is estimated from.
const sampleRows = 4096

// BuildLogistic declares the plan.
func BuildLogistic(g *rdd.Graph, c LogisticConfig) LogisticPlan {
	options := []rdd.PackOption{rdd.Splits(c.Splits), rdd.Seed(c.Seed), rdd.Columns(c.Input.Features, c.Input.IndexBase-1)}
	if c.Random {
		options = append(options, rdd.RandomAssign())
	}
	if c.Float32 {
		options = append(options, rdd.SinglePrecision())
	}
	rows := rdd.Pack(rdd.Points(g, c.Input, c.Data...), options...)
	return LogisticPlan{
		Rows:     rows,
		Moments:  rdd.Aggregate(rows, momentsAggregator()),
		Gradient: rdd.Aggregate(rows, logisticAggregator(), rdd.Aggressive(0)),
		Loss:     rdd.Aggregate(rows, lossAggregator()),
		Sample:   rdd.Prefix(rows, sampleRows),
		Scores:   rdd.ScanBatches(rows, addScores),
	}
}

// Trained is the outcome of a training run.
type Trained struct {
	Model      *LinearModel
	Objective  float64 // on all data, at the model
	Iterations int
	StoppedBy  string
	MeanShare  float64
	MeanNEff   float64
	Rows       int64
	Features   int
	Processed  int64 // rows folded and merged in training steps
	param      linearParam
}

// Metrics computes log_loss, accuracy and auc of the model on its training
// data.
func (t *Trained) Metrics(ctx context.Context, s *rdd.Session, p LogisticPlan) (map[string]float64, error) {
	splits, err := p.Scores.Run(ctx, s, t.param)
	if err != nil {
		return nil, err
	}
	all := make([]scored, 0, t.Rows)
	for _, pairs := range splits {
		for i := 0; i+1 < len(pairs); i += 2 {
			all = append(all, scored{pairs[i], pairs[i+1] == 1})
		}
	}
	return binaryMetrics(all), nil
}

// addScores appends margin and label of every row.
func addScores(out []float64, p linearParam, b *rdd.Batch) []float64 {
	z := make([]float64, len(b.Rows))
	dots(z, p.W, b, b.Rows)
	for i, r := range b.Rows {
		y := 0.0
		if b.Labels[r] == p.Positive {
			y = 1
		}
		out = append(out, z[i]+p.Bias, y)
	}
	return out
}

// trainer runs one logistic regression.
type trainer struct {
	cfg   LogisticConfig
	plan  LogisticPlan
	s     *rdd.Session
	meta  *storage.PackMeta
	prob  *problem
	st    state
	stop  stopper
	out   Trained
	grad  []float64
	began time.Duration
	spent time.Duration // on evaluation before the loop began
	steps float64       // of this run
}

// TrainLogistic runs the loop and returns the model.
func TrainLogistic(ctx context.Context, s *rdd.Session, c LogisticConfig, p LogisticPlan) (*Trained, error) {
	t := &trainer{cfg: c, plan: p, s: s}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	t.began, t.spent = s.Now(), s.EvaluationTime()
	work := context.WithoutCancel(ctx) // a step that has begun is finished
	for it := range rdd.Iterations(ctx, s, &t.st, c.MaxIterations) {
		if err := t.iterate(work, it); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// prepare loads the data and chooses variables and step size.
func (t *trainer) prepare(ctx context.Context) error {
	var err error
	if t.meta, err = t.plan.Rows.Meta(ctx, t.s); err != nil {
		return err
	}
	positive, labels, err := binaryLabels(t.meta, t.cfg.Positive)
	if err != nil {
		return err
	}
	t.out.Rows, t.out.Features = t.meta.Rows, t.meta.Features
	t.out.Model = &LinearModel{Job: "logistic", Labels: labels, Features: t.meta.Features, IndexBase: t.meta.IndexBase,
		TextLabels: t.meta.TextLabels, OneVsRest: t.cfg.Positive != "" && len(t.meta.Labels) != 2, Names: t.meta.Names, Label: t.meta.LabelName}
	m := moments{rows: float64(t.meta.Rows), sum: make([]float64, t.meta.Features), square: make([]float64, t.meta.Features)}
	if t.cfg.Standardize || t.cfg.Intercept || t.cfg.Solver == Nesterov {
		g, err := t.plan.Moments.Run(ctx, t.s, momentsParam{t.meta.Features, positive})
		if err != nil {
			return err
		}
		m.sum, m.square, m.positives = g.Sum[:t.meta.Features], g.Sum[t.meta.Features:], g.Coef
	}
	t.prob = newProblem(t.cfg, m, positive)
	n := t.prob.size()
	t.st = state{X: make([]float64, n), Y: make([]float64, n), T: 1, Step: t.cfg.StepSize}
	if t.cfg.Intercept { // the best constant model
		t.st.Y[n-1] = kernel.Log(m.positives) - kernel.Log(m.rows-m.positives)
		t.st.X[n-1] = t.st.Y[n-1]
	}
	t.grad = make([]float64, n)
	t.stop = stopper{rule: t.cfg.Stop, tol: t.cfg.Tol, target: t.cfg.Target, deadline: t.cfg.MaxTime, state: &t.st.Rules}
	return t.chooseStep(ctx)
}

// chooseStep sets the step size where the user has not.
func (t *trainer) chooseStep(ctx context.Context) error {
	if t.st.Step > 0 {
		return nil
	}
	if t.cfg.Solver == Sqrt {
		t.st.Step = 1
		return nil
	}
	sample, err := t.plan.Sample.Run(ctx, t.s)
	if err != nil {
		return err
	}
	t.st.Step = 1 / t.prob.lipschitz(sample)
	return nil
}

// binaryLabels finds the label that counts as 1, as it is stored, and the
// original labels of 0 and 1.
func binaryLabels(m *storage.PackMeta, positive string) (stored float64, labels [2]string, err error) {
	if positive != "" {
		for i, l := range m.Labels {
			if sameLabel(l, positive) {
				return storedLabel(m, i), [2]string{otherLabel(m, i), l}, nil
			}
		}
		return 0, labels, fault.Newf(fault.Usage, "train", "logistic", "no row has the label %q", positive).
			WithHint("--positive names a label of the data")
	}
	switch len(m.Labels) {
	case 2:
		return storedLabel(m, 1), [2]string{m.Labels[0], m.Labels[1]}, nil
	case 1:
		return 0, labels, fault.Newf(fault.BadInput, "train", "logistic", "every row has the label %s: there is nothing to tell apart", m.Labels[0])
	}
	return 0, labels, fault.Newf(fault.BadInput, "train", "logistic", "the data has %s distinct labels, not two", manyLabels(m)).
		WithHint("--positive LABEL trains one label against the rest; --label chooses the column")
}

func manyLabels(m *storage.PackMeta) string {
	if len(m.Labels) == 0 {
		return "very many"
	}
	return strconv.Itoa(len(m.Labels))
}

func storedLabel(m *storage.PackMeta, i int) float64 {
	if m.TextLabels {
		return float64(i)
	}
	v, _ := strconv.ParseFloat(m.Labels[i], 64) // it was formatted from a number
	return v
}

// otherLabel is what predictions call the rows that are not label i.
func otherLabel(m *storage.PackMeta, i int) string {
	if len(m.Labels) == 2 {
		return m.Labels[1-i]
	}
	return "rest"
}

func sameLabel(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}

// iterate takes one step of the loop.
func (t *trainer) iterate(ctx context.Context, it *rdd.Iteration) error {
	g, err := t.plan.Gradient.Run(ctx, t.s, t.prob.param(t.st.Y))
	if err != nil {
		return err
	}
	info := t.s.LastInfo()
	t.account(info)
	objective := t.prob.objective(t.st.Y, g.Loss, info.Weight)
	t.st.Latest = objective
	it.Report("objective", objective)
	o := observation{iteration: it.Number, objective: objective, exact: info.Merged == info.Rows, now: t.s.Now() - t.began - (t.s.EvaluationTime() - t.spent)}
	o.stderr = standardError(g, info)
	if !isFinite(objective) {
		return fault.Newf(fault.UserCode, "train", "logistic", "the objective is not finite at iteration %d", it.Number).
			WithHint("lower --step-size")
	}
	if done, err := t.judge(ctx, it, o); done || err != nil {
		return err
	}
	before := append([]float64(nil), t.st.Y...)
	t.prob.gradient(t.grad, t.st.Y, g, info.Weight)
	t.st.advance(t.cfg.Solver, t.grad)
	if t.cfg.Stop == ByWeights {
		o.hasMoved, o.moved, o.norm = true, distance(before, t.st.Y), math.Sqrt(kernel.Dot(t.st.Y, t.st.Y))
		if v := t.stop.check(o); v.stop != "" {
			t.end(it, v.stop)
		}
	}
	return nil
}

// judge applies the stop rules at the point where the gradient was taken; a
// run that stops keeps that point.
func (t *trainer) judge(ctx context.Context, it *rdd.Iteration, o observation) (done bool, err error) {
	t.out.Iterations = it.Number
	if t.cfg.Stop == ByWeights && t.cfg.Target == nil && t.cfg.MaxTime == 0 {
		return false, nil
	}
	v := t.stop.check(o)
	if v.look {
		if o.objective, err = t.evaluate(ctx, it.Number); err != nil {
			return false, err
		}
		o.exact = true
		it.Report("full_objective", o.objective)
		v = t.stop.looked(o)
	}
	if v.stop == "" {
		return false, nil
	}
	t.end(it, v.stop)
	if o.exact {
		t.out.Objective = o.objective
	}
	return true, nil
}

func (t *trainer) end(it *rdd.Iteration, why string) {
	t.out.StoppedBy = why
	it.Stop()
}

// account keeps the means that the result reports.
func (t *trainer) account(info rdd.StepInfo) {
	t.out.Processed += info.Merged
	t.steps++
	k := t.steps
	t.out.MeanShare += (info.Share - t.out.MeanShare) / k
	t.out.MeanNEff += (info.NEff - t.out.MeanNEff) / k
}

// standardError is that of the mean loss of a cut step (SEMANTICS section 4).
func standardError(g gradient, info rdd.StepInfo) float64 {
	if info.Merged == info.Rows || info.NEff <= 1 {
		return 0
	}
	mean := g.Loss / info.Weight
	variance := max(0, g.LossSq/info.Weight-float64(mean*mean))
	return math.Sqrt(variance / info.NEff * (1 - info.Share))
}

// evaluate finds the objective at Y on all data by an uncut pass.
func (t *trainer) evaluate(ctx context.Context, iteration int) (float64, error) {
	began := t.s.Now()
	g, err := t.plan.Loss.Run(ctx, t.s, t.prob.param(t.st.Y))
	if err != nil {
		return 0, err
	}
	f := t.prob.objective(t.st.Y, g.Loss, float64(t.meta.Rows))
	t.s.Evaluated(rdd.Evaluation{Iteration: iteration, Objective: f, Took: t.s.Now() - began})
	return f, nil
}

// finish evaluates the final parameters where their objective is not known
// and makes the model of them.
func (t *trainer) finish(ctx context.Context) (*Trained, error) {
	if t.out.StoppedBy == "" {
		t.out.StoppedBy = "max-iterations"
	}
	if err := ctx.Err(); err != nil {
		t.out.StoppedBy = "interrupted"
	} else if t.out.Objective == 0 {
		var err error
		if t.out.Objective, err = t.evaluate(ctx, t.out.Iterations); err != nil {
			return nil, err
		}
	}
	p := t.prob.param(t.st.Y)
	t.out.param, t.out.Model.Weights, t.out.Model.Intercept = p, p.W, p.Bias
	return &t.out, nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func distance(a, b []float64) float64 {
	var sq float64
	for j := range a {
		sq = math.FMA(a[j]-b[j], a[j]-b[j], sq)
	}
	return math.Sqrt(sq)
}
