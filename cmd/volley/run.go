package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage"
)

// trainFlags are the flags of a training job.
type trainFlags struct {
	engine                               volley.EngineFlags
	data, test                           []string
	format, label, header, separator     string
	positive, indexBase, assign, storage string
	features, splits                     int
	solver, stop, target                 string
	stepSize, reg, tol                   float64
	intercept, standardize               bool
	maxIterations                        int
	maxTime                              time.Duration
	seed                                 uint64
	out, checkpoints, config             string
	checkpointEvery                      int
	overwrite, resume, json              bool
}

func runCommand() *cobra.Command {
	run := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a bundled job on an embedded cluster in this process",
		Long: `Run starts a driver and --executors executors in this process, speaking the
real protocol over in-memory pipes, and runs a bundled job on them.`,
		Args: func(c *cobra.Command, args []string) error {
			return fault.Newf(fault.Usage, "run", strings.Join(args, " "), "want the name of a bundled job").WithHint("jobs: logistic")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	run.AddCommand(logisticCommand())
	return run
}

func logisticCommand() *cobra.Command {
	f := &trainFlags{}
	c := &cobra.Command{
		Use:   "logistic --data URI…",
		Short: "Train a binary logistic regression",
		Long: `Minimizes mean log-loss + (reg/2)·‖w‖², the intercept not penalized, by a
first-order method over all rows. Data may be LIBSVM, CSV, TSV, Parquet or
Arrow, compressed or not; everything about it is detected unless a flag says
otherwise. Every flag can also be given as an environment variable
(--sync-ratio as VOLLEY_SYNC_RATIO) or in the YAML file of --config.`,
		Example: `  volley run logistic --data train.libsvm --test test.libsvm --reg 1e-4 --out model
  volley run logistic --data a9a.gz --sync absp --clock virtual --pace one-straggler`,
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error { return runLogistic(c, f) },
	}
	f.register(c)
	return c
}

// register declares the flags with their defaults.
func (f *trainFlags) register(c *cobra.Command) {
	f.registerInput(c)
	fs := c.Flags()
	f.engine.Register(fs)
	fs.StringVar(&f.solver, "solver", string(mllib.Nesterov), "nesterov (accelerated, with restarts), sqrt (MLlib's step/√t) or constant")
	fs.Float64Var(&f.stepSize, "step-size", 0, "step size; 0 chooses it from the data's curvature (1 for sqrt)")
	fs.Float64Var(&f.reg, "reg", 0, "L2 penalty λ: (λ/2)·‖w‖² is added to the mean loss")
	fs.BoolVar(&f.intercept, "intercept", true, "fit an intercept, which is not penalized")
	fs.BoolVar(&f.standardize, "standardize", false, "penalize the coefficients of features divided by their standard deviation")
	fs.IntVar(&f.maxIterations, "max-iterations", 500, "most iterations")
	fs.Float64Var(&f.tol, "tol", 1e-7, "stop when the objective changes by at most this, relatively, five checks in a row; 0 never")
	fs.StringVar(&f.target, "target", "", "stop at this objective")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop after this much training time; 0 is no limit")
	fs.StringVar(&f.stop, "stop", string(mllib.ByObjective), "what --tol is held against: objective, weights (MLlib's rule) or flexrr (under 2 % in ten iterations)")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the shuffle of rows")
	fs.StringVar(&f.out, "out", "", "directory for the model; none is kept without it")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the model directory if it exists")
	fs.StringVar(&f.checkpoints, "checkpoint-dir", "", "directory for checkpoints; default OUT.checkpoints where --checkpoint-every is set")
	fs.IntVar(&f.checkpointEvery, "checkpoint-every", 0, "iterations between checkpoints; 0 keeps none")
	fs.BoolVar(&f.resume, "resume", false, "go on from the newest whole checkpoint")
	fs.BoolVar(&f.json, "json", false, "print one JSON object with the result on stdout")
	fs.StringVar(&f.config, "config", "", "YAML file with values for flags")
}

func (f *trainFlags) registerInput(c *cobra.Command) {
	fs := c.Flags()
	fs.StringSliceVar(&f.data, "data", nil, "training data: paths, globs, directories or file:// URIs")
	fs.StringSliceVar(&f.test, "test", nil, "test data, for the metrics")
	fs.StringVar(&f.format, "format", "", "libsvm, csv, tsv, parquet or arrow (default: by name and content)")
	fs.StringVar(&f.label, "label", "", "column of the label: a name or a zero-based number (default: \"label\", else the first)")
	fs.IntVar(&f.features, "features", 0, "number of features of sparse data (default: what the data has)")
	fs.StringVar(&f.header, "header", "auto", "whether tables begin with a header: true, false or auto")
	fs.StringVar(&f.separator, "separator", "", "field separator of tables (default: detected among tab ; ,)")
	fs.StringVar(&f.indexBase, "index-base", "auto", "first column number of LIBSVM data: 0, 1 or auto")
	fs.StringVar(&f.positive, "positive", "", "label that counts as 1, all others as 0 (default: the greater of two)")
	fs.StringVar(&f.storage, "storage", "float64", "precision in which features are stored: float64 or float32")
	fs.IntVar(&f.splits, "splits", 0, "number of splits (default: from the data, 24 for most)")
	fs.StringVar(&f.assign, "assign", "block", "rows go to splits by contiguous ranges (block) or by a seeded hash (random)")
}

// validate checks the job's options before data is read; the engine checks
// its own.
func (f *trainFlags) validate(c *cobra.Command) error {
	err := volley.FirstError(
		volley.Within("reg", f.reg, 0, math.MaxFloat64, false), volley.Within("step-size", f.stepSize, 0, math.MaxFloat64, false),
		volley.Within("tol", f.tol, 0, math.MaxFloat64, false), volley.Within("splits", float64(f.splits), 0, 1e6, false),
		volley.Within("features", float64(f.features), 0, 1<<28, false), volley.Within("max-iterations", float64(f.maxIterations), 0, 1e9, true),
		volley.Within("checkpoint-every", float64(f.checkpointEvery), 0, 1e9, false), volley.Within("max-time", float64(f.maxTime), 0, math.MaxInt64, false),
		volley.OneOf("assign", f.assign, "block", "random"), volley.OneOf("storage", f.storage, "float64", "float32"),
		checkInput(f),
	)
	if err != nil {
		return err
	}
	return f.contradictions(c)
}

// checkInput checks the options that say how data is read.
func checkInput(f *trainFlags) error {
	return volley.FirstError(volley.OneOf("header", f.header, "auto", "true", "false"), volley.OneOf("index-base", f.indexBase, "auto", "0", "1"),
		volley.OneOf("format", f.format, "", "libsvm", "csv", "tsv", "parquet", "arrow"))
}

func (f *trainFlags) contradictions(c *cobra.Command) error {
	switch {
	case len(f.data) == 0:
		return usage(c, "data", "it is missing: say what to train on")
	case f.resume && f.checkpointDir() == "":
		return usage(c, "resume", "it needs --checkpoint-dir, or --checkpoint-every with --out")
	case f.checkpointEvery > 0 && f.checkpointDir() == "":
		return usage(c, "checkpoint-every", "it needs --checkpoint-dir or --out")
	}
	if f.out != "" {
		if err := mllib.CanSave(f.out, f.overwrite); err != nil {
			return err
		}
	}
	if err := notAnInput(c, "event-log", f.engine.EventLog(), append(f.data, f.test...)); err != nil {
		return err
	}
	if f.target != "" {
		if v, err := strconv.ParseFloat(f.target, 64); err != nil || math.IsNaN(v) {
			return usage(c, "target", "%q is not a number", f.target)
		}
	}
	if len(f.separator) > 1 && f.separator != `\t` {
		return usage(c, "separator", "%q is not one character", f.separator)
	}
	return nil
}

// notAnInput refuses to write over what is read.
func notAnInput(c *cobra.Command, flag, out string, inputs []string) error {
	mine, err := os.Stat(out)
	if out == "" || err != nil {
		return nil
	}
	for _, in := range inputs {
		if theirs, err := os.Stat(in); err == nil && os.SameFile(mine, theirs) {
			return usage(c, flag, "%s is one of the inputs", out)
		}
	}
	return nil
}

func (f *trainFlags) checkpointDir() string {
	if f.checkpoints == "" && f.out != "" && (f.checkpointEvery > 0 || f.resume) {
		return f.out + ".checkpoints"
	}
	return f.checkpoints
}

// input says how to read the data.
func (f *trainFlags) input() rdd.Input {
	in := rdd.Input{Format: storage.Format(f.format), Label: f.label, Features: f.features}
	if f.header != "auto" {
		h := f.header == "true"
		in.Header = &h
	}
	if f.separator == `\t` {
		in.Separator = '\t'
	} else if f.separator != "" {
		in.Separator = f.separator[0]
	}
	if f.indexBase != "auto" {
		in.IndexBase = int(f.indexBase[0]-'0') + 1
	}
	return in
}

// logistic is the job's own configuration.
func (f *trainFlags) logistic(c *cobra.Command) (mllib.LogisticConfig, error) {
	cfg := mllib.LogisticConfig{Data: absolute(f.data), Input: f.input(), Positive: f.positive, Splits: f.splits, Random: f.assign == "random",
		Seed: f.seed, Float32: f.storage == "float32", StepSize: f.stepSize, Reg: f.reg, Intercept: f.intercept,
		Standardize: f.standardize, MaxIterations: f.maxIterations, Tol: f.tol, MaxTime: f.maxTime}
	var err error
	if cfg.Solver, err = mllib.ParseSolver(f.solver); err != nil {
		return cfg, usage(c, "solver", "%v", err)
	}
	if cfg.Stop, err = mllib.ParseStopRule(f.stop); err != nil {
		return cfg, usage(c, "stop", "%v", err)
	}
	if f.target != "" {
		v, _ := strconv.ParseFloat(f.target, 64) // validated
		cfg.Target = &v
	}
	return cfg, nil
}

// absolute makes paths independent of where the command runs.
func absolute(uris []string) []string {
	out := make([]string, len(uris))
	for i, u := range uris {
		out[i] = u
		if !strings.Contains(u, "://") {
			if abs, err := filepath.Abs(u); err == nil {
				out[i] = abs
			}
		}
	}
	return out
}

// runResult is the JSON object of a training job.
type runResult struct {
	Job                 string             `json:"job"`
	Sync                string             `json:"sync"`
	Iterations          int                `json:"iterations"`
	StoppedBy           string             `json:"stopped_by"`
	Objective           float64            `json:"objective"`
	Seconds             float64            `json:"seconds"`
	LoadSeconds         float64            `json:"load_seconds"`
	TrainSeconds        float64            `json:"train_seconds"`
	SecondsPerIteration float64            `json:"seconds_per_iteration"`
	EvaluationSeconds   float64            `json:"evaluation_seconds"`
	Rows                int64              `json:"rows"`
	Features            int                `json:"features"`
	RowsProcessed       int64              `json:"rows_processed"`
	MeanShare           float64            `json:"mean_share"`
	MeanNEff            float64            `json:"mean_neff"`
	Executors           int                `json:"executors"`
	Slots               int                `json:"slots"`
	Splits              int                `json:"splits"`
	Exchanges           int64              `json:"exchanges"`
	DroppedRows         int64              `json:"dropped_rows"`
	Metrics             map[string]float64 `json:"metrics"`
	Model               string             `json:"model"`
	Clock               string             `json:"clock"`
}

func runLogistic(c *cobra.Command, f *trainFlags) error {
	if err := fillFlags(c); err != nil {
		return err
	}
	if err := f.validate(c); err != nil {
		return err
	}
	cfg, err := f.engine.Config()
	if err != nil {
		return err
	}
	cfg.OutDir, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = f.out, f.checkpointDir(), f.checkpointEvery, f.resume
	job, err := f.logistic(c)
	if err != nil {
		return err
	}
	if cfg.Identity, err = identity(job); err != nil {
		return err
	}
	return trainLogistic(c.Context(), f, cfg, job)
}

// identity is what a checkpoint must agree on: all of the job but its limits.
func identity(job mllib.LogisticConfig) (string, error) {
	job.MaxIterations, job.MaxTime, job.Tol, job.Target, job.Stop = 0, 0, 0, nil, ""
	raw, err := json.Marshal(job)
	return string(raw), err
}

func trainLogistic(ctx context.Context, f *trainFlags, cfg volley.Config, job mllib.LogisticConfig) error {
	began := time.Now()
	screen := newScreen(f.json)
	cfg.Progress, cfg.Observer = screen.progress, screen.step
	var trained *mllib.Trained
	var metrics map[string]float64
	out, err := volley.Run(withoutCancel(ctx), cfg, "logistic", job, mllib.BuildLogistic,
		func(_ context.Context, s *rdd.Session, job mllib.LogisticConfig, p mllib.LogisticPlan) (string, error) {
			var err error
			if trained, err = mllib.TrainLogistic(ctx, s, job, p); err != nil {
				return "", err
			}
			switch {
			case ctx.Err() != nil:
			case len(f.test) > 0:
				metrics, err = trained.Model.Evaluate(ctx, f.input(), f.test)
			default:
				metrics, err = trained.Metrics(ctx, s, p)
			}
			return trained.StoppedBy, err
		})
	screen.done()
	if err != nil {
		return err
	}
	if trained.StoppedBy == "interrupted" {
		fmt.Fprintln(os.Stderr, "volley: "+f.afterInterrupt())
		return errInterrupted
	}
	if f.out != "" {
		if err := trained.Model.Save(f.out, f.overwrite); err != nil {
			return err
		}
	}
	r := resultOf(f, cfg, trained, out, metrics)
	r.Seconds = time.Since(began).Seconds()
	if cfg.Virtual {
		r.Seconds = (out.Train + out.Evaluation).Seconds()
		r.LoadSeconds = 0
	}
	return screen.result(r)
}

// withoutCancel lets a step finish after an interrupt: the loop itself looks
// at the context that ends.
func withoutCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// afterInterrupt says what is left of an interrupted run.
func (f *trainFlags) afterInterrupt() string {
	switch {
	case wire.ThisProcess().Role == wire.JobRole:
		return "no model was saved"
	case f.checkpointDir() == "":
		return "no model was saved; with --checkpoint-every a run can be resumed"
	}
	return "no model was saved; add --resume to go on from the checkpoint in " + f.checkpointDir()
}

func resultOf(f *trainFlags, cfg volley.Config, t *mllib.Trained, o *volley.Outcome, metrics map[string]float64) *runResult {
	r := &runResult{Job: "logistic", Sync: f.engine.Sync(), Iterations: t.Iterations, StoppedBy: t.StoppedBy, Objective: t.Objective,
		LoadSeconds: o.Load.Seconds(), TrainSeconds: o.Train.Seconds(), EvaluationSeconds: o.Evaluation.Seconds(),
		Rows: t.Rows, Features: t.Features, RowsProcessed: t.Processed, MeanShare: t.MeanShare, MeanNEff: t.MeanNEff,
		Executors: o.Executors, Slots: cfg.Slots, Splits: o.Splits, Exchanges: o.Counters.Moves, DroppedRows: o.Counters.DroppedRows,
		Metrics: metrics, Model: f.out, Clock: map[bool]string{true: "virtual", false: "real"}[cfg.Virtual]}
	if t.Iterations > 0 {
		r.SecondsPerIteration = r.TrainSeconds / float64(t.Iterations)
	}
	return r
}

// printJSON writes one object on one line of stdout.
func printJSON(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fault.New(fault.Internal, "print", "the result", err)
	}
	_, err = fmt.Println(string(raw))
	return err
}
