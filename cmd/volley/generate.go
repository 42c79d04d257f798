package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/synth"
)

// lawFlags are the flags of all laws; each registers those it has.
type lawFlags struct {
	rows, users, items       int64
	features, parts, k, rank int
	eps, intercept, r, noise float64
	length, scale, workers   int
	format, out              string
}

// law is the law of a job's synthetic data, as commands see it.
type law struct {
	name, short, long string
	formats           []string
	flags             func(f *lawFlags, fs *pflag.FlagSet)
	make              func(f *lawFlags) synth.Law
}

var tableFormats, allFormats = []string{"csv", "parquet", "arrow"}, []string{"libsvm", "csv", "parquet", "arrow"}

func (f *lawFlags) size(fs *pflag.FlagSet, features int) {
	fs.Int64Var(&f.rows, "rows", 100_000, "rows")
	fs.IntVar(&f.features, "features", features, "features")
}

func (f *lawFlags) linear(fs *pflag.FlagSet) {
	f.size(fs, 100)
	fs.Float64Var(&f.eps, "eps", 0.5, "standard deviation of the noise")
	fs.Float64Var(&f.intercept, "intercept", 0.1, "what is added to every label")
	fs.IntVar(&f.parts, "parts", 24, "parts, each with a generator of its own; they decide the rows, as SparkBench's "+
		"partitions do")
}

func (f *lawFlags) centres(fs *pflag.FlagSet) {
	f.size(fs, 200)
	fs.IntVar(&f.k, "k", 10, "centres")
	fs.Float64Var(&f.r, "r", 0.6, "how far apart centres lie")
}

const aboutLinear = `Weights are uniform in [−½, ½) of java.util.Random(42). Part p has rows/parts
rows drawn from Random(42+p): features uniform in [−1, 1), the label their product
with the weights plus --intercept plus --eps·N(0, 1).`

func makeLinear(f *lawFlags) synth.Law {
	return synth.NewLinear(f.rows, f.features, f.parts, f.eps, f.intercept)
}

// laws are the laws of WORKLOADS, by job.
var laws = []law{
	{"logistic", "Two shifted normal classes, as SparkBench's logistic regression data",
		`Row i is drawn from java.util.Random seeded with 42+i: its label is i mod 2 and
every feature is standard normal plus label·eps.`, allFormats,
		func(f *lawFlags, fs *pflag.FlagSet) {
			f.size(fs, 250)
			fs.Float64Var(&f.eps, "eps", 0.5, "how far apart the classes lie in each feature")
		}, func(f *lawFlags) synth.Law { return synth.Logistic{Rows: f.rows, Features: f.features, Eps: f.eps} }},
	{"sparse", "Two shifted classes of sparse rows",
		`As logistic, but each feature is 0, except with a probability that each of --parts
parts has for its rows: 1, 2, 5 or 10 %, by java.util.Random(42+part).`, []string{"libsvm"},
		func(f *lawFlags, fs *pflag.FlagSet) {
			f.size(fs, 10_000)
			fs.Float64Var(&f.eps, "eps", 0.5, "how far apart the classes lie in each feature")
			fs.IntVar(&f.parts, "parts", 24, "parts, each with a density of its own")
		}, func(f *lawFlags) synth.Law {
			return synth.Sparse{Rows: f.rows, Features: f.features, Parts: f.parts, Eps: f.eps}
		}},
	{"classes", "Points about centres, labelled by their centre",
		`As kmeans, with the number of a point's centre for its label.`, allFormats,
		(*lawFlags).centres,
		func(f *lawFlags) synth.Law {
			return synth.Classes{KMeans: synth.NewKMeans(f.rows, f.features, f.k, f.r)}
		}},
	{"svm", "Two classes on both sides of a plane, as MLlib's SVM data",
		`The plane's weights are standard normal numbers of java.util.Random(94720). Row i
is drawn from Random(42+i): features uniform in [−1, 1), label 1 where their product
with the weights plus 0.1·N(0, 1) is not negative.`, allFormats,
		func(f *lawFlags, fs *pflag.FlagSet) { f.size(fs, 250) },
		func(f *lawFlags) synth.Law { return synth.NewSVM(f.rows, f.features) }},
	{"lasso", "Linear data, as MLlib's linear data generator", aboutLinear, allFormats, (*lawFlags).linear, makeLinear},
	{"ridge", "Linear data, as MLlib's linear data generator", aboutLinear, allFormats, (*lawFlags).linear, makeLinear},
	{"kmeans", "Points about centres, as MLlib's k-means data",
		`The --k centres are standard normal numbers of java.util.Random(42) times --r. Point
i lies about centre i mod k, by standard normal numbers of Random(42+i).`, allFormats,
		(*lawFlags).centres,
		func(f *lawFlags) synth.Law { return synth.NewKMeans(f.rows, f.features, f.k, f.r) }},
	{"als", "Ratings that are cells of a product of normal factors",
		`Cells of A·B have variance 1; --rows of them, no two the same, are chosen by a
permutation of all users·items cell numbers, and the product is never made as a
whole. Users and items count from 1.`, tableFormats,
		func(f *lawFlags, fs *pflag.FlagSet) {
			fs.Int64Var(&f.rows, "rows", 100_000, "ratings")
			fs.Int64Var(&f.users, "users", 3000, "users")
			fs.Int64Var(&f.items, "items", 300, "items")
			fs.IntVar(&f.rank, "rank", 10, "rank of the product")
			fs.Float64Var(&f.noise, "noise", 0.1, "standard deviation of the noise")
		}, func(f *lawFlags) synth.Law {
			return synth.Ratings{Rows: f.rows, Users: f.users, Items: f.items, Rank: f.rank, Noise: f.noise}
		}},
	{"documents", "Documents that mix topics, for lda",
		`Each document is of two or three of --k topics, and of tokens between half and
three halves of --length. The words of a topic have probabilities of 1/(3+rank),
in an order of the topic's own. Document i is drawn from java.util.Random(42+i).`,
		[]string{"lda-c"},
		func(f *lawFlags, fs *pflag.FlagSet) {
			fs.Int64Var(&f.rows, "rows", 10_000, "documents")
			fs.IntVar(&f.features, "words", 5000, "words of the vocabulary")
			fs.IntVar(&f.k, "k", 20, "topics")
			fs.IntVar(&f.length, "length", 100, "tokens of a document, on average")
		}, func(f *lawFlags) synth.Law { return synth.NewDocuments(f.rows, f.features, f.k, f.length) }},
	{"graph", "Edges of a graph, for pagerank and components",
		`Nodes have very unlike numbers of edges (R-MAT): an edge falls into a quarter of all
pairs of nodes with probabilities of 0.57, 0.19, 0.19 and 0.05, into a quarter of
that, and so on. Nodes are below 2^--scale. Edge i is drawn from
java.util.Random(42+i); some come more than once.`,
		[]string{"txt"},
		func(f *lawFlags, fs *pflag.FlagSet) {
			fs.Int64Var(&f.rows, "rows", 100_000, "edges")
			fs.IntVar(&f.scale, "scale", 14, "binary digits of a node, up to 40")
		}, func(f *lawFlags) synth.Law { return synth.Graph{Rows: f.rows, Scale: f.scale} }},
}

func generateCommand() *cobra.Command {
	var names []string
	g := &cobra.Command{
		Use:   "generate JOB",
		Short: "Make the synthetic data of the papers' workloads",
	}
	for _, l := range laws {
		names = append(names, l.name)
		g.AddCommand(l.command())
	}
	return oneOfThem(g, func() []string { return names }, "job that data are made for")
}

func (l law) command() *cobra.Command {
	f := &lawFlags{}
	c := &cobra.Command{
		Use:   l.name + " --out PATH",
		Short: l.short,
		Long:  l.long + "\nAny number of workers gives the same bytes.",
		Args:  exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if !c.Flags().Changed("format") {
				f.format = l.formatOf(f.out)
			}
			if err := f.check(c, l); err != nil {
				return err
			}
			if err := synth.Write(c.Context(), l.make(f), f.format, f.out, f.workers); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s data in %s\n", l.name, f.out)
			return nil
		},
	}
	fs := c.Flags()
	f.features, f.parts, f.k, f.rank, f.length, f.scale = 1, 1, 1, 1, 1, 1 // where a law has no such flag
	f.users, f.items = 1<<31, 1<<31
	l.flags(f, fs)
	fs.StringVar(&f.format, "format", l.formats[0],
		strings.Join(l.formats, ", ")+" (default: as --out is named, else "+l.formats[0]+")")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "goroutines; does not change the bytes (default: cores)")
	fs.StringVar(&f.out, "out", "", "file to write")
	fs.String("config", "", "YAML file with values for flags")
	return c
}

// formatOf returns the format that a file's name asks for, where it is one of the
// law's; else its first.
func (l law) formatOf(path string) string {
	ext := strings.TrimPrefix(filepath.Ext(path), ".")
	if slices.Contains(l.formats, ext) {
		return ext
	}
	return l.formats[0]
}

// check refuses parameters that no data can be generated from.
func (f *lawFlags) check(c *cobra.Command, l law) error {
	switch {
	case f.rows < 1:
		return usage(c, "rows", "%d is not a number of rows", f.rows)
	case f.features < 1 || f.features > 1<<24:
		return usage(c, "features", "%d is not a number of features", f.features)
	case f.parts < 1 || int64(f.parts) > f.rows:
		return usage(c, "parts", "%d is not a number of parts of %d rows", f.parts, f.rows)
	case f.k < 1 || f.k > 1<<24:
		return usage(c, "k", "%d is not a number of centres", f.k)
	case f.length < 1 || f.length > 1<<24:
		return usage(c, "length", "%d is not a number of tokens", f.length)
	case f.scale < 1 || f.scale > 40:
		return usage(c, "scale", "%d does not lie in [1, 40]", f.scale)
	case f.rank < 1 || f.rank > 1<<16:
		return usage(c, "rank", "%d is not a rank", f.rank)
	case f.users < 1 || f.users > 1<<31:
		return usage(c, "users", "%d is not a number of users", f.users)
	case f.items < 1 || f.items > 1<<31:
		return usage(c, "items", "%d is not a number of items", f.items)
	case f.rows > f.users*f.items:
		return usage(c, "rows", "%d ratings are more than the %d cells", f.rows, f.users*f.items)
	case f.workers < 1 || f.workers > 4096:
		return usage(c, "workers", "%d is not a number of workers", f.workers)
	case f.out == "":
		return usage(c, "out", "it is missing")
	}
	return volley.OneOf("format", f.format, l.formats...)
}
