package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// linearJob is a bundled job that trains a linear model.
type linearJob struct {
	name, short, minimizes string
	losses                 []mllib.Loss // that it may minimize, its own first
	reg, alpha             float64      // by default
	mixed                  bool         // alpha may be chosen
	perRow                 bool         // by default the penalty is 1/n
	penalty                string       // as a formula
}

const (
	ridgePenalty = "(λ/2)·‖w‖²"
	lassoPenalty = "λ·‖w‖₁"
	mixedPenalty = "λ·(α·‖w‖₁ + (1−α)/2·‖w‖²)"
)

// solverNames lists the solvers to choose from.
func solverNames() string {
	var names []string
	for _, s := range mllib.Solvers() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// linearJobs are the bundled jobs of the linear family.
var linearJobs = []linearJob{
	{name: "logistic", short: "a binary logistic regression", minimizes: "mean log-loss",
		losses: []mllib.Loss{mllib.Logistic}, mixed: true, perRow: true, penalty: mixedPenalty},
	{name: "svm", short: "a linear support vector machine", minimizes: "mean hinge loss (or its square)",
		losses: []mllib.Loss{mllib.Hinge, mllib.SquaredHinge},
		mixed:  true, perRow: true, penalty: mixedPenalty},
	{name: "softmax", short: "a multinomial logistic regression", minimizes: "mean log-loss",
		losses: []mllib.Loss{mllib.Softmax}, mixed: true, perRow: true, penalty: mixedPenalty},
	{name: "linear", short: "a linear regression", minimizes: "half the mean squared error",
		losses: []mllib.Loss{mllib.Squared}, mixed: true, penalty: mixedPenalty},
	{name: "ridge", short: "a ridge regression", minimizes: "half the mean squared error",
		losses: []mllib.Loss{mllib.Squared}, perRow: true, penalty: ridgePenalty},
	{name: "lasso", short: "a lasso", minimizes: "half the mean squared error", losses: []mllib.Loss{mllib.Squared},
		reg: 0.01, alpha: 1, penalty: lassoPenalty},
	{name: "elasticnet", short: "an elastic net", minimizes: "half the mean squared error",
		losses: []mllib.Loss{mllib.Squared}, reg: 0.01, alpha: 0.5, mixed: true, penalty: mixedPenalty},
}

func (j linearJob) regression() bool { return j.losses[0] == mllib.Squared }

func (j linearJob) multinomial() bool { return j.losses[0] == mllib.Softmax }

// several reports whether a model of several classes is trained.
func (f *linearFlags) several() bool { return f.multinomial() || f.multiclass }

func joinLosses(losses []mllib.Loss) string {
	var names []string
	for _, l := range losses {
		names = append(names, string(l))
	}
	return strings.Join(names, " or ")
}

// linearFlags are a job of the linear family, and its own flags.
type linearFlags struct {
	linearJob
	positive, solver, stop, loss string
	initial, classWeights        string
	stepSize, reg, alphaFlag     float64
	threshold                    thresholdFlag
	stopping                     stoppingFlags
	intercept, standardize       bool
	errors, multiclass           bool
	config                       mllib.LinearConfig
}

// onTables reports whether workers on tables can train the job.
func (f *linearFlags) onTables() bool { return true }

func (f *linearFlags) about() about {
	return about{f.name, f.short, fmt.Sprintf(`Minimizes %s + %s, the intercept not penalized, over all rows.
The solver is chosen by the size and shape of the data unless --solver names
one; passes of one that needs the same objective in every step are never cut, and
--batch-fraction refuses it.`, f.minimizes, f.penalty), "train.libsvm", "--reg 1e-4", "five checks in a row", 1e-7}
}

func (f *linearFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.solver, "solver", string(mllib.Auto), "auto (by size and shape), or one of "+solverNames())
	fs.Float64Var(&f.stepSize, "step-size", 0,
		"step size; 0 chooses it from the data's curvature (1 for sqrt, 0.1 for adam)")
	fs.StringVar(&f.stop, "stop", string(mllib.ByObjective),
		"what --tol is held against: objective, weights (MLlib's rule) or flexrr (under 2 % in ten iterations)")
	chosen := ""
	if f.perRow {
		chosen = " (default: 1/n for n rows)"
	}
	fs.Float64Var(&f.reg, "reg", f.linearJob.reg, "penalty λ: "+f.penalty+" is added to the mean loss"+chosen)
	f.alphaFlag = f.alpha
	if f.mixed {
		fs.Float64Var(&f.alphaFlag, "alpha", f.alpha, "share α of the penalty that is L1, from 0 (ridge) to 1 (lasso)")
	}
	if len(f.losses) > 1 {
		fs.StringVar(&f.loss, "loss", string(f.losses[0]), "what is minimized: "+joinLosses(f.losses))
	}
	if !f.regression() && !f.multinomial() {
		fs.StringVar(&f.positive, "positive", "",
			"label that counts as 1, all others as 0 (default: the greater of two)")
		fs.StringVar(&f.classWeights, "class-weights", "",
			"weights of rows with label 0 and 1, as 1,3, or balanced (default: all rows count alike)")
	}
	if f.losses[0] == mllib.Hinge {
		fs.BoolVar(&f.multiclass, "multiclass", false,
			"tell all labels apart, however many: each from the rest, by the squared hinge")
	}
	if f.multinomial() {
		fs.StringVar(&f.classWeights, "class-weights", "",
			"weights of rows of each class in order, as 1,3,2, or balanced (default: all rows count alike)")
	}
	if !f.regression() && !f.multinomial() {
		f.threshold.register(fs)
	}
	f.stopping.register(fs)
	fs.BoolVar(&f.intercept, "intercept", true, "fit an intercept, which is not penalized")
	fs.BoolVar(&f.standardize, "standardize", false,
		"penalize the coefficients of features divided by their standard deviation")
	if f.losses[0] == mllib.Squared || f.losses[0] == mllib.Logistic {
		fs.BoolVar(&f.errors, "standard-errors", false,
			"compute the standard errors of the weights, too (without an L1 penalty); with --reg 0 they are those of "+
				"least squares and maximum likelihood")
	}
	fs.StringVar(&f.initial, "init", "", "directory of a model to begin with")
}

func (f *linearFlags) configure(c *cobra.Command, t *trainFlags) error {
	t.classifies = !f.regression()
	err := volley.FirstError(volley.Within("reg", f.reg, 0, math.MaxFloat64, false),
		volley.Within("step-size", f.stepSize, 0, math.MaxFloat64, false),
		volley.Within("alpha", f.alphaFlag, 0, 1, false))
	if err != nil {
		return err
	}
	cfg := mllib.LinearConfig{Job: f.name, Loss: f.losses[0], Data: absolute(t.data), Input: t.input(),
		Positive: f.positive, Splits: t.splits,
		Random: t.assign == "random", Seed: t.seed, Float32: t.storage == "float32", Cut: t.engine.MaySample(),
		Batches:  t.engine.Batches(),
		StepSize: f.stepSize, Reg: f.reg,
		Alpha: f.alphaFlag, Intercept: f.intercept, Standardize: f.standardize, MaxIterations: t.maxIterations,
		Tol: t.tol, MaxTime: t.maxTime,
		Target: t.targetValue(), Errors: f.errors, Bounded: t.bounded}
	if cfg.RegPerRow = f.perRow && !c.Flags().Changed("reg"); cfg.RegPerRow {
		cfg.Reg = 1 // until the rows are counted
	}
	if cfg.Patience, err = f.stopping.apply(c, &cfg.Input); err != nil {
		return err
	}
	if cfg.Solver, err = mllib.ParseSolver(f.solver); err != nil {
		return usage(c, "solver", "%v", err)
	}
	if cfg.Stop, err = mllib.ParseStopRule(f.stop); err != nil {
		return usage(c, "stop", "%v", err)
	}
	if f.multiclass {
		for _, name := range []string{"loss", "positive", "threshold"} {
			if c.Flags().Changed(name) {
				return usage(c, name, "it is for two labels, --multiclass for several")
			}
		}
		f.loss, cfg.Loss = "", mllib.OneVsRest
	}
	if f.loss != "" {
		if cfg.Loss = mllib.Loss(f.loss); !slices.Contains(f.losses, cfg.Loss) {
			return usage(c, "loss", "%q is not one of %s", f.loss, joinLosses(f.losses))
		}
	}
	if f.classWeights != "" {
		if err = f.parseClassWeights(&cfg); err != nil {
			return usage(c, "class-weights", "%v", err)
		}
	}
	if cfg.Threshold = f.threshold.value(); cfg.Threshold != nil {
		if err := (&mllib.LinearModel{Job: f.name, Loss: cfg.Loss}).SetThreshold(*cfg.Threshold); err != nil {
			return usage(c, "threshold", "%v", err)
		}
	}
	if f.initial != "" {
		if f.several() {
			cfg.InitClasses, err = mllib.BeginWithClasses(f.initial)
		} else {
			cfg.Init, err = mllib.BeginWith(f.initial)
		}
		if err != nil {
			return usage(c, "init", "%v", err)
		}
	}
	f.config = cfg
	return cfg.Check()
}

func (f *linearFlags) identity() any {
	job := f.config
	job.MaxIterations, job.MaxTime, job.Tol, job.Target, job.Stop = 0, 0, 0, nil, ""
	return job
}

func (f *linearFlags) train(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error) {
	if f.several() {
		return f.trainSoftmax(ctx, cfg, then)
	}
	return volley.Run(context.WithoutCancel(ctx), cfg, f.name, f.config, mllib.BuildLinear,
		func(_ context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			t, err := mllib.TrainLinear(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, then(&t.Summary, t.Model,
				func() (map[string]float64, error) { return t.Metrics(ctx, s, p) })
		})
}

func (f *linearFlags) trainSoftmax(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error) {
	return volley.Run(context.WithoutCancel(ctx), cfg, f.name, f.config, mllib.BuildSoftmax,
		func(_ context.Context, s *rdd.Session, job mllib.LinearConfig, p mllib.SoftmaxPlan) (string, error) {
			t, err := mllib.TrainSoftmax(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, then(&t.Summary, t.Model, func() (map[string]float64, error) {
				loss := map[bool]string{true: "hinge_loss", false: "log_loss"}[t.Model.Margins]
				return map[string]float64{"accuracy": t.Accuracy, loss: t.LogLoss}, nil
			})
		})
}

func (f *linearFlags) replay(ctx context.Context, r *replayed) error {
	cfg, err := argsOf[mllib.LinearConfig](r.log.Path, r.log.Header.Args)
	if err != nil {
		return err
	}
	several := f.several() || cfg.Loss == mllib.OneVsRest
	if cfg.Bounded != nil {
		return f.runAgain(ctx, r, several)
	}
	if several {
		return replayJob(ctx, r, mllib.BuildSoftmax,
			func(s *rdd.Session, cfg mllib.LinearConfig, p mllib.SoftmaxPlan) (*mllib.Classified, error) {
				return mllib.TrainSoftmax(ctx, s, cfg, p)
			})
	}
	return replayJob(ctx, r, mllib.BuildLinear,
		func(s *rdd.Session, cfg mllib.LinearConfig, p mllib.LinearPlan) (*mllib.Trained, error) {
			return mllib.TrainLinear(ctx, s, cfg, p)
		})
}

// runAgain makes a run of workers on tables again.
func (f *linearFlags) runAgain(ctx context.Context, r *replayed, several bool) error {
	model := func(c *mllib.LinearConfig) workersOf { return ofBounded(c.Bounded) }
	if several {
		return runAgain(ctx, r, model, mllib.BuildSoftmax,
			func(ctx context.Context, s *rdd.Session, c mllib.LinearConfig, p mllib.SoftmaxPlan) (string, error) {
				return stoppedBy(mllib.TrainSoftmax(ctx, s, c, p))
			})
	}
	return runAgain(ctx, r, model, mllib.BuildLinear,
		func(ctx context.Context, s *rdd.Session, c mllib.LinearConfig, p mllib.LinearPlan) (string, error) {
			return stoppedBy(mllib.TrainLinear(ctx, s, c, p))
		})
}

// stoppedBy returns what has ended a training, if that was no error.
func stoppedBy[T interface{ Stopped() string }](t T, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return t.Stopped(), nil
}

// parseClassWeights reads the weights of labels 0 and 1, or those of several classes.
func (f *linearFlags) parseClassWeights(cfg *mllib.LinearConfig) (err error) {
	if cfg.Balanced = f.classWeights == "balanced"; cfg.Balanced {
		return nil
	}
	parts := strings.Split(f.classWeights, ",")
	if !f.several() && len(parts) != 2 {
		return fmt.Errorf("%q is not two weights, as 1,3, nor balanced", f.classWeights)
	}
	weights := make([]float64, len(parts))
	for i, p := range parts {
		if weights[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil || !(weights[i] > 0) ||
			weights[i] > 1e12 {
			return fmt.Errorf("%q is not a weight above 0", p)
		}
	}
	if cfg.Classes = weights; !f.several() {
		cfg.Classes, cfg.ClassWeights = nil, [2]float64{weights[0], weights[1]}
	}
	return nil
}
