package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
)

// trainFlags are the flags that every training job has.
type trainFlags struct {
	engine                   volley.EngineFlags
	workers                  *workerFlags   // nil of jobs that workers on tables do not train
	bounded                  *mllib.Bounded // nil where steps train
	data, test               []string
	format, label, weight    string
	tables                   tableFlags
	mustConverge             bool
	indexBase                string
	fold                     string
	classifies               bool // labels are classes, of which each fold has its share
	prepare                  prepareFlags
	assign, storage, target  string
	features, splits         int
	tol                      float64
	maxIterations            int
	maxTime                  time.Duration
	seed                     uint64
	out, checkpoints, config string
	checkpointEvery          int
	overwrite, resume, json  bool
	quiet                    bool
}

func runCommand() *cobra.Command {
	run := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a bundled job on an embedded cluster in this process",
		Long: `Run starts a driver and --executors executors in this process, speaking the
real protocol over in-memory pipes, and runs a bundled job on them.`,
	}
	for _, name := range jobNames() {
		run.AddCommand(runJobCommand(newJob(name)))
	}
	names := jobNames()
	for _, j := range placedJobs() {
		run.AddCommand(j.command())
		names = append(names, j.name())
	}
	run.AddCommand(runPredictCommand())
	return oneOfThem(run, func() []string { return names }, "bundled job")
}

// register declares the flags with their defaults.
func (f *trainFlags) register(c *cobra.Command, a about) {
	f.registerInput(c)
	fs := c.Flags()
	if f.workers != nil {
		f.engine.AllowSync(workerSyncs...)
		f.workers.register(fs)
	}
	f.engine.Register(fs)
	fs.IntVar(&f.maxIterations, "max-iterations", 500, "most iterations")
	fs.Float64Var(&f.tol, "tol", a.tol, "stop when the objective changes by at most this, relatively, "+a.again+
		"; 0 never")
	fs.StringVar(&f.target, "target", "", "stop at this objective")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop after this much training time; 0 is no limit")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the shuffle of rows")
	fs.StringVar(&f.out, "out", "",
		"directory for the model, or the name of one in a store (s3://, gs://); none is kept without it")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the model directory if it exists")
	fs.StringVar(&f.checkpoints, "checkpoint-dir", "",
		"directory for checkpoints, or the name of one in a store; default OUT.checkpoints where --checkpoint-every "+
			"is set")
	fs.IntVar(&f.checkpointEvery, "checkpoint-every", 0, "iterations between checkpoints; 0 keeps none")
	fs.BoolVar(&f.resume, "resume", false,
		"go on from the newest whole checkpoint, with the options of before; limits of iterations and time may "+
			"be others, but for k-means")
	fs.BoolVar(&f.mustConverge, "must-converge", false,
		"exit with 3 where the result has not converged; it is saved and printed all the same")
	fs.BoolVar(&f.json, "json", false, "print one JSON object with the result on stdout")
	fs.BoolVar(&f.quiet, "quiet", false, aboutQuiet)
	fs.StringVar(&f.config, "config", "", "YAML file with values for flags")
}

func (f *trainFlags) registerInput(c *cobra.Command) {
	fs := c.Flags()
	fs.StringSliceVar(&f.data, "data", nil,
		"training data: paths, globs, directories, or names of objects (s3://, gs://, https://)")
	fs.StringSliceVar(&f.test, "test", nil, "test data, for the metrics")
	fs.StringVar(&f.format, "format", "", "libsvm, csv, tsv, parquet or arrow (default: by name and content)")
	fs.StringVar(&f.label, "label", "", "column of the label: a name or a zero-based number (default: \"label\", "+
		"else the first)")
	fs.StringVar(&f.weight, "weight-column", "",
		"column of rows' weights, each zero or more, by which they count: a name or a zero-based number")
	fs.IntVar(&f.features, "features", 0, "number of features of sparse data (default: what the data has)")
	f.tables.register(fs)
	f.tables.registerMalformed(fs)
	fs.StringVar(&f.indexBase, "index-base", "auto", "first column number of LIBSVM data: 0, 1 or auto")
	f.prepare.register(fs)
	fs.StringVar(&f.fold, "fold", "", "leave a part of the rows out, as 2/5 for the second of five, and take the "+
		"metrics of these; of classes each part has its share")
	fs.StringVar(&f.storage, "storage", "float64", "precision in which features are stored: float64 or float32")
	fs.IntVar(&f.splits, "splits", 0, "number of splits (default: from the data, 24 for most)")
	fs.StringVar(&f.assign, "assign", "block",
		"rows go to splits by contiguous ranges (block) or by a seeded hash (random)")
}

// validate checks the job's options before data is read; the engine checks
// its own.
func (f *trainFlags) validate(c *cobra.Command) error {
	err := volley.FirstError(
		volley.Within("tol", f.tol, 0, math.MaxFloat64, false),
		volley.Within("splits", float64(f.splits), 0, 1e6, false),
		volley.Within("features", float64(f.features), 0, 1<<28, false),
		volley.Within("max-iterations", float64(f.maxIterations), 0, 1e9, true),
		volley.Within("checkpoint-every", float64(f.checkpointEvery), 0, 1e9, false),
		volley.Within("max-time", float64(f.maxTime), 0, math.MaxInt64, false),
		volley.OneOf("assign", f.assign, "block", "random"), volley.OneOf("storage", f.storage, "float64", "float32"),
		checkInput(c, f), f.prepare.validate(),
	)
	if err != nil {
		return err
	}
	return f.contradictions(c)
}

// checkInput checks the options that say how data is read.
func checkInput(c *cobra.Command, f *trainFlags) error {
	return volley.FirstError(f.tables.check(c), volley.OneOf("index-base", f.indexBase, "auto", "0", "1"),
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
	if _, err := files.Resolve(f.test...); err != nil { // before anything is trained
		return err
	}
	if err := notAnInput(c, "event-log", f.engine.EventLog(), append(f.data, f.test...)); err != nil {
		return err
	}
	if _, err := parseFold(f.fold); err != nil {
		return usage(c, "fold", "%v", err)
	}
	if f.fold != "" && len(f.test) > 0 {
		return usage(c, "fold", "metrics are those of --test, or of the rows left out, not both")
	}
	if f.target != "" {
		if v, err := strconv.ParseFloat(f.target, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return usage(c, "target", "%q is not a number", f.target)
		}
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

// input returns how to read the data.
func (f *trainFlags) input() rdd.Input {
	in := rdd.Input{Format: input.Format(f.format), Label: f.label, Weight: f.weight, Features: f.features}
	f.tables.set(&in)
	if f.indexBase != "auto" {
		in.IndexBase = int(f.indexBase[0]-'0') + 1
	}
	in.Fold, _ = parseFold(f.fold) // validated
	in.Fold.Stratified = f.classifies && in.Fold.Of > 0
	in.Prepare = f.prepare.asked()
	return in
}

// prepareFlags configure how columns of tables become features.
type prepareFlags struct {
	oneHot, hash, text []string
	buckets            int
	missing, scale     string
}

func (f *prepareFlags) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.oneHot, "onehot", nil, "columns of tables that become a feature for each of their values")
	fs.StringSliceVar(&f.hash, "hash", nil, "columns of tables whose values are hashed to --buckets features")
	fs.StringSliceVar(&f.text, "text", nil, "columns of tables whose words are hashed to --buckets features, "+
		"by TF-IDF")
	fs.IntVar(&f.buckets, "buckets", input.DefaultBuckets, "features of each column of --hash and --text")
	fs.StringVar(&f.missing, "missing", "error",
		"empty, null and NA numbers of tables: error, zero, mean, or drop the row")
	fs.StringVar(&f.scale, "scale", "none", "columns of numbers of tables: none, standard, minmax or maxabs; "+
		"the model keeps how")
}

func (f *prepareFlags) validate() error {
	return volley.FirstError(volley.Within("buckets", float64(f.buckets), 2, 1<<26, false),
		volley.OneOf("missing", f.missing, "error", "zero", "mean", "drop"),
		volley.OneOf("scale", f.scale, "none", "standard", "minmax", "maxabs"))
}

func (f *prepareFlags) asked() input.Prepare {
	p := input.Prepare{OneHot: f.oneHot, Hash: f.hash, Text: f.text}
	if len(f.hash)+len(f.text) > 0 {
		p.Buckets = f.buckets
	}
	if f.missing != "error" {
		p.Missing = input.Missing(f.missing)
	}
	if f.scale != "none" {
		p.Scale = input.Scale(f.scale)
	}
	return p
}

// stoppingFlags hold rows out of training for early stopping.
type stoppingFlags struct {
	share    float64
	patience int
}

func (f *stoppingFlags) register(fs *pflag.FlagSet) {
	fs.Float64Var(&f.share, "validation", 0,
		"share of the rows held out of training: when the loss on them falls no more, training stops at its least")
	fs.IntVar(&f.patience, "patience", 10, "steps in a row without a lower loss on the rows of --validation after "+
		"which training stops")
}

// apply validates, and takes the rows out.
func (f *stoppingFlags) apply(c *cobra.Command, in *rdd.Input) (patience int, err error) {
	switch {
	case f.share < 0 || f.share > 0.5 || math.IsNaN(f.share):
		return 0, usage(c, "validation", "%v does not lie in [0, 0.5]", f.share)
	case f.patience < 1:
		return 0, usage(c, "patience", "%d is below 1", f.patience)
	case f.share == 0:
		return 0, nil
	}
	in.Fold.Stop = f.share
	return f.patience, nil
}

// heldOut returns how to read what the metrics are of, and where it is; nothing are
// the training data themselves.
func (f *trainFlags) heldOut() (in rdd.Input, uris []string) {
	in = f.input()
	if in.Fold.Of == 0 {
		in.Weight = "" // the model has it, and the data may lack it
		in.Malformed = rdd.FailFast
		return in, f.test
	}
	in.Fold.Held = true // even if rows are held out for early stopping
	return in, absolute(f.data)
}

// parseFold reads a part k/n, counted from 1; the zero value is none.
func parseFold(text string) (f rows.Fold, err error) {
	if text == "" {
		return f, nil
	}
	k, n, ok := strings.Cut(text, "/")
	number, err := strconv.Atoi(k)
	of, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || number < 1 || number > of || of < 2 || of > 10_000 {
		return f, fmt.Errorf("%q is not a part of two or more, as 2/5", text)
	}
	return rows.Fold{Number: number - 1, Of: of}, nil
}

// targetValue returns the target, nil where there is none; it has been validated.
func (f *trainFlags) targetValue() *float64 {
	if v, err := strconv.ParseFloat(f.target, 64); err == nil {
		return &v
	}
	return nil
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

// afterInterrupt returns a line on what remains of an interrupted run.
func (f *trainFlags) afterInterrupt() string {
	switch {
	case wire.ThisProcess().Role == wire.JobRole:
		return "no model was saved"
	case f.checkpointDir() == "":
		return "no model was saved; with --checkpoint-every a run can be resumed"
	}
	return "no model was saved; add --resume to go on from the checkpoint in " + f.checkpointDir()
}
