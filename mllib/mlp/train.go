package mlp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Networked is the outcome of training a network.
type Networked struct {
	train.Summary
	Model    *Model
	Accuracy float64 // of a classifier, on the training data
	Loss     float64 // mean, without the penalty
}

// mlp trains one network.
type trainer struct {
	train.Training
	cfg  Config
	plan Plan
	meta *pack.Meta
	net  network
	st   train.State
	stop train.Stopper
	out  Networked
	held *pack.Meta // of the rows to stop by; nil without
}

// Train runs the loop and returns the model.
func Train(ctx context.Context, s *rdd.Session, c Config, p Plan) (*Networked, error) {
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
	if err := train.Loop(ctx, &t.Training, &t.st, t.cfg.MaxIterations, train.Rules{Tol: c.Tol,
		Target: c.Target, MaxTime: c.MaxTime}, t.iterate); err != nil {
		return nil, err
	}
	return t.finish(ctx)
}

// draw draws the first weights: uniform, as wide as Glorot and Bengio have it.
func (t *trainer) draw(v []float64) {
	rng := rand.New(rand.NewPCG(t.cfg.Seed, 3))
	for l := 1; l < len(t.net.Sizes); l++ {
		w, _ := t.net.layer(v, l)
		wide := math.Sqrt(6 / float64(t.net.Sizes[l-1]+t.net.Sizes[l]))
		for j := range w {
			w[j] = float64(wide * (float64(2*rng.Float64()) - 1))
		}
	}
}

// prepare loads the data, and begins with a model's weights, or with drawn ones.
func (t *trainer) prepare(ctx context.Context) error {
	var err error
	if t.meta, err = t.plan.Rows.Meta(ctx, t.Session); err != nil {
		return err
	}
	if t.held, err = train.HeldMeta(ctx, t.Session, t.cfg.Input, t.plan.Held, t.meta); err != nil {
		return err
	}
	last := 1
	switch {
	case t.cfg.Regression && t.meta.TextLabels:
		return fault.Newf(fault.BadInput, "train", "mlp", "its labels are texts, such as %q", t.meta.Labels[0]).
			WithHint("leave --regression out, or choose the column with --label")
	case !t.cfg.Regression:
		if last = len(t.meta.Labels); last < 2 {
			return fault.Newf(fault.BadInput, "train", "mlp",
				"the label column has %s distinct values: a classifier needs 2 to 1000",
				train.ManyLabels(t.meta)).
				WithHint("--regression fits numbers")
		}
		for k := range t.meta.Labels {
			t.net.Labels = append(t.net.Labels, train.StoredLabel(t.meta, k))
		}
	}
	t.net.Sizes = append(append([]int{t.meta.Features}, t.cfg.Hidden...), last)
	if err := t.units(ctx); err != nil {
		return err
	}
	n := numbers(t.net.Sizes)
	t.st = train.NewState(n, t.stepSize(), t.cfg.solver())
	if first := t.cfg.Init; first == nil {
		t.draw(t.st.Y)
	} else if err := first.sameData(t.meta, t.net.Sizes); err != nil {
		return err
	} else {
		t.net.begin(t.st.Y, first.Numbers)
	}
	t.Begins(t.meta, t.cfg.Solver)
	t.ChosenLabel(t.cfg.Input, t.meta)
	if t.cfg.Bounded != nil {
		t.chooseClocks()
	} else {
		t.chooseBatches()
	}
	t.stop = train.Stopper{Rule: train.ByObjective, Tol: t.cfg.Tol, Target: t.cfg.Target, Deadline: t.cfg.MaxTime,
		State: &t.st.Rules}
	return nil
}

// What steps of some rows are like: the least rows, the most steps a pass;
// the most passes and steps, but steps enough for few rows.
const (
	leastBatch  = 200
	mostBatches = 500
	mostPasses  = 100
	leastSteps  = 1_000
	mostSteps   = 20_000
	batchedStep = 0.001
	wholeStep   = 0.003
)

// chooseClocks chooses how many clocks workers have.
func (t *trainer) chooseClocks() {
	if t.cfg.Passes {
		t.cfg.MaxIterations = int(math.Ceil(mostPasses / t.cfg.Bounded.Passes))
		t.Summary.Chosen = append(t.Summary.Chosen,
			fmt.Sprintf("at most %d clocks: %d passes over the rows; --max-iterations sets another number",
				t.cfg.MaxIterations, mostPasses))
	}
}

// chooseBatches chooses how many rows a step folds, and how many steps there are.
func (t *trainer) chooseBatches() {
	rows := float64(t.meta.Rows)
	each := rows
	if t.cfg.Batches {
		each = min(rows, math.Ceil(max(leastBatch, rows/mostBatches)))
		t.Session.Batch(each / rows)
		t.Summary.Chosen = append(t.Summary.Chosen,
			fmt.Sprintf("steps of %.0f of %.0f rows; --batch-fraction sets another share, 1 all", each, rows))
	}
	if t.cfg.Passes {
		a := math.Ceil(rows / each)
		passes := math.Ceil(max(min(mostPasses, mostSteps/a), leastSteps/a))
		t.cfg.MaxIterations = int(passes * a)
		t.Summary.Chosen = append(t.Summary.Chosen,
			fmt.Sprintf("at most %d steps: %.0f passes over the rows; --max-iterations sets another number",
				t.cfg.MaxIterations, passes))
	}
}

// stepSize returns the size of the first step.
func (t *trainer) stepSize() float64 {
	switch {
	case t.cfg.StepSize > 0:
		return t.cfg.StepSize
	case t.cfg.Solver == solver.Constant:
		return 0.1
	case t.cfg.Batches || t.cfg.Bounded != nil:
		return batchedStep
	}
	return wholeStep
}

func (t *trainer) param() network {
	n := t.net
	n.V = t.st.Y
	return n
}

// objective returns mean loss plus penalty.
func (t *trainer) objective(loss, weight float64) float64 {
	var sq float64
	for l := 1; l < len(t.net.Sizes); l++ {
		w, _ := t.net.layer(t.st.Y, l)
		sq += kernel.Dot(w, w)
	}
	return math.FMA(t.cfg.Reg/2, sq, loss/weight)
}

// iterate takes one step of the loop.
func (t *trainer) iterate(ctx context.Context, it *rdd.Iteration) error {
	s, err := t.plan.Gradient.Run(ctx, t.Session, t.param())
	if err != nil {
		return err
	}
	info := t.Session.LastInfo()
	t.out.Iterations = it.Number
	objective := t.objective(s.Loss, info.Weight)
	it.Report("objective", objective)
	if !num.Finite(objective) {
		return fault.Newf(fault.UserCode, "train", "mlp", "the objective is not finite at iteration %d", it.Number).
			WithHint("lower --step-size")
	}
	o := t.Observed(it.Number, objective, t.StandardError(s.Loss, s.LossSq))
	why, _, err := t.Judge(ctx, it, &t.stop, o, t.evaluate)
	if err != nil {
		return err
	}
	if why != "" {
		t.End(it, why)
		return nil
	}
	if stop, err := t.StopsEarly(ctx, it, t.held, &t.st.Held, t.st.Y, t.cfg.Patience, t.heldLoss); stop || err != nil {
		return err
	}
	train.Signal(t.Session, s.Squares, info.Weight, math.Sqrt(num.SquaredLength(s.Sum))/info.Weight, s.Sum)
	t.move(s.Sum, info.Weight)
	return nil
}

// descent turns a sum of rows' gradients into the gradient of mean loss and penalty.
func (n *network) descent(sum []float64, reg, weight float64) {
	kernel.Scale(1/weight, sum)
	for l := 1; l < len(n.Sizes); l++ {
		w, _ := n.layer(n.V, l)
		g, _ := n.layer(sum, l)
		kernel.Axpy(reg, w, g)
	}
}

// move takes one step along the mean gradient.
func (t *trainer) move(sum []float64, weight float64) {
	whole := t.param()
	whole.descent(sum, t.cfg.Reg, weight)
	t.st.Solver.Step(&t.st.Point, &solver.Seen{G: sum})
}

// evaluate finds the objective on all data by an uncut pass.
func (t *trainer) evaluate(ctx context.Context, iteration int) (float64, error) {
	began := t.Session.Now()
	s, err := t.plan.Loss.Run(ctx, t.Session, t.param())
	if err != nil {
		return 0, err
	}
	rows := t.Session.LastInfo().Weight
	t.out.Accuracy, t.out.Loss = s.Right/rows, float64(t.net.Deviation*t.net.Deviation)*s.Loss/rows
	f := t.objective(s.Loss, rows)
	t.Session.Evaluated(rdd.Evaluation{Iteration: iteration, Objective: f, Took: t.Session.Now() - began})
	return f, nil
}

// finish evaluates the final network and makes the model of it.
func (t *trainer) finish(ctx context.Context) (*Networked, error) {
	if best := t.st.Held.Point; best != nil {
		copy(t.st.Y, best)
	}
	if t.out.Objective = math.NaN(); t.WhyEnded() != "interrupted" {
		var err error
		if t.out.Objective, err = t.evaluate(ctx, t.out.Iterations); err != nil {
			return nil, err
		}
	}
	whole := t.param()
	t.out.Model = &Model{RowModel: model.RowModel{Labels: t.meta.Labels, TextLabels: t.meta.TextLabels,
		Features: t.meta.Features, IndexBase: t.meta.IndexBase, Prepared: t.meta.Prepared,
		Names: t.meta.Names, Label: t.meta.LabelName, Weight: t.meta.WeightName}, Layers: t.net.Sizes,
		Activation: t.cfg.Activation, numbers: whole.plain()}
	if t.cfg.Regression {
		t.out.Model.Labels = nil
	}
	return &t.out, nil
}

// heldLoss returns the loss of the network at Y on the rows held out.
func (t *trainer) heldLoss(ctx context.Context) (float64, error) {
	net := t.param()
	first := net.Sizes[1]
	inputs := num.Resized(net.V[:net.Sizes[0]*first], t.held.Features*first) // a row of weights for each
	net.V = slices.Concat(inputs, net.V[net.Sizes[0]*first:])
	net.Sizes = slices.Concat([]int{t.held.Features}, net.Sizes[1:])
	if net.Mean != nil {
		net.Mean, net.Unit = num.Resized(net.Mean, t.held.Features), num.Resized(net.Unit, t.held.Features)
	}
	s, err := t.plan.HeldLoss.Run(ctx, t.Session, net)
	return s.Loss, err
}
