package linear

import (
	"fmt"
	"time"

	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// Loss is what a linear model is fitted by.
type Loss string

// The losses of a row with margin m = w·x + b. For the first three the label y
// is 0 or 1, and s = 2y − 1; for Squared it is a number.
const (
	Logistic     Loss = "logistic"      // log(1 + e^m) − y·m
	Hinge        Loss = "hinge"         // max(0, 1 − s·m)
	SquaredHinge Loss = "squared-hinge" // max(0, 1 − s·m)²
	Squared      Loss = "squared"       // (m − y)²/2
	Softmax      Loss = "softmax"       // of several classes: log Σ e^{m_k} − m_y
	// OneVsRest is, of several classes, Σ_k max(0, 1 − s_k·m_k)², s_k being 1 for the row's class and −1 for others.
	OneVsRest Loss = "one-vs-rest"
)

// several reports whether the loss is one of several classes.
func (l Loss) several() bool { return l == Softmax || l == OneVsRest }

// ParseLoss returns the loss of a name.
func ParseLoss(name string) (Loss, error) {
	switch l := Loss(name); l {
	case Logistic, Hinge, SquaredHinge, Squared:
		return l, nil
	}
	return "", fmt.Errorf("%q is not one of logistic, hinge, squared-hinge, squared", name)
}

// kind returns the loss as kernels know it.
func (l Loss) kind() kernel.LossKind {
	switch l {
	case Hinge:
		return kernel.HingeLoss
	case SquaredHinge:
		return kernel.SquaredHingeLoss
	case Squared:
		return kernel.SquaredLoss
	}
	return kernel.LogisticLoss
}

// Config configures the training of a linear model. Objective: mean loss plus
// Reg·(Alpha·‖w‖₁ + (1−Alpha)/2·‖w‖²), the intercept not penalized.
type Config struct {
	Job           string // names the model; empty is the loss
	Loss          Loss   // empty is Logistic
	Data          []string
	Input         rdd.Input
	Positive      string // label that counts as 1, all others as 0; empty: the greater of two
	Splits        int
	Random        bool
	Seed          uint64
	Float32       bool
	Solver        solver.Name
	Cut           bool    // steps may end before all rows are processed
	Batches       bool    `json:",omitempty"` // steps are to be of a share of each split
	StepSize      float64 // 0: chosen from the data (gd, nesterov, constant), 1 (sqrt) or 0.1 (adam)
	Reg           float64
	RegPerRow     bool `json:",omitempty"` // Reg is 1/n, n being how many rows there are
	Alpha         float64
	ClassWeights  [2]float64 // of rows with label 0 and 1; both 0 stand for ones
	Balanced      bool       // weights that make all labels weigh alike
	Classes       []float64  `json:",omitempty"` // of rows of each class in order, of several; nil stands for ones
	Intercept     bool
	Standardize   bool
	Patience      int                 // steps without a lower loss on the rows that Input.Fold holds out to stop by
	Threshold     *float64            `json:",omitempty"` // of the model, as Model has it
	Errors        bool                `json:",omitempty"` // standard errors are computed, too
	Bounded       *parameters.Bounded `json:",omitempty"` // workers on tables train; nil: steps do
	Init          *Beginning          `json:",omitempty"` // model to begin with
	InitClasses   *ClassBeginning     `json:",omitempty"` // the same of several classes
	MaxIterations int
	Tol           float64
	Target        *float64 `json:",omitempty"`
	MaxTime       time.Duration
	Stop          train.StopRule
}

// job returns the name of the job.
func (c *Config) job() string {
	switch {
	case c.Job != "":
		return c.Job
	case c.Loss == "":
		return string(Logistic)
	}
	return string(c.Loss)
}

// weights returns the weights of rows with label 0 and 1, zeros standing for ones.
func (c *Config) weights(m fold.Moments) [2]float64 {
	if ones, zeros := m.Labels, m.Weight-m.Labels; c.Balanced && ones > 0 && zeros > 0 {
		return [2]float64{m.Weight / (2 * zeros), m.Weight / (2 * ones)}
	}
	return c.ClassWeights
}

// Plan is the plan of a linear model.
type Plan struct {
	Rows        rdd.Packed[rdd.Point]
	Moments     rdd.Step[fold.MomentsParam, fold.Gradient]
	Gradient    rdd.Step[linearParam, fold.Gradient]
	Curvature   rdd.Step[linearParam, curvature]
	Ascent      rdd.Step[dualParam, dualSums]
	Interior    rdd.Step[interiorParam, interiorSums]
	Pairs       rdd.Step[pairParam, pairSums]
	Loss        rdd.Step[linearParam, fold.Gradient]
	Certificate rdd.Step[linearParam, certificate]
	Second      rdd.Step[linearParam, curvature] // of all rows, to say how good a result is
	Held        rdd.Packed[rdd.Point]            // rows held out to stop by, if any
	HeldLoss    rdd.Step[linearParam, fold.Gradient]
	Sample      rdd.Action[[]rdd.Point]
	Scores      rdd.Scan[linearParam, []float64]
	bounded     *boundedPlan // nil where steps train
}

// packing returns how rows become splits.
func (c *Config) packing() train.Packing {
	return train.Packing{Input: c.Input, Data: c.Data, Splits: c.Splits, Seed: c.Seed, Random: c.Random,
		Float32: c.Float32}
}

// Build declares the plan.
func Build(g *rdd.Graph, c Config) Plan {
	rows := c.packing().Rows(g)
	rowLoss := &rowLoss{config: c}
	p := Plan{
		Rows:        rows,
		Moments:     rdd.Aggregate(rows, fold.MomentsAggregator(c.regression())),
		Gradient:    rdd.Aggregate(rows, rowLoss.gradients(), rdd.Aggressive(0)),
		Curvature:   rdd.Aggregate(rows, rowLoss.curvatures(), rdd.Aggressive(0)),
		Pairs:       rdd.Aggregate(rows, pairsOf(rowLoss.gradients()), rdd.Aggressive(0)),
		Ascent:      rdd.Aggregate(rows, rowLoss.ascents(), rdd.Aggressive(0)),
		Interior:    rdd.Aggregate(rows, rowLoss.interiors(), rdd.Aggressive(0)),
		Loss:        rdd.Aggregate(rows, rowLoss.losses()),
		Certificate: rdd.Aggregate(rows, rowLoss.certificates()),
		Second:      rdd.Aggregate(rows, rowLoss.curvatures()),
		Sample:      rdd.Prefix(rows, train.SampleRows),
		Scores:      rdd.ScanBatches(rows, rowLoss.addScores),
	}
	if c.Bounded != nil {
		p.bounded = declareBounded(g, rows, c.Bounded,
			func(q *boundedParam) rowModel { return newMarginRows(q, rowLoss) })
	}
	if held, any := c.packing().HeldOut(g); any {
		p.Held, p.HeldLoss = held, rdd.Aggregate(held, rowLoss.losses())
	}
	return p
}

// Trained is the outcome of a training run.
type Trained struct {
	train.Summary
	Model *Model
	param linearParam
}

// regression reports whether labels are numbers to be met.
func (c *Config) regression() bool { return c.Loss == Squared }

// newModel returns the model to be trained, without its weights.
func (c *Config) newModel(m *pack.Meta, labels [2]string) *Model {
	return &Model{Threshold: c.Threshold, Job: c.job(), Loss: c.Loss, Labels: labels, Features: m.Features,
		IndexBase: m.IndexBase, TextLabels: m.TextLabels,
		OneVsRest: c.Positive != "" && len(m.Labels) != 2, Names: m.Names, Label: m.LabelName, Weight: m.WeightName,
		Prepared: m.Prepared}
}
