package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/experiment"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
	"github.com/volley-engine/volley/internal/pace"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Experiments on emulated clusters: the papers' tables, and what wins on data of your own",
	}
	names := []string{"run", "choose", "scale", "trace"}
	c.AddCommand(labRunCommand(), labChooseCommand(), labScaleCommand(), labTraceCommand())
	return oneOfThem(c, func() []string { return names }, "command of the lab")
}

// labFlags are the options of experiments.
type labFlags struct {
	out        string
	quick      bool
	seeds      int
	parallel   int
	rows       int
	features   int
	jobs, laws []string
}

// experiments that volley lab run knows.
var experiments = []string{"gain", "paper-table3", "paper-table4", "paper-fig2", "paper-fig9", "paper-fig13",
	"paper-fig15", "paper-table7", "models", "paper-table5", "paper-table6", "paper-fig16", "paper-fig17",
	"paper-fig18", "flexrr-fig7", "flexrr-fig8",
	"flexrr-fig9", "flexrr-fig10", "flexrr-fig11", "flexrr-fig12", "flexrr-fig13", "lazytable-fig3", "lazytable-fig4",
	"lazytable-fig5", "lazytable-fig6", "lazytable-fig7", "lazytable-fig8", "lazytable-fig9", "petuum-scaling"}

func labRunCommand() *cobra.Command {
	f := &labFlags{}
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Make a table of runs in computed time, and a report of it",
		Long: `Run makes the runs of an experiment, each a volley of its own in computed time,
and writes a report: an HTML page, a Markdown table, CSV and JSON. Runs that were
made before, by this program, are not made again, so that one that was interrupted
goes on.

  gain           every job under every law: the best exact run of any solver, the
                 A-BSP paper's own method, volley's defaults, and Ideal
  paper-table3   the A-BSP paper's seven jobs on its multi-tenant cluster
  paper-table4   and on its physical one
  paper-fig2     one straggler: logistic regression by BSP and by A-BSP
  paper-fig9     twenty steps on the multi-tenant cluster, task by task (figures 9,
                 11 and 12)
  paper-fig13    convergence of four jobs
  paper-fig15    how often each split is processed
  paper-table7   the network's share of the time
  models         eight jobs by every model of synchronization on three clusters
  paper-table5   A-BSP beside SSP and ASP on the multi-tenant cluster (figure 16)
  paper-table6   and on the physical one (figure 18)
  paper-fig16    the ratios of table 5; paper-fig18 those of table 6
  paper-fig17    convergence of A-BSP and SSP
  flexrr-fig7    FlexRR's figures 7 to 13: slow workers, convergence, disrupted
                 machines, a power law, parameters, uneven work, parts of the data
  lazytable-fig3 LazyTable's figures 3 to 9: staleness in topic models, waiting,
                 matrix factorization, delayed threads, background work, what messages
                 cost, prefetching
  petuum-scaling Petuum's figure 5: topic models by the number of workers`,
		Example: "  volley lab run gain --quick --out report",
		Args:    exactArgs(1, "the name of an experiment"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c, args[0]); err != nil {
				return err
			}
			return f.run(c.Context(), args[0])
		},
	}
	f.flags(c.Flags())
	c.AddCommand(labOwnCommand())
	return c
}

// flags declares those of experiments.
func (f *labFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.out, "out", "lab", "directory for data, results and the report")
	fs.BoolVar(&f.quick, "quick", false,
		"smaller data, one seed, three laws and one distance from the optimum: minutes")
	fs.IntVar(&f.seeds, "seeds", 5, "seeds of laws that have some")
	fs.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "runs at a time (default: cores)")
	fs.IntVar(&f.rows, "rows", 100_000, "rows of each data set")
	fs.IntVar(&f.features, "features", 50, "features of each data set")
	fs.StringSliceVar(&f.jobs, "jobs", nil, "jobs to run, of those of the experiment (default: all)")
	fs.StringSliceVar(&f.laws, "laws", nil, "laws to run them under, of those of gain (default: all)")
}

func (f *labFlags) check(c *cobra.Command, name string) error {
	switch {
	case !slices.Contains(experiments, name):
		return fault.Newf(fault.Usage, "run the experiment", name, "there is none of this name").
			WithHint("one of " + strings.Join(experiments, ", ") + ", own")
	case name != "gain" && name != "models" && len(f.laws) > 0:
		return usage(c, "laws", "%s has a law of its own", name)
	case f.seeds < 1 || f.seeds > 1000:
		return usage(c, "seeds", "%d is not a number of seeds", f.seeds)
	case f.parallel < 1 || f.parallel > 1024:
		return usage(c, "parallel", "%d is not a number of runs", f.parallel)
	case f.rows < 1000 || f.features < 2 || f.features > 10_000:
		return usage(c, "rows", "%d rows of %d features are too few or too many", f.rows, f.features)
	}
	if f.quick {
		f.seeds, f.rows, f.features = 1, min(f.rows, 20_000), min(f.features, 20)
		if len(f.laws) == 0 && name == "gain" {
			f.laws = []string{"physical", "multi-tenant", "one straggler"}
		}
	}
	return nil
}

// runner opens the results of before, for runs of this very program.
func (f *labFlags) runner() (*experiment.Runner, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fault.New(fault.Internal, "find", "this program", err)
	}
	r := &experiment.Runner{Program: program, Dir: f.out, Parallel: f.parallel, Limit: experiment.Limit,
		Draw: history.Read}
	shown := time.Now()
	r.Progress = func(done, all int, left time.Duration) {
		if done == all || time.Since(shown) > 5*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d runs, about %v left\n", done, all, left.Round(time.Second))
		}
	}
	return r, r.Open()
}

func (f *labFlags) run(ctx context.Context, name string) error {
	r, err := f.runner()
	if err != nil {
		return err
	}
	defer r.Close()
	report, err := f.report(ctx, r, name)
	if err != nil {
		return err
	}
	return f.written(report, name)
}

// written writes a report, and prints its table.
func (f *labFlags) written(report *experiment.Report, name string) error {
	if err := report.Write(f.out, name); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "report in %s\n", filepath.Join(f.out, name+".html"))
	return printed(report)
}

// printed prints a report's table.
func printed(r *experiment.Report) error {
	if err := r.Markdown(os.Stdout); err != nil {
		return fault.New(fault.NoResources, "print", "the table", err)
	}
	return nil
}

func (f *labFlags) report(ctx context.Context, r *experiment.Runner, name string) (*experiment.Report, error) {
	size := experiment.Size{Rows: f.rows, Features: f.features}
	if name == "gain" {
		jobs, err := chosen("jobs", f.jobs, experiment.Jobs(size, f.seeds),
			func(j experiment.Job) string { return j.Name })
		if err != nil {
			return nil, err
		}
		g, err := f.gain(jobs)
		if err != nil {
			return nil, err
		}
		return gainReport(ctx, g, r)
	}
	if models := f.models(name, size); models != nil {
		return f.modelsReport(ctx, r, models)
	}
	if sweep := experiment.Sweeps(size, f.seeds)[name]; sweep != nil {
		return f.sweepReport(ctx, r, sweep)
	}
	if study := experiment.Studies(size)[name]; study != nil {
		cases, err := chosen("jobs", f.jobs, study.Cases, func(c experiment.Case) string { return c.Name })
		if err != nil {
			return nil, err
		}
		study.Cases = cases
		return study.Run(ctx, r)
	}
	p := experiment.NewPaper(map[string]int{"paper-table3": 3, "paper-table4": 4}[name], f.seeds, size)
	jobs, err := chosen("jobs", f.jobs, p.Jobs, func(j experiment.Job) string { return j.Name })
	if err != nil {
		return nil, err
	}
	p.Jobs = jobs
	rows, err := p.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	report := experiment.PaperReport(p.Table, rows)
	report.Groups, err = p.Illustrate(ctx, r, rows)
	return report, err
}

// models returns the comparison of models of a name; nil where it is none.
func (f *labFlags) models(name string, size experiment.Size) *experiment.Models {
	switch name {
	case "models":
		return experiment.NewModels(size, f.seeds)
	case "paper-table5", "paper-fig16":
		return experiment.NewPetuum(5, f.seeds, size)
	case "paper-table6", "paper-fig18":
		return experiment.NewPetuum(6, f.seeds, size)
	}
	return nil
}

func (f *labFlags) modelsReport(ctx context.Context, r *experiment.Runner, m *experiment.Models) (
	*experiment.Report, error) {
	var err error
	if m.Jobs, err = chosen("jobs", f.jobs, m.Jobs, func(j experiment.Job) string { return j.Name }); err != nil {
		return nil, err
	}
	if m.Laws, err = chosen("laws", f.laws, m.Laws, func(l experiment.Law) string { return l.Name }); err != nil {
		return nil, err
	}
	rows, err := m.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	return m.Report(rows), nil
}

func (f *labFlags) sweepReport(ctx context.Context, r *experiment.Runner, s *experiment.Sweep) (*experiment.Report,
	error) {
	var err error
	if s.Jobs, err = chosen("jobs", f.jobs, s.Jobs, func(j experiment.Job) string { return j.Name }); err != nil {
		return nil, err
	}
	rows, err := s.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.Report(rows), nil
}

// gain describes the table of some jobs, under the laws that are asked for.
func (f *labFlags) gain(jobs []experiment.Job) (*experiment.Gain, error) {
	g := &experiment.Gain{Jobs: jobs, Within: []float64{1e-3, 1e-6}}
	if f.quick {
		g.Within = g.Within[:1]
	}
	var err error
	g.Laws, err = chosen("laws", f.laws, experiment.Laws(f.seeds), func(l experiment.Law) string { return l.Name })
	return g, err
}

func gainReport(ctx context.Context, g *experiment.Gain, r *experiment.Runner) (*experiment.Report, error) {
	cells, err := g.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	report := experiment.GainReport(cells)
	report.Groups, err = g.Illustrate(ctx, r, cells)
	return report, err
}

// chosen returns those of all that are asked for by name; all where none is.
func chosen[T any](flag string, names []string, all []T, name func(T) string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []T
	for _, n := range names {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == n })
		if i < 0 {
			var known []string
			for _, t := range all {
				known = append(known, name(t))
			}
			return nil, fault.Newf(fault.Usage, "use", "--"+flag, "there is no %q", n).
				WithHint("one of " + strings.Join(known, "; "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

func labChooseCommand() *cobra.Command {
	f := &labFlags{}
	c := &cobra.Command{
		Use:   "choose JOB --data PATH [flags of volley run]",
		Short: "Try policies and solvers on data of your own, and say which is fastest",
		Long: `Choose trains a job on data of your own by every policy and by the solvers that
may be the best, under the law of --pace in computed time, or on this machine where
there is none, and prints what each comes to, the fastest first. All flags but --out
are those of volley run.`,
		Example:            "  volley lab choose logistic --data train.csv --label churned --pace physical",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			return f.choose(c.Context(), args)
		},
	}
	return c
}

// choose makes the runs of one job, which only their policy and their solver tell apart.
func (f *labFlags) choose(ctx context.Context, args []string) error {
	dir, err := os.MkdirTemp("", "volley-lab-*")
	if err != nil {
		return fault.New(fault.NoResources, "make", "a directory for results", err)
	}
	defer os.RemoveAll(dir)
	f.out, f.parallel = dir, 1
	r, err := f.runner()
	if err != nil {
		return err
	}
	defer r.Close()
	report, err := experiment.Choose(ctx, r, args)
	if err != nil {
		return err
	}
	return printed(report)
}

// traceOf returns the speeds of a log's executors, which its reports give where they are true.
func traceOf(path string) ([]pace.Traced, error) {
	var all []experiment.Measured
	err := audit.FollowFile("trace", path, func(t audit.Told, _ int) {
		for _, s := range t.Speeds {
			all = append(all, experiment.Measured{Executor: s.Executor, Until: s.Until, RowsPerSecond: s.RowsPerSecond})
		}
	})
	if err != nil {
		return nil, err
	}
	return experiment.Trace(all)
}

func labTraceCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "trace LOG",
		Short: "Write the executors' speeds of a run as a law: --pace trace:FILE",
		Long: `Trace reads the event log of a run, has its job decide again what it decided, and
writes how fast each executor was in each pass, as times of the mean of all. Under
--pace trace:FILE executors have these speeds, --pace-rate being that of the mean.`,
		Example: "  volley lab trace run.log --out cluster.csv",
		Args:    exactArgs(1, "an event log"),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := traceOf(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				return pace.WriteTrace(os.Stdout, all)
			}
			f, err := os.Create(out)
			if err != nil {
				return fault.New(fault.NoResources, "write", out, err)
			}
			return volley.FirstError(pace.WriteTrace(f, all), f.Close())
		},
	}
	c.Flags().StringVar(&out, "out", "", "file (default: stdout)")
	return c
}
