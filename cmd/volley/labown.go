package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/internal/experiment"
	"github.com/volley-engine/volley/internal/fault"
)

func labOwnCommand() *cobra.Command {
	f := &labFlags{}
	c := &cobra.Command{
		Use:   "own JOB --data PATH [flags of volley run]",
		Short: "The table of gain, for data of your own",
		Long: `Own makes the table of gain for a job on data of your own: the best exact run of
any solver, the A-BSP paper's own method, volley's defaults, and Ideal, under every
law. Speed 1 is that of one slot of this machine. Of the flags --out, --quick,
--seeds, --parallel and --laws are those of lab run, the others those of volley run.`,
		Example:            "  volley lab run own logistic --data train.csv --label churned --laws physical",
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			lab, job := f.split(args)
			flags := &cobra.Command{Use: c.Use}
			f.flags(flags.Flags())
			if err := flags.ParseFlags(lab); err != nil {
				return fault.New(fault.Usage, "run", c.CommandPath(), err).WithHint("see " + c.CommandPath() +
					" --help")
			}
			if err := f.check(c, "gain"); err != nil {
				return err
			}
			return f.own(c.Context(), job)
		},
	}
	return c
}

// split returns the flags of the lab, and those of the job.
func (f *labFlags) split(args []string) (lab, job []string) {
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(args[i], "=")
		switch {
		case name == "--quick":
			lab = append(lab, args[i])
		case !slices.Contains([]string{"--out", "--seeds", "--parallel", "--laws"}, name):
			job = append(job, args[i])
		case whole || i+1 == len(args):
			lab = append(lab, args[i])
		default:
			lab = append(lab, args[i], args[i+1])
			i++
		}
	}
	return lab, job
}

func (f *labFlags) own(ctx context.Context, args []string) error {
	g, err := f.gain(nil)
	if err != nil {
		return err
	}
	r, err := f.runner()
	if err != nil {
		return err
	}
	defer r.Close()
	job, err := experiment.Own(ctx, r, args)
	if err != nil {
		return err
	}
	g.Jobs = []experiment.Job{*job}
	report, err := gainReport(ctx, g, r)
	if err != nil {
		return err
	}
	return f.written(report, "own")
}
