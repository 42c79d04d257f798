package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
)

// mfFlags are the flags of factorizations by stochastic gradient descent.
type mfFlags struct {
	placedFlags
	bounded    helpedFlags
	tables     tableFlags
	data, test []string
	format     string
	converge   bool
	job        mllib.SGDConfig
}

func (f *mfFlags) name() string { return "mf" }

// keepsModel marks a job whose --out is a model.
func (f *mfFlags) keepsModel() {}

func (f *mfFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "mf --data URI…",
		Short: "Factor ratings by stochastic gradient descent",
		Long: `Factors ratings: each is to be the mean of all, a number of its user's and one of
its item's, and the product of their vectors of --rank numbers. Each pass makes a
step of stochastic gradient descent for each rating; λ times the squares of what a
rating is made of is added to its squared error. Workers have users; what they know
of items is in a parameter table, of whose rows no two have the same at a time under
--sync bsp. The model is one of als, with vectors of two numbers more: volley
predict, evaluate and recommend work on it. The objective is the root mean squared
error of the ratings in the last pass.`,
		Example: "  volley run mf --data ratings.csv --rank 50 --test test.csv --out model",
		Args:    exactArgs(0, "no arguments beside flags"),
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.data, "data", nil, "ratings: paths, globs, directories, or names of objects")
	fs.StringSliceVar(&f.test, "test", nil, "test data, for the metrics")
	fs.StringVar(&f.format, "format", "", "csv, tsv, parquet or arrow (default: by name and content)")
	f.tables.register(fs)
	fs.StringVar(&f.job.User, "user", "",
		"column of users: a name or a zero-based number (default: user, else the first)")
	fs.StringVar(&f.job.Item, "item", "", "column of items (default: item, else the second)")
	fs.StringVar(&f.job.Rating, "rating", "", "column of ratings (default: rating, else the third)")
	fs.IntVar(&f.job.Rank, "rank", 50, "numbers in a vector")
	fs.Float64Var(&f.job.Reg, "reg", 0.09, "penalty λ")
	fs.BoolVar(&f.job.Biases, "biases", true, "a rating is the mean, and a number of its user's and its item's, too")
	fs.Float64Var(&f.job.Rate, "rate", 0.05, "rate of learning, before a user or an item has moved")
	fs.Float64Var(&f.job.Decay, "decay", 0.98, "what each pass multiplies the rate by, in (0, 1]")
	fs.IntVar(&f.job.MaxIterations, "max-iterations", 100, "most passes")
	fs.Float64Var(&f.job.Tol, "tol", 1e-4,
		"stop when a pass changes the objective by less than this, relatively; 0 never")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the first vectors, and of the order of ratings")
	fs.StringVar(&f.out, "out", "",
		"directory for the model, or the name of one in a store (s3://, gs://); none is kept without it")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the model directory if it exists")
	fs.BoolVar(&f.converge, "must-converge", false, "exit with 3 where the result has not converged; it is saved and "+
		"printed all the same")
	f.placedFlags.register(fs)
	f.registerCheckpoints(fs)
	f.bounded.register(fs)
	return c
}

// mfResult is the JSON object of a factorization.
type mfResult struct {
	Job          string             `json:"job"`
	Sync         string             `json:"sync"`
	Iterations   int                `json:"iterations"`
	StoppedBy    string             `json:"stopped_by"`
	Objective    float64            `json:"objective"`
	Converged    bool               `json:"converged"`
	Waited       float64            `json:"waited_share"`
	Helped       *float64           `json:"helped_share,omitempty"` // of parts of passes, by other workers: flexrr's
	Users        int                `json:"users"`
	Items        int                `json:"items"`
	Metrics      map[string]float64 `json:"metrics,omitempty"`
	Seconds      float64            `json:"seconds"`
	LoadSeconds  float64            `json:"load_seconds"`
	TrainSeconds float64            `json:"train_seconds"`
	Executors    int                `json:"executors"`
	Splits       int                `json:"splits"`
	Model        string             `json:"model"`
	LogDigest    string             `json:"log_digest,omitempty"`
}

// ready reads and checks the flags, before any data is read.
func (f *mfFlags) ready(c *cobra.Command) (cfg volley.Config, err error) {
	if cfg, err = f.placedFlags.ready(c, append(f.data, f.test...)); err != nil {
		return cfg, err
	}
	if len(f.data) == 0 {
		return cfg, usage(c, "data", "it is missing: say which ratings")
	}
	err = volley.FirstError(f.tables.check(c), volley.OneOf("format", f.format, "", "csv", "tsv", "parquet", "arrow"),
		volley.Within("tol", f.job.Tol, 0, math.MaxFloat64, false))
	if err != nil {
		return cfg, err
	}
	if f.out != "" {
		if err = mllib.CanSave(f.out, f.overwrite); err != nil {
			return cfg, err
		}
	}
	if f.job.Model, f.job.Help, err = f.bounded.asked(c); err != nil {
		return cfg, err
	}
	if _, err = files.Resolve(f.test...); err != nil { // before anything is trained
		return cfg, err
	}
	f.job.Data, f.job.Splits, f.job.Seed, f.job.Input = absolute(f.data), f.splits, f.seed, f.input()
	return cfg, f.job.CheckSGD()
}

func (f *mfFlags) input() rdd.Input {
	in := rdd.Input{Format: input.Format(f.format)}
	f.tables.set(&in)
	return in
}

func (f *mfFlags) run(c *cobra.Command) error {
	cfg, err := f.ready(c)
	if err != nil {
		return err
	}
	began := time.Now()
	var t *mllib.Factored
	out, err := f.runs(c, cfg, func(ctx context.Context, cfg volley.Config) (*volley.Outcome, error) {
		return volley.Run(ctx, cfg, "mf", f.job, mllib.BuildSGD, factoring(&t))
	})
	if err != nil {
		return err
	}
	r := &mfResult{Job: "mf", Sync: nameOf(f.job.Model, f.job.Help), Iterations: t.Iterations, StoppedBy: t.StoppedBy,
		Objective: t.Objective, Converged: t.Converged, Waited: t.Waited, Users: t.Model.Users, Items: t.Model.Items,
		LoadSeconds: out.Load.Seconds(), Executors: out.Executors, Splits: f.splits, Model: f.out,
		LogDigest: out.LogDigest}
	if f.job.Help != nil {
		r.Helped = &t.Helped
	}
	_, r.TrainSeconds = trained(cfg, out, began)
	if err := f.finish(c, t.Model, r); err != nil {
		return err
	}
	r.Seconds, _ = trained(cfg, out, began)
	return f.show(r)
}

// show prints a result, and says if it has not converged as --must-converge wants; on a cluster the submitter does.
func (f *mfFlags) show(r *mfResult) (err error) {
	if f.json {
		err = printJSON(r)
	} else {
		_, err = fmt.Fprintf(os.Stderr, "mf: %d passes, error %.4f in training; %.3g s, of which loading %.3g s\n",
			r.Iterations, r.Objective, r.Seconds, r.LoadSeconds)
		for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
			fmt.Fprintf(os.Stderr, "  %s %.6g\n", name, r.Metrics[name])
		}
	}
	if err == nil && f.converge && !r.Converged && wire.ThisProcess().Role == "" {
		return errNotConverged
	}
	return err
}

// shows prints what a job on a cluster has come to.
func (f *mfFlags) shows(result []byte, _ map[string][]byte) error {
	r := &mfResult{}
	if err := json.Unmarshal(result, r); err != nil {
		return err
	}
	r.Model = f.out
	return f.show(r)
}

// finish evaluates and saves a model; one that cannot be evaluated is saved all the same.
func (f *mfFlags) finish(c *cobra.Command, m *mllib.FactorModel, r *mfResult) (err error) {
	if len(f.test) > 0 {
		r.Metrics, err = m.Evaluate(c.Context(), f.input(), f.test)
	}
	if f.out == "" {
		return err
	}
	return errors.Join(err, m.Save(f.out, f.overwrite))
}

// factoring returns how ratings are factored, into a result.
func factoring(t **mllib.Factored) func(context.Context, *rdd.Session, mllib.SGDConfig, *mllib.SGDPlan) (string,
	error) {
	return func(ctx context.Context, s *rdd.Session, job mllib.SGDConfig, p *mllib.SGDPlan) (_ string, err error) {
		if *t, err = mllib.TrainSGD(ctx, s, job, p); err != nil {
			return "", err
		}
		return (*t).StoppedBy, nil
	}
}

func (f *mfFlags) replay(ctx context.Context, r *replayed) error {
	var t *mllib.Factored
	workers := func(c *mllib.SGDConfig) workersOf {
		return ofBounded(&mllib.Bounded{Model: c.Model, Help: c.Help})
	}
	return runAgain(ctx, r, workers, mllib.BuildSGD, factoring(&t))
}
