package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
)

func importanceCommand() *cobra.Command {
	f := &dataFlags{}
	cfg := mllib.ImportanceConfig{}
	c := &cobra.Command{
		Use:   "importance MODEL --data URI",
		Short: "Measure how much a saved model relies on each column",
		Long: `Importance gives each column in turn the values of other rows, --repeats times, and
prints how much worse the model's --metric becomes: the mean, and the deviation. Of
columns that tell the same, such as two units of one length, each seems to matter
little, since the other is still there. The data should be rows that the model was
not trained on.`,
		Example: "  volley importance model --data test.csv --repeats 10",
		Args:    exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.ready(c); err != nil {
				return err
			}
			if err := volley.Within("repeats", float64(cfg.Repeats), 1, 1e6, false); err != nil {
				return err
			}
			if f.json && f.outFile == "-" {
				return usage(c, "out", "- and --json would write to stdout both: name a file")
			}
			if f.outFile != "" {
				if err := notAnInput(c, "out", f.outFile, f.data); err != nil {
					return err
				}
			}
			m, err := f.load(args[0])
			if err != nil {
				return err
			}
			found, err := mllib.ImportancesOf(c.Context(), m, f.labelled(), f.data, cfg)
			if err != nil {
				return err
			}
			return f.writeImportances(found)
		},
	}
	f.register(c)
	fs := c.Flags()
	fs.StringVar(&cfg.Metric, "metric", "", "what is to become worse (default: auc, accuracy or r2, by the model)")
	fs.IntVar(&cfg.Repeats, "repeats", 5, "permutations of each column")
	fs.Uint64Var(&cfg.Seed, "seed", 1, "seed of the permutations")
	fs.StringVar(&f.outFile, "out", "", "CSV file for the importances (default: print them); - is stdout")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *dataFlags) writeImportances(found *mllib.Importances) error {
	if f.json {
		if err := printJSON(found); err != nil || f.outFile == "" {
			return err
		}
	} else if f.outFile == "" {
		fmt.Print(found)
		return nil
	}
	lines := [][]string{{"column", found.Metric, "std"}}
	for _, i := range found.Columns {
		lines = append(lines, []string{i.Column, strconv.FormatFloat(i.Mean, 'g', -1, 64),
			strconv.FormatFloat(i.Std, 'g', -1, 64)})
	}
	return toFile(f.outFile, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(lines) })
}
