package main

import (
	"maps"
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
	ahead  string   // how rows are prefetched
	others []string // values of --sync, beside boundedModels
}

// boundedModels are the models of tables, and the flags that each has.
var boundedModels = map[string][]string{"bsp": {"prefetch"}, "ssp": {"slack", "prefetch"}, "asp": {"prefetch"},
	"cap": {"slack", "prefetch"}, "vap": {"value-bound", "strong", "prefetch"},
	"cvap": {"slack", "value-bound", "strong", "prefetch"}}

// helpFlagNames are the flags of flexrr's helpers, as helpFlags has them.
var helpFlagNames = []string{"helpers", "reassign-progress", "reassign-trigger", "reassign-first", "reassign-follow",
	"reassign-checks", "reassign-tail"}

// flagsOf returns the flags of a value of --sync.
func flagsOf(sync string) []string {
	if sync == "flexrr" {
		return append([]string{"slack", "prefetch"}, helpFlagNames...)
	}
	return boundedModels[sync]
}

func (f *boundFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.slack, "slack", 1, "clocks that a worker may be ahead of the slowest, of "+
		strings.Join(f.boundedBy("slack"), ", "))
	fs.Float64Var(&f.bound, "value-bound", 0,
		"most that a worker's updates of a number, not seen by all, may add up to, of vap and cvap")
	fs.StringVar(&f.ahead, "prefetch", tables.Aggressive.String(), "rows that workers ask for before they read them, "+
		"of those that their last clock has read: aggressive (the newest), conservative (what they would wait for), "+
		"off")
	fs.BoolVar(&f.strong, "strong", false, "bound what only some workers have seen as well, of vap and cvap")
}

// model returns the model that --sync and the flags ask for.
func (f *boundFlags) model(c *cobra.Command, sync string) (m tables.Model, err error) {
	has, known := boundedModels[sync]
	if !known && !slices.Contains(f.others, sync) {
		all := append([]string{"bsp", "ssp", "asp", "cap", "vap", "cvap"}, f.others...)
		return m, volley.OneOf("sync", sync, all...)
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
	case "ssp", "flexrr":
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
	if m.Prefetch, err = tables.ParsePrefetch(f.ahead); err != nil {
		return m, usage(c, "prefetch", "%v", err)
	}
	return m, m.Check()
}

// unused refuses flags that mean nothing to a value of --sync.
func (f *boundFlags) unused(c *cobra.Command, sync string) error {
	for _, flag := range append([]string{"slack", "value-bound", "strong", "prefetch"}, helpFlagNames...) {
		if c.Flags().Changed(flag) && !slices.Contains(flagsOf(sync), flag) {
			return usage(c, flag, "it means nothing to --sync %s; it is of %s", sync,
				strings.Join(f.boundedBy(flag), ", "))
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
	what := "what workers may miss of each other: bsp (nothing of rounds before, so that a run gives the same bytes " +
		"every time), ssp (the last --slack rounds), asp (anything), cap (as ssp, updates seen as soon as possible), " +
		"vap (updates of a number that add up to --value-bound), cvap (both bounds)"
	if slices.Contains(f.others, "flexrr") {
		what += ", flexrr (as ssp, and the fast do parts of the slow's clocks)"
	}
	fs.StringVar(&f.sync, "sync", "bsp", what)
	f.boundFlags.register(fs)
}

func (f *boundedFlags) model(c *cobra.Command) (tables.Model, error) {
	return f.boundFlags.model(c, f.sync)
}

// helpedFlags are those of jobs on tables whose workers may do parts of one another's clocks.
type helpedFlags struct {
	boundedFlags
	helpFlags
}

func (f *helpedFlags) register(fs *pflag.FlagSet) {
	f.others = []string{"flexrr"}
	f.boundedFlags.register(fs)
	f.helpFlags.register(fs)
}

// asked returns the model, and how helpers are asked; nil where none are.
func (f *helpedFlags) asked(c *cobra.Command) (m tables.Model, help *tables.Help, err error) {
	if m, err = f.model(c); err == nil && f.sync == "flexrr" {
		help, err = f.asksHelp()
	}
	return m, help, err
}

// nameOf returns the name of a model, as the report of a run has it.
func nameOf(m tables.Model, help *tables.Help) string {
	if help != nil {
		return (&mllib.Bounded{Model: m, Help: help}).Name()
	}
	return m.String()
}

// workerFlags are those of jobs that may be trained by workers on tables.
type workerFlags struct {
	boundFlags
	helpFlags
	passes float64
	batch  int
}

// workerSyncs are the values of --sync for which workers on tables train.
var workerSyncs = []string{"ssp", "asp", "cap", "vap", "cvap", "flexrr"}

func (f *workerFlags) register(fs *pflag.FlagSet) {
	f.others = []string{"flexrr"}
	f.boundFlags.register(fs)
	f.helpFlags.register(fs)
	fs.Float64Var(&f.passes, "wpc", 1, "work per clock, of "+strings.Join(workerSyncs, ", ")+
		": passes of a worker over its split; of flexrr at most 1")
	fs.IntVar(&f.batch, "batch", 0, "rows of a worker's step, of the same, which flexrr hands over as a whole "+
		"(default: by the data)")
}

// helpFlags are the parameters of RapidReassignment.
type helpFlags struct{ help tables.Help }

func (f *helpFlags) register(fs *pflag.FlagSet) {
	d := tables.DefaultHelp()
	f.help = d
	fs.IntVar(&f.help.Group, "helpers", d.Group, "workers that may do parts of one's clock for it, of flexrr")
	fs.Float64Var(&f.help.Progress, "reassign-progress", d.Progress,
		"share of its clock at which a worker tells those that it may help how far it is, in (0, 1], of flexrr")
	fs.Float64Var(&f.help.Trigger, "reassign-trigger", d.Trigger,
		"share of a clock that a worker is behind when it offers work, in (0, 1], of flexrr")
	fs.Float64Var(&f.help.First, "reassign-first", d.First,
		"share of what is left to do that it offers at first, in (0, 1], of flexrr")
	fs.Float64Var(&f.help.Follow, "reassign-follow", d.Follow,
		"times as much as before that it offers next, at least 1, of flexrr")
	fs.IntVar(&f.help.Checks, "reassign-checks", d.Checks,
		"how often in a clock a worker looks for messages, of flexrr")
	fs.Float64Var(&f.help.Tail, "reassign-tail", d.Tail,
		"share of a clock, up to its end, that others may do, in (0, 1], of flexrr")
}

// asked returns how workers on tables are to train; nil where steps do.
func (f *workerFlags) asked(c *cobra.Command, sync string) (*mllib.Bounded, error) {
	if !slices.Contains(workerSyncs, sync) {
		for _, flag := range []string{"wpc", "batch", "prefetch"} {
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
	b := &mllib.Bounded{Model: m, Passes: f.passes, Batch: f.batch}
	if sync != "flexrr" || err != nil {
		return b, err
	}
	if f.passes > 1 {
		return nil, usage(c, "wpc", "%v is above 1: a row that is visited twice in a clock cannot be handed over "+
			"under --sync flexrr; ssp takes it", f.passes)
	}
	b.Help, err = f.asksHelp()
	return b, err
}

// asksHelp returns how helpers are asked.
func (f *helpFlags) asksHelp() (*tables.Help, error) {
	return &f.help, volley.FirstError(volley.Within("helpers", float64(f.help.Group), 0, 1e6, false),
		volley.Within("reassign-progress", f.help.Progress, 0, 1, true),
		volley.Within("reassign-trigger", f.help.Trigger, 0, 1, true),
		volley.Within("reassign-first", f.help.First, 0, 1, true),
		volley.Within("reassign-follow", f.help.Follow, 1, 1e9, false),
		volley.Within("reassign-checks", float64(f.help.Checks), 1, 1e9, false),
		volley.Within("reassign-tail", f.help.Tail, 0, 1, true), f.help.Check())
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

// boundedBy returns the values of --sync that have a flag.
func (f *boundFlags) boundedBy(flag string) (names []string) {
	for _, name := range append(slices.Collect(maps.Keys(boundedModels)), f.others...) {
		if slices.Contains(flagsOf(name), flag) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
