package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
)

// job is a bundled job with its own flags, as commands see it.
type job interface {
	about() about
	// register declares the job's own flags.
	register(fs *pflag.FlagSet)
	// configure reads all flags and checks them, before data is read.
	configure(c *cobra.Command, t *trainFlags) error
	// identity is what a checkpoint must agree on: all of the job but its limits.
	identity() any
	// train runs the job, and calls then while its session is open.
	train(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error)
	// replay runs the job again from a log.
	replay(ctx context.Context, r *replayed) error
}

// about is the help text of a job.
type about struct {
	name, short, long string
	data, example     string  // a file, and flags
	again             string  // how often in a row a check has to find no progress
	tol               float64 // by default
}

// whenTrained takes the result of a job; metrics computes the metrics of the
// training data.
type whenTrained func(s *mllib.Summary, m mllib.Model, metrics func() (map[string]float64, error)) error

// jobNames returns the names of the bundled jobs.
func jobNames() (names []string) {
	for _, j := range linearJobs {
		names = append(names, j.name)
	}
	return append(names, "kmeans", "als", "mlp")
}

// newJob returns a bundled job by its name, with fresh flags.
func newJob(name string) job {
	for _, j := range linearJobs {
		if j.name == name {
			return &linearFlags{linearJob: j}
		}
	}
	switch name {
	case "als":
		return &alsFlags{}
	case "mlp":
		return &mlpFlags{}
	}
	return &kmeansFlags{}
}

const aboutData = `
Data may be LIBSVM, CSV, TSV, Parquet or Arrow, compressed or not; everything
about it is detected unless a flag says otherwise. Every flag can also be given
as an environment variable (--sync-ratio as VOLLEY_SYNC_RATIO) or in the YAML
file of --config.`

// aboutDataOf returns the help text about a job's data: ratings are read from tables.
func aboutDataOf(job string) string {
	if job == "als" {
		return strings.Replace(aboutData, "LIBSVM, ", "", 1)
	}
	return aboutData
}

func runJobCommand(j job) *cobra.Command {
	f, a := &trainFlags{}, j.about()
	c := &cobra.Command{
		Use:   a.name + " --data URI…",
		Short: "Train " + a.short,
		Long:  a.long + aboutDataOf(a.name),
		Example: "  volley run " + a.name + " --data " + a.data + " " + a.example + " --out model\n" +
			"  volley run " + a.name + " --data " + a.data + " " + a.example +
			" --sync absp --clock virtual --pace one-straggler",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error { return runJob(c, f, j) },
	}
	if onTables(j) {
		f.workers = &workerFlags{}
	}
	f.register(c, a)
	j.register(c.Flags())
	return c
}

func submitJobCommand(j job) *cobra.Command {
	f, s, a := &trainFlags{}, &submitFlags{}, j.about()
	c := &cobra.Command{
		Use:     a.name + " --data URI…",
		Short:   "Train " + a.short + " on a cluster",
		Long:    "Submits the job that volley run " + a.name + " describes; see there for the flags.",
		Example: "  volley submit " + a.name + " --data /data/" + a.data + " " + a.example + " --out model",
		Args:    exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := f.ready(c, j); err != nil {
				return err
			}
			if err := s.validate(c, f.asked()); err != nil {
				return err
			}
			info, err := submit(c, a.name, jobArgs(c), s, f.asked(), f.asked().brings(c.Context()))
			if err != nil || info == nil {
				return err
			}
			return showResult(info, f)
		},
	}
	if onTables(j) {
		f.workers = &workerFlags{}
	}
	f.register(c, a)
	j.register(c.Flags())
	s.register(c.Flags())
	return c
}

// onTables reports whether workers on tables can train a job.
func onTables(j job) bool {
	k, ok := j.(interface{ onTables() bool })
	return ok && k.onTables()
}

// ready reads and checks all flags before any data is read.
func (f *trainFlags) ready(c *cobra.Command, j job) (cfg volley.Config, err error) {
	if err = fillFlags(c); err != nil {
		return cfg, err
	}
	if err = volley.FirstError(f.validate(c), f.refuseWorkers(c, j)); err != nil {
		return cfg, err
	}
	if cfg, err = f.engine.Config(); err != nil {
		return cfg, err
	}
	if f.workers != nil {
		if f.bounded, err = f.workers.asked(c, f.engine.Sync()); err != nil {
			return cfg, err
		}
	}
	if f.bounded != nil {
		if err = f.refuseBounded(c); err != nil {
			return cfg, err
		}
	}
	return cfg, j.configure(c, f)
}

// runJob trains, measures and saves.
func runJob(c *cobra.Command, f *trainFlags, j job) error {
	cfg, err := f.ready(c, j)
	if err != nil {
		return err
	}
	screen := newScreen(f.json, f.quiet)
	cfg.Progress, cfg.Observer = screen.progress, screen.step
	r, err := trainJob(c.Context(), cfg, f, j)
	screen.done()
	if errors.Is(err, errInterrupted) {
		fmt.Fprintln(os.Stderr, "volley: "+f.afterInterrupt())
	}
	if err == nil {
		err = screen.result(r)
	}
	if err != nil || wire.ThisProcess().Role != "" { // on a cluster the submitter prints it
		return err
	}
	return f.converged(r)
}

// errNotConverged ends a command whose result does not meet --must-converge.
var errNotConverged = errors.New("not converged")

// converged checks a result against --must-converge.
func (f *trainFlags) converged(r *runResult) error {
	if f.mustConverge && !r.Converged {
		return errNotConverged
	}
	return nil
}

// trainJob trains, measures and saves, and returns the result.
func trainJob(ctx context.Context, cfg volley.Config, f *trainFlags, j job) (*runResult, error) {
	cfg.OutDir, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = f.out, f.checkpointDir(), f.checkpointEvery, f.resume
	raw, err := json.Marshal(j.identity())
	if err != nil {
		return nil, err
	}
	cfg.Identity = string(raw)
	began := time.Now()
	var summary *mllib.Summary
	var model mllib.Model
	var metrics map[string]float64
	out, err := j.train(ctx, cfg, func(s *mllib.Summary, m mllib.Model,
		training func() (map[string]float64, error)) (err error) {
		summary, model = s, m
		in, uris := f.heldOut()
		switch {
		case ctx.Err() != nil:
		case len(uris) > 0:
			metrics, err = m.Evaluate(ctx, in, uris)
		default:
			metrics, err = training()
		}
		return err
	})
	if err != nil && ctx.Err() != nil && fault.KindOf(err) == fault.Cancelled {
		return nil, errInterrupted // in a pass after the last iteration
	}
	if err != nil {
		return nil, err
	}
	if summary.StoppedBy == "interrupted" {
		return nil, errInterrupted
	}
	for name, v := range metrics {
		if f.fold != "" && math.IsNaN(v) {
			return nil, fault.Newf(fault.BadInput, "measure by", "--fold "+f.fold,
				"it holds too few rows: %s is not a number", name).WithHint("use fewer folds")
		}
	}
	if f.out != "" {
		if err := model.Save(f.out, f.overwrite); err != nil {
			return nil, err
		}
	}
	r := resultOf(f, cfg, j.about().name, summary, out, metrics)
	r.Seconds = time.Since(began).Seconds()
	if cfg.Virtual {
		r.Seconds = (out.Train + out.Evaluation).Seconds()
		r.LoadSeconds = 0
	}
	return r, nil
}

// runResult is the JSON object of a training job.
type runResult struct {
	Job                 string             `json:"job"`
	Sync                string             `json:"sync"`
	Solver              string             `json:"solver"`
	SolverWhy           string             `json:"solver_why,omitempty"`
	Chosen              []string           `json:"chosen,omitempty"`
	Iterations          int                `json:"iterations"`
	StoppedBy           string             `json:"stopped_by"`
	Objective           float64            `json:"objective"`
	Gap                 *float64           `json:"gap,omitempty"`
	GapBy               string             `json:"gap_by,omitempty"`
	Converged           bool               `json:"converged"`
	Seconds             float64            `json:"seconds"`
	LoadSeconds         float64            `json:"load_seconds"`
	TrainSeconds        float64            `json:"train_seconds"`
	SecondsPerIteration float64            `json:"seconds_per_iteration"`
	EvaluationSeconds   float64            `json:"evaluation_seconds"`
	Rows                int64              `json:"rows"`
	MalformedRows       int64              `json:"malformed_rows,omitempty"`
	MissingRows         int64              `json:"missing_rows,omitempty"`
	Features            int                `json:"features"`
	RowsProcessed       int64              `json:"rows_processed"`
	Passes              volley.Passes      `json:"passes"`
	MeanShare           float64            `json:"mean_share"`
	MeanNEff            float64            `json:"mean_neff"`
	Waited              *float64           `json:"waited_share,omitempty"` // of slots' time, of workers on tables
	Helped              *float64           `json:"helped_share,omitempty"` // of steps, by other workers: flexrr's
	Executors           int                `json:"executors"`
	Slots               int                `json:"slots"`
	Splits              int                `json:"splits"`
	Exchanges           int64              `json:"exchanges"`
	DroppedRows         int64              `json:"dropped_rows"`
	DualDrift           float64            `json:"dual_drift,omitempty"`
	Metrics             map[string]float64 `json:"metrics"`
	Model               string             `json:"model"`
	Clock               string             `json:"clock"`
	LogDigest           string             `json:"log_digest,omitempty"`
}

func resultOf(f *trainFlags, cfg volley.Config, job string, t *mllib.Summary, o *volley.Outcome,
	metrics map[string]float64) *runResult {
	r := &runResult{Job: job, Solver: string(t.Solver), SolverWhy: t.SolverWhy, Chosen: t.Chosen, Sync: f.engine.Sync(),
		Iterations: t.Iterations, StoppedBy: t.StoppedBy, Objective: t.Objective,
		LoadSeconds: o.Load.Seconds(), TrainSeconds: o.Train.Seconds(), EvaluationSeconds: o.Evaluation.Seconds(),
		Rows: t.Rows, Features: t.Features, RowsProcessed: t.Processed, MeanShare: t.MeanShare, MeanNEff: t.MeanNEff,
		Executors: o.Executors, Slots: cfg.Slots, Splits: o.Splits, Exchanges: o.Counters.Moves,
		DroppedRows: o.Counters.DroppedRows, DualDrift: t.Drift, Passes: o.Passes,
		MalformedRows: t.Malformed, MissingRows: t.Missing,
		Metrics: metrics, Model: f.out, Clock: map[bool]string{true: "virtual", false: "real"}[cfg.Virtual],
		LogDigest: o.LogDigest}
	if r.Converged = t.Converged; !math.IsNaN(t.Gap) && !math.IsInf(t.Gap, 0) {
		r.Gap, r.GapBy = &t.Gap, t.GapBy
	}
	if f.bounded != nil {
		if r.Sync, r.Waited = f.bounded.Name(), &t.Waited; f.bounded.Help != nil {
			r.Helped = &t.Helped
		}
	}
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
