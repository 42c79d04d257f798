package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/objects"
)

// dataFlags are the flags of commands that read data with a model.
type dataFlags struct {
	trainFlags
	outFile     string
	confusion   string
	reliability string
	threshold   thresholdFlag
}

// thresholdFlag is the score above which the greater label is predicted.
type thresholdFlag struct {
	fs    *pflag.FlagSet
	score float64
}

func (f *thresholdFlag) register(fs *pflag.FlagSet) {
	f.fs = fs
	fs.Float64Var(&f.score, "threshold", 0.5,
		"score above which a row is said to have the greater label: a probability, or of svm a margin (default: 0.5, "+
			"of svm 0)")
}

// value returns what was asked for; nil is the model's own.
func (f *thresholdFlag) value() *float64 {
	if f.fs == nil || !f.fs.Changed("threshold") {
		return nil
	}
	return &f.score
}

// load reads a model, and sets its threshold where one is asked for.
func (f *dataFlags) load(dir string) (mllib.Model, error) {
	m, err := mllib.LoadModel(dir)
	if score := f.threshold.value(); err == nil && score != nil {
		err = mllib.SetThreshold(m, *score)
	}
	return m, err
}

func (f *dataFlags) register(c *cobra.Command) {
	f.registerData(c)
	f.threshold.register(c.Flags())
}

// registerData registers the flags that say what is read.
func (f *dataFlags) registerData(c *cobra.Command) {
	fs := c.Flags()
	fs.StringSliceVar(&f.data, "data", nil, "data: paths, globs, directories or file:// URIs")
	fs.StringVar(&f.format, "format", "", "libsvm, csv, tsv, parquet or arrow (default: by name and content)")
	fs.StringVar(&f.label, "label", "", "column of the label: a name, a zero-based number, or none")
	fs.StringVar(&f.weight, "weight-column", "",
		"column of rows' weights: a name, a zero-based number, or none (default: the model's, where there is one)")
	f.tables.register(fs)
	f.tables.registerMalformed(fs)
	fs.StringVar(&f.indexBase, "index-base", "auto", "first column number of LIBSVM data: 0, 1 or auto (the model's)")
	fs.StringVar(&f.config, "config", "", "YAML file with values for flags")
}

func (f *dataFlags) ready(c *cobra.Command) error {
	if err := fillFlags(c); err != nil {
		return err
	}
	if len(f.data) == 0 {
		return usage(c, "data", "it is missing")
	}
	if f.tables.malformed == "drop" {
		return usage(c, "malformed", "what a model says is said of every row: leave malformed ones out of the file")
	}
	return checkInput(c, &f.trainFlags)
}

// labelled returns how to read the data; a label of none is no column.
func (f *dataFlags) labelled() rdd.Input {
	in := f.input()
	if f.label == "none" {
		in.NoLabel, in.Label = true, ""
	}
	if f.weight == "none" {
		in.NoWeight, in.Weight = true, ""
	}
	return in
}

// toFile writes a file atomically; - is stdout.
func toFile(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(os.Stdout)
	}
	if objects.Is(path) {
		return toObject(path, write)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".writing-*")
	if err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	if cerr := tmp.Close(); err == nil && cerr != nil {
		err = fault.New(fault.NoResources, "write", path, cerr)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), 0o644); err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	return nil
}

func toObject(name string, write func(io.Writer) error) error {
	w, err := objects.Create(context.Background(), name)
	if err != nil {
		return err
	}
	defer w.Abort() // nothing, once it is closed
	if err := write(w); err != nil {
		return err
	}
	return w.Close()
}

func evaluateCommand() *cobra.Command {
	f := &dataFlags{}
	c := &cobra.Command{
		Use:   "evaluate MODEL --data URI",
		Short: "Measure a saved model on labelled data",
		Args:  exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.ready(c); err != nil {
				return err
			}
			m, err := f.load(args[0])
			if err != nil {
				return err
			}
			metrics, err := m.Evaluate(c.Context(), f.labelled(), f.data)
			if err == nil && noneMeasured(metrics) {
				err = fault.Newf(fault.BadInput, "evaluate", strings.Join(f.data, " "), "it has no rows")
			}
			if err == nil && f.confusion != "" {
				err = f.writeConfusion(c, m)
			}
			if err == nil && f.reliability != "" {
				err = f.writeReliability(c, m)
			}
			if err != nil {
				return err
			}
			return printMetrics(metrics, f.json)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	c.Flags().StringVar(&f.confusion, "confusion", "",
		"CSV file for a table of labels, and what is said of their rows (of classifiers); - is stdout")
	c.Flags().StringVar(&f.reliability, "reliability", "",
		"CSV file for how often what is said is so, by ranges of probabilities (logistic, calibrated svm); - is stdout")
	return c
}

// writeReliability writes how often what a model says is so.
func (f *dataFlags) writeReliability(c *cobra.Command, m mllib.Model) error {
	if f.json && f.reliability == "-" {
		return usage(c, "reliability", "- and --json would write to stdout both: name a file")
	}
	if err := notAnInput(c, "reliability", f.reliability, f.data); err != nil {
		return err
	}
	linear, ok := m.(*mllib.LinearModel)
	if !ok {
		return usage(c, "reliability", "it is measured of models of logistic and of calibrated ones of svm")
	}
	table, err := linear.Reliability(c.Context(), f.labelled(), f.data)
	if err != nil {
		return err
	}
	return toFile(f.reliability, table.WriteCSV)
}

func calibrateCommand() *cobra.Command {
	f := &dataFlags{}
	var method string
	c := &cobra.Command{
		Use:   "calibrate MODEL --data URI --out DIR",
		Short: "Make probabilities of a saved classifier's scores",
		Long: `Calibrate fits how probable the greater label is at each score of a binary
classifier, to labelled rows that it was not trained on, and saves the model with
that: its scores, and its --threshold, are probabilities from then on. A sigmoid
has two numbers; isotonic takes any shape that ascends, and wants a thousand rows.`,
		Example: "  volley calibrate svm-model --data held-out.csv --out calibrated",
		Args:    exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.ready(c); err != nil {
				return err
			}
			if err := volley.OneOf("method", method, "sigmoid", "isotonic"); err != nil {
				return err
			}
			if f.out == "" {
				return usage(c, "out", "it is missing: say where the calibrated model goes")
			}
			if err := mllib.CanSave(f.out, f.overwrite); err != nil {
				return err
			}
			m, err := mllib.LoadModel(args[0])
			if err != nil {
				return err
			}
			linear, ok := m.(*mllib.LinearModel)
			if !ok {
				return fault.Newf(fault.Usage, "calibrate", args[0],
					"only models of logistic and svm can be calibrated")
			}
			if linear.Threshold != nil {
				fmt.Fprintf(os.Stderr, "its threshold of %v, which is of the score before, is left out\n",
					*linear.Threshold)
			}
			if err := linear.Calibrate(c.Context(), f.labelled(), f.data, method); err != nil {
				return err
			}
			fmt.Fprint(os.Stderr, linear.Calibration)
			return linear.Save(f.out, f.overwrite)
		},
	}
	f.registerData(c)
	fs := c.Flags()
	fs.StringVar(&method, "method", "sigmoid", "sigmoid, or isotonic")
	fs.StringVar(&f.out, "out", "", "directory for the calibrated model")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace a model in --out")
	return c
}

// writeConfusion writes which labels a model takes for which.
func (f *dataFlags) writeConfusion(c *cobra.Command, m mllib.Model) error {
	if f.json && f.confusion == "-" {
		return usage(c, "confusion", "- and --json would write to stdout both: name a file")
	}
	if err := notAnInput(c, "confusion", f.confusion, f.data); err != nil {
		return err
	}
	by, ok := m.(mllib.Confusing)
	if !ok {
		return usage(c, "confusion", "the model tells no labels")
	}
	table, err := by.Confusion(c.Context(), f.labelled(), f.data)
	if err != nil {
		return err
	}
	return toFile(f.confusion, table.WriteCSV)
}

// noneMeasured reports whether a table had no row to measure a model by.
func noneMeasured(metrics map[string]float64) bool {
	for _, v := range metrics {
		if !math.IsNaN(v) {
			return false
		}
	}
	return true
}

func printMetrics(metrics map[string]float64, asJSON bool) error {
	if asJSON {
		return printJSON(metrics)
	}
	var names []string
	for name := range metrics {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("%s %.6g\n", name, metrics[name])
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  exactArgs(0, "no arguments"),
		Run: func(*cobra.Command, []string) {
			fmt.Printf("volley %s %s %s/%s, protocol %s, kernels %s\n", volley.Version, runtime.Version(), runtime.GOOS,
				runtime.GOARCH,
				version.Newest, kernel.Path())
		},
	}
}
