package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/objects"
)

// predictFlags are the flags of predictions.
type predictFlags struct {
	dataFlags
	probabilities bool
	output, codec string // of the job
	replace       bool   // --overwrite as it travels: a job's process always has --overwrite, which is of models
}

func (f *predictFlags) register(c *cobra.Command) {
	f.dataFlags.register(c)
	c.Flags().BoolVar(&f.probabilities, "probabilities", false,
		"write the probability of each class in place of the score (logistic, softmax, mlp)")
}

func predictCommand() *cobra.Command {
	f := &predictFlags{}
	c := &cobra.Command{
		Use:   "predict MODEL --data URI --out FILE",
		Short: "Predict labels and scores with a saved model",
		Long: `Predict writes a CSV file with one line a row, in input order: the label, one of
the originals that the model was trained on, and the score, the probability of
the greater label. The input needs a label column unless --label is none. It reads
the data on all cores of this machine; volley submit predict does so on a cluster.`,
		Args: exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error { return predict(c, f, args[0]) },
	}
	f.register(c)
	c.Flags().StringVar(&f.outFile, "out", "", "file for the predictions; - is stdout")
	return c
}

func predict(c *cobra.Command, f *predictFlags, dir string) error {
	if err := f.ready(c); err != nil {
		return err
	}
	if f.outFile == "" {
		return usage(c, "out", "it is missing: say where predictions go, - being stdout")
	}
	if err := notAnInput(c, "out", f.outFile, f.data); err != nil {
		return err
	}
	m, err := f.load(dir)
	if err != nil {
		return err
	}
	if _, err := m.Says(f.probabilities); err != nil { // before a file is there
		return err
	}
	return toFile(f.outFile, func(w io.Writer) error {
		rows, err := mllib.Predict(c.Context(), m, f.labelled(), f.data, w, f.probabilities)
		if err == nil && f.outFile != "-" {
			fmt.Fprintf(os.Stderr, "%d predictions in %s\n", rows, f.outFile)
		}
		return err
	})
}

// aboutOutput is the help text about where a job puts predictions.
const aboutOutput = `
Each part of the data becomes a CSV file with a header in --output, in input order:
part-00000, part-00001 and so on. The directory appears at once when all are
written. Executors read the model and the data, and write, where they are: the paths
must be the same for all of them.`

// registerJob declares the flags of the job that predicts.
func (f *predictFlags) registerJob(c *cobra.Command) {
	f.register(c)
	fs := c.Flags()
	f.engine.Register(fs)
	fs.StringVar(&f.output, "output", "", "directory for the predictions, or the name of one in a store (s3://, gs://)")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the directory of an earlier run")
	fs.StringVar(&f.codec, "compress", "none", "compression of the files: none, gzip or zstd")
	fs.BoolVar(&f.json, "json", false, "print one JSON object with the result on stdout")
	fs.BoolVar(&f.replace, "replace", false, "replace the directory of an earlier run")
	fs.StringVar(&f.out, "out", "", "of models")
	fs.StringVar(&f.checkpoints, "checkpoint-dir", "", "of training")
	fs.IntVar(&f.checkpointEvery, "checkpoint-every", 0, "of training")
	fs.BoolVar(&f.resume, "resume", false, "of training")
	for _, name := range jobFlags {
		_ = fs.MarkHidden(name)
	}
}

// jobFlags are flags that every job's process is given.
var jobFlags = []string{"replace", "out", "checkpoint-dir", "checkpoint-every", "resume"}

// job returns what is to be predicted, and how the engine runs.
func (f *predictFlags) job(c *cobra.Command, dir string) (p mllib.PredictConfig, cfg volley.Config, err error) {
	if err = f.ready(c); err != nil {
		return p, cfg, err
	}
	if f.output == "" {
		return p, cfg, usage(c, "output", "it is missing: say where predictions go")
	}
	if err = volley.OneOf("compress", f.codec, "none", "gzip", "zstd"); err != nil {
		return p, cfg, err
	}
	if wire.ThisProcess().Role == "" {
		if err = f.asUser(c); err != nil {
			return p, cfg, err
		}
	}
	cfg, err = f.engine.Config()
	return mllib.PredictConfig{Model: localPath(dir), Data: absolute(f.data), Input: f.labelled(),
		Output: localPath(f.output), Overwrite: f.replace, Compressed: f.codec,
		Probabilities: f.probabilities, Threshold: f.threshold.value()}, cfg, err
}

// asUser checks what a user says, who knows nothing of the flags that every job's process is given.
func (f *predictFlags) asUser(c *cobra.Command) error {
	f.replace = f.overwrite
	for _, name := range jobFlags {
		if c.Flags().Changed(name) {
			return usage(c, name, "it is of training; --output says where predictions go")
		}
	}
	if t := f.threshold.value(); t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		return usage(c, "threshold", "%v is not a number", *t)
	}
	if err := notAnInput(c, "event-log", f.engine.EventLog(), f.data); err != nil {
		return err
	}
	if out := localPath(f.output); strings.Contains(out, "://") && !objects.Is(out) {
		return usage(c, "output", "%s is neither a path nor the name of objects", out)
	}
	for _, in := range f.data {
		if overlap(localPath(f.output), beforePattern(localPath(in))) {
			return usage(c, "output", "%s is read as data: predictions need a directory of their own", in)
		}
	}
	return nil
}

// localPath returns the absolute path of a local file; what names another kind of storage stays.
func localPath(uri string) string {
	return absolute([]string{strings.TrimPrefix(uri, "file://")})[0]
}

// beforePattern returns what comes before the first pattern of a path.
func beforePattern(path string) string {
	if i := strings.IndexAny(path, "*?["); i >= 0 {
		return filepath.Dir(path[:i] + "x")
	}
	return path
}

// overlap reports whether one of two paths is the other, or lies within it.
func overlap(a, b string) bool {
	within := func(dir, path string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	}
	return within(a, b) || within(b, a)
}

func runPredictCommand() *cobra.Command {
	f := &predictFlags{}
	c := &cobra.Command{
		Use:     "predict MODEL --data URI… --output DIR",
		Short:   "Predict labels and scores with a saved model, on executors",
		Long:    "Predict does what volley predict does, as a job." + aboutOutput,
		Example: "  volley run predict model --data test.csv --output predictions",
		Args:    exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			job, cfg, err := f.job(c, args[0])
			if err != nil {
				return err
			}
			r := &predicted{Job: "predict", Output: job.Output}
			_, err = volley.Run(c.Context(), cfg, "predict", job, mllib.BuildPredict,
				func(ctx context.Context, s *rdd.Session, job mllib.PredictConfig, p mllib.PredictPlan) (_ string,
					err error) {
					r.Rows, err = mllib.RunPredict(ctx, s, job, p)
					return "", err
				})
			if err != nil {
				return err
			}
			return r.print(f.json)
		},
	}
	f.registerJob(c)
	return c
}

func submitPredictCommand() *cobra.Command {
	f, s := &predictFlags{}, &submitFlags{}
	c := &cobra.Command{
		Use:     "predict MODEL --data URI… --output DIR",
		Short:   "Predict labels and scores with a saved model on a cluster",
		Long:    "Submits the job that volley run predict describes." + aboutOutput,
		Example: "  volley submit predict /models/churn --data /data/customers.parquet --output /data/churning",
		Args:    exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			job, _, err := f.job(c, args[0])
			if err != nil {
				return err
			}
			if err := s.validate(c, f.asked()); err != nil {
				return err
			}
			jobs := append(jobArgs(c), fmt.Sprintf("--replace=%v", f.overwrite), job.Model)
			info, err := submit(c, "predict", jobs, s, f.asked(), f.asked().brings(c.Context()))
			if err != nil || info == nil {
				return err
			}
			return printPredicted(info, f.json)
		},
	}
	f.registerJob(c)
	s.register(c.Flags())
	return c
}

// predicted is the JSON object of a job that predicts.
type predicted struct {
	Job    string `json:"job"`
	Rows   int64  `json:"rows"`
	Output string `json:"output"`
}

func (p *predicted) print(asJSON bool) error {
	if asJSON {
		return printJSON(p)
	}
	fmt.Printf("%d predictions in %s\n", p.Rows, p.Output)
	return nil
}

// printPredicted prints the result of a job that has ended.
func printPredicted(info *wire.JobInfo, asJSON bool) error {
	p := &predicted{}
	if err := json.Unmarshal([]byte(info.Result), p); err != nil {
		return fault.New(fault.Corrupt, "read the result of", info.Id, err)
	}
	return p.print(asJSON)
}
