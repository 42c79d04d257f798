package main

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/internal/history"
)

func reportCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report LOG…",
		Short: "Show how runs went, from their event logs",
		Long: `Report reads the event logs of runs, has their jobs decide again what they decided,
and writes one file that needs nothing else: a page where --out ends in .html, a line
for each pass where in .csv, all that is known of the runs where in .json. The page says
of each run whether the model is done, which executor is slow, and what waiting for all
rows would have cost; and draws the objective by time, of all runs in one figure, and of
each the share of each split in each step, moves of splits, how fast executors are, and
what the time of steps went into. Each figure says how to read it, and has its numbers.`,
		Example: "  volley run logistic --data train.libsvm --event-log run.log\n" +
			"  volley report run.log --out run.html",
		Args: someArgs("event logs"),
		RunE: func(_ *cobra.Command, args []string) error {
			var runs []history.Run
			for i, path := range args {
				run, err := history.Read(path, namesOf(args)[i])
				if err != nil {
					return err
				}
				runs = append(runs, run)
			}
			return history.Write(out, runs)
		},
	}
	c.Flags().StringVar(&out, "out", "report.html", "file to write: .html, .csv or .json")
	return c
}

// namesOf returns names that tell paths apart: the files' own, where these do.
func namesOf(paths []string) (names []string) {
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(paths) {
		return paths
	}
	return names
}
