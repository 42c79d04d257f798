package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/tables"
)

// boundedFlags say what reads of a job's tables may miss.
type boundedFlags struct {
	sync   string
	slack  int
	bound  float64
	strong bool
}

// boundedModels are the models of tables, and the flags that each has.
var boundedModels = map[string][]string{"bsp": nil, "ssp": {"slack"}, "asp": nil, "cap": {"slack"},
	"vap": {"value-bound", "strong"}, "cvap": {"slack", "value-bound", "strong"}}

func (f *boundedFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.sync, "sync", "bsp", "what workers may miss of each other: bsp (nothing of rounds before, so "+
		"that a run gives the same bytes every time), ssp (the last --slack rounds), asp (anything), cap (as ssp, "+
		"updates seen as soon as possible), vap (updates of a number that add up to --value-bound), cvap (both bounds)")
	fs.IntVar(&f.slack, "slack", 1, "rounds that a worker may be ahead of the slowest, of ssp, cap and cvap")
	fs.Float64Var(&f.bound, "value-bound", 0,
		"most that a worker's updates of a number, not seen by all, may add up to, of vap and cvap")
	fs.BoolVar(&f.strong, "strong", false, "bound what only some workers have seen as well, of vap and cvap")
}

// model returns the model that the flags ask for.
func (f *boundedFlags) model(c *cobra.Command) (m tables.Model, err error) {
	has, known := boundedModels[f.sync]
	if !known {
		return m, volley.OneOf("sync", f.sync, "bsp", "ssp", "asp", "cap", "vap", "cvap")
	}
	for _, flag := range []string{"slack", "value-bound", "strong"} {
		if c.Flags().Changed(flag) && !slices.Contains(has, flag) {
			return m, usage(c, flag, "it means nothing to --sync %s; it is of %s", f.sync,
				strings.Join(boundedBy(flag), ", "))
		}
	}
	if slices.Contains(has, "value-bound") && !(f.bound > 0) {
		return m, usage(c, "value-bound", "%v is no bound: --sync %s needs one above 0", f.bound, f.sync)
	}
	if f.slack < 0 {
		return m, usage(c, "slack", "%d is below 0", f.slack)
	}
	switch f.sync {
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
