package main

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// mlpFlags are the job mlp, and its own flags.
type mlpFlags struct {
	layers, activation, solver string
	initial                    string
	regression                 bool
	reg, stepSize, momentum    float64
	stopping                   stoppingFlags
	config                     mllib.MLPConfig
}

func (f *mlpFlags) about() about {
	return about{"mlp", "a fully connected neural network", `Minimizes mean log-loss of a network's softmax, or with --regression half its mean
squared error, plus (λ/2)·‖W‖², on features and such labels in units of their own
deviation. Each iteration is one step along the gradient of the rows it has seen: by
adam about 200, which go on where the last ones ended, or of each split the share of
--batch-fraction, or what --sync did not cut.`, "train.libsvm", "--layers 64,32", "five checks in a row", 1e-7}
}

// onTables reports whether workers on tables can train the job.
func (f *mlpFlags) onTables() bool { return true }

func (f *mlpFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.layers, "layers", "100", "units of each hidden layer, as 128,64; empty: none")
	fs.StringVar(&f.activation, "activation", string(mllib.ReLU), "of the hidden layers: relu, sigmoid or tanh")
	fs.StringVar(&f.solver, "solver", string(mllib.Adam), "adam, or constant: steps of one size, with --momentum")
	fs.Float64Var(&f.stepSize, "step-size", 0,
		"step size (default: 0.001 for adam, 0.003 where a step is of all rows; 0.1 for constant)")
	fs.Float64Var(&f.momentum, "momentum", 0.9, "share of the last step that the next one keeps, for constant")
	fs.Float64Var(&f.reg, "reg", 5e-7, "penalty λ: (λ/2)·‖W‖² is added to the mean loss")
	f.stopping.register(fs)
	fs.BoolVar(&f.regression, "regression", false, "fit labels that are numbers")
	fs.StringVar(&f.initial, "init", "",
		"directory of a model to begin with, whose --layers and --activation are the default")
}

func (f *mlpFlags) configure(c *cobra.Command, t *trainFlags) (err error) {
	t.classifies = !f.regression
	if err := volley.FirstError(volley.Within("reg", f.reg, 0, math.MaxFloat64, false),
		volley.Within("step-size", f.stepSize, 0, math.MaxFloat64, false),
		volley.Within("momentum", f.momentum, 0, 1, false)); err != nil {
		return err
	}
	cfg := mllib.MLPConfig{Data: absolute(t.data), Input: t.input(), Splits: t.splits, Random: t.assign == "random",
		Seed:    t.seed,
		Float32: t.storage == "float32", Regression: f.regression, Reg: f.reg, StepSize: f.stepSize,
		Momentum:      f.momentum,
		MaxIterations: t.maxIterations, Tol: t.tol, MaxTime: t.maxTime, Target: t.targetValue(), Bounded: t.bounded}
	for _, text := range strings.FieldsFunc(f.layers, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return usage(c, "layers", "%q is not a number of units", text)
		}
		cfg.Hidden = append(cfg.Hidden, n)
	}
	if cfg.Activation, err = mllib.ParseActivation(f.activation); err != nil {
		return usage(c, "activation", "%v", err)
	}
	if cfg.Patience, err = f.stopping.apply(c, &cfg.Input); err != nil {
		return err
	}
	if cfg.Solver, err = mllib.ParseSolver(f.solver); err != nil {
		return usage(c, "solver", "%v", err)
	}
	same := c.Flag("cursor").Value.String() == "off" // rows in every step
	cfg.Batches = cfg.Solver == mllib.Adam && cfg.Bounded == nil && !t.engine.MayCut() && !same &&
		!c.Flags().Changed("batch-fraction")
	cfg.Passes = (cfg.Batches || cfg.Bounded != nil) && !c.Flags().Changed("max-iterations")
	if f.initial != "" {
		if cfg.Init, err = mllib.BeginWithNetwork(f.initial); err != nil {
			return usage(c, "init", "%v", err)
		}
		if layers := cfg.Init.Layers; !c.Flags().Changed("layers") {
			cfg.Hidden = layers[1 : len(layers)-1]
		}
		if !c.Flags().Changed("activation") {
			cfg.Activation = cfg.Init.Activation
		}
	}
	f.config = cfg
	return cfg.Check()
}

func (f *mlpFlags) identity() any {
	job := f.config
	job.MaxIterations, job.Passes, job.MaxTime, job.Tol, job.Target = 0, false, 0, 0, nil
	return job
}

func (f *mlpFlags) train(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error) {
	return volley.Run(context.WithoutCancel(ctx), cfg, "mlp", f.config, mllib.BuildMLP,
		func(_ context.Context, s *rdd.Session, job mllib.MLPConfig, p mllib.MLPPlan) (string, error) {
			t, err := mllib.TrainMLP(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, then(&t.Summary, t.Model, func() (map[string]float64, error) {
				if job.Regression {
					return map[string]float64{"rmse": math.Sqrt(2 * t.Loss)}, nil
				}
				return map[string]float64{"accuracy": t.Accuracy, "log_loss": t.Loss}, nil
			})
		})
}

func (f *mlpFlags) replay(ctx context.Context, r *replayed) error {
	cfg, err := argsOf[mllib.MLPConfig](r.log.Path, r.log.Header.Args)
	if err != nil {
		return err
	}
	if cfg.Bounded != nil {
		workers := func(c *mllib.MLPConfig) workersOf { return ofBounded(c.Bounded) }
		return runAgain(ctx, r, workers, mllib.BuildMLP,
			func(ctx context.Context, s *rdd.Session, c mllib.MLPConfig, p mllib.MLPPlan) (string, error) {
				return stoppedBy(mllib.TrainMLP(ctx, s, c, p))
			})
	}
	return replayJob(ctx, r, mllib.BuildMLP,
		func(s *rdd.Session, cfg mllib.MLPConfig, p mllib.MLPPlan) (*mllib.Networked, error) {
			return mllib.TrainMLP(ctx, s, cfg, p)
		})
}
