package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/tables"
)

// boundFlags say what reads of a job's tables may miss.
type boundFlags struct {
	slack  int
	bound  float64
	strong bool
}

// boundedModels are the models of tables, and the flags that each has.
var boundedModels = map[string][]string{"bsp": nil, "ssp": {"slack"}, "asp": nil, "cap": {"slack"},
	"vap": {"value-bound", "strong"}, "cvap": {"slack", "value-bound", "strong"}}

// boundFlagNames are the flags of models, as boundFlags has them.
var boundFlagNames = []string{"slack", "value-bound", "strong"}

func (f *boundFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.slack, "slack", 1, "clocks that a worker may be ahead of the slowest, of ssp, cap and cvap")
	fs.Float64Var(&f.bound, "value-bound", 0,
		"most that a worker's updates of a number, not seen by all, may add up to, of vap and cvap")
	fs.BoolVar(&f.strong, "strong", false, "bound what only some workers have seen as well, of vap and cvap")
}

// model returns the model that --sync and the flags ask for.
func (f *boundFlags) model(c *cobra.Command, sync string) (m tables.Model, err error) {
	has, known := boundedModels[sync]
	if !known {
		return m, volley.OneOf("sync", sync, "bsp", "ssp", "asp", "cap", "vap", "cvap")
	}
	if err := f.unused(c, sync); err != nil {
		return m, err
	}
	if slices.Contains(has, "value-bound") && !(f.bound > 0) {
		return m, usage(c, "value-bound", "%v is no bound: --sync %s needs one above 0", f.bound, sync)
	}
	if f.slack < 0 {
		return m, usage(c, "slack", "%d is below 0", f.slack)
	}
	switch sync {
	case "ssp":
		m = tables.SSP(f.slack)
	case "asp":
		m = tables.ASP()
	case "cap":
		m = tables.CAP(f.slack)
	case "vap":
		m = tables.VAP(f.bound, f.strong)
	case "cvap":
		m = tables.CVAP(f.slack, f.bound, f.strong)
	}
	return m, m.Check()
}

// unused refuses flags that mean nothing to a value of --sync.
func (f *boundFlags) unused(c *cobra.Command, sync string) error {
	for _, flag := range boundFlagNames {
		if c.Flags().Changed(flag) && !slices.Contains(boundedModels[sync], flag) {
			return usage(c, flag, "it means nothing to --sync %s; it is of %s", sync,
				strings.Join(boundedBy(flag), ", "))
		}
	}
	return nil
}

// boundedFlags are those of jobs that are always on tables.
type boundedFlags struct {
	sync string
	boundFlags
}

func (f *boundedFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.sync, "sync", "bsp", "what workers may miss of each other: bsp (nothing of rounds before, so "+
		"that a run gives the same bytes every time), ssp (the last --slack rounds), asp (anything), cap (as ssp, "+
		"updates seen as soon as possible), vap (updates of a number that add up to --value-bound), cvap (both bounds)")
	f.boundFlags.register(fs)
}

func (f *boundedFlags) model(c *cobra.Command) (tables.Model, error) {
	return f.boundFlags.model(c, f.sync)
}

// workerFlags are those of jobs that may be trained by workers on tables.
type workerFlags struct {
	boundFlags
	passes float64
	batch  int
}

// workerSyncs are the values of --sync for which workers on tables train.
var workerSyncs = []string{"ssp", "asp", "cap", "vap", "cvap"}

func (f *workerFlags) register(fs *pflag.FlagSet) {
	f.boundFlags.register(fs)
	fs.Float64Var(&f.passes, "wpc", 1, "work per clock, of "+strings.Join(workerSyncs, ", ")+
		": passes of a worker over its split")
	fs.IntVar(&f.batch, "batch", 0, "rows of a worker's step, of the same (default: by the data)")
}

// asked returns how workers on tables are to train; nil where steps do.
func (f *workerFlags) asked(c *cobra.Command, sync string) (*mllib.Bounded, error) {
	if !slices.Contains(workerSyncs, sync) {
		for _, flag := range []string{"wpc", "batch"} {
			if c.Flags().Changed(flag) {
				return nil, usage(c, flag, "it means nothing to --sync %s; it is of %s", sync,
					strings.Join(workerSyncs, ", "))
			}
		}
		return nil, f.unused(c, sync)
	}
	if err := volley.FirstError(volley.Within("wpc", f.passes, 1e-6, 1e6, false),
		volley.Within("batch", float64(f.batch), 0, 1e9, false)); err != nil {
		return nil, err
	}
	m, err := f.model(c, sync)
	return &mllib.Bounded{Model: m, Passes: f.passes, Batch: f.batch}, err
}

// refuseWorkers refuses to have workers on tables train a job that they do not.
func (f *trainFlags) refuseWorkers(c *cobra.Command, j job) error {
	if f.workers != nil || !slices.Contains(workerSyncs, f.engine.Sync()) {
		return nil
	}
	var those []string
	for _, name := range jobNames() {
		if onTables(newJob(name)) {
			those = append(those, name)
		}
	}
	hint := "they train " + strings.Join(those, ", ")
	if j.about().name == "als" {
		hint += "; and volley run mf, from ratings"
	}
	return usage(c, "sync", "workers under %s do not train %s: %s", f.engine.Sync(), j.about().name, hint)
}

// refuseBounded refuses what workers on tables do not do.
func (f *trainFlags) refuseBounded(c *cobra.Command) error {
	if !c.Flags().Changed("validation") {
		return nil
	}
	return usage(c, "validation", "it stops steps, not the workers of --sync %s; --max-iterations does",
		f.engine.Sync())
}

// boundedBy returns the models that have a flag.
func boundedBy(flag string) (names []string) {
	for name, has := range boundedModels {
		if slices.Contains(has, flag) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
