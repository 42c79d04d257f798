package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/synth"
)

func generateCommand() *cobra.Command {
	g := &cobra.Command{
		Use:   "generate JOB",
		Short: "Make the synthetic data of the papers' workloads",
		Args: func(_ *cobra.Command, args []string) error {
			return fault.Newf(fault.Usage, "generate", fmt.Sprint(args), "want the name of a job's law").WithHint("laws: logistic")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	g.AddCommand(generateLogisticCommand())
	return g
}

func generateLogisticCommand() *cobra.Command {
	var rows int64
	var features, workers int
	var eps float64
	var format, out string
	c := &cobra.Command{
		Use:   "logistic --rows N --features D --out PATH",
		Short: "Two shifted normal classes, as SparkBench's logistic regression data",
		Long: `Row i is drawn from java.util.Random seeded with 42+i: its label is i mod 2 and
every feature is standard normal plus label·eps. Any number of workers gives
the same bytes.`,
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			switch {
			case rows < 1:
				return usage(c, "rows", "%d is not a number of rows", rows)
			case features < 1 || features > 1<<24:
				return usage(c, "features", "%d is not a number of features", features)
			case workers < 1 || workers > 4096:
				return usage(c, "workers", "%d is not a number of workers", workers)
			case out == "":
				return usage(c, "out", "it is missing")
			}
			if err := volley.OneOf("format", format, "libsvm", "csv", "parquet", "arrow"); err != nil {
				return err
			}
			if err := synth.Write(c.Context(), synth.Logistic{Rows: rows, Features: features, Eps: eps}, format, out, workers); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%d rows × %d features in %s\n", rows, features, out)
			return nil
		},
	}
	fs := c.Flags()
	fs.Int64Var(&rows, "rows", 100_000, "rows")
	fs.IntVar(&features, "features", 250, "features")
	fs.Float64Var(&eps, "eps", 0.5, "how far apart the classes lie in each feature")
	fs.StringVar(&format, "format", "libsvm", "libsvm, csv, parquet or arrow")
	fs.IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "goroutines; does not change the bytes (default: cores)")
	fs.StringVar(&out, "out", "", "file to write")
	fs.String("config", "", "YAML file with values for flags")
	return c
}
