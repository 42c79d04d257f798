package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
)

// tuneFlags are those of tune beside the job's own.
type tuneFlags struct {
	grid            []string
	folds, parallel int
	metric, table   string
	driver          string
	trainFlags      *trainFlags
	job             string
	command         *cobra.Command
	axes            []axis
}

// axis is a flag of the grid, and the values it takes.
type axis struct {
	flag   string
	values []string
}

// point is one point of the grid, and the results of its folds.
type point struct {
	Values map[string]string `json:"values"`
	Mean   float64           `json:"mean"`
	Std    float64           `json:"std"`
	Folds  []*float64        `json:"folds"` // nil where a run had no such metric
	Failed string            `json:"failed,omitempty"`
	args   []string
	each   []*runResult
}

func tuneCommand() *cobra.Command {
	tune := &cobra.Command{
		Use:   "tune JOB --data URI… --grid FLAG=V1,V2…",
		Short: "Choose a job's flags by cross-validation",
		Long: `Tune trains a bundled job at every point of a grid, --folds times each, every
time without another part of the rows, by which it is then measured. It prints
the table, and trains the best point on all rows for --out. Runs go side by side,
in this process, or, with --driver, on a cluster.`,
	}
	for _, name := range jobNames() {
		tune.AddCommand(tuneJobCommand(name))
	}
	return oneOfThem(tune, jobNames, "bundled job")
}

func tuneJobCommand(name string) *cobra.Command {
	j, f := newJob(name), &trainFlags{}
	t := &tuneFlags{job: name, trainFlags: f}
	a := j.about()
	c := &cobra.Command{
		Use:   name + " --data URI… --grid FLAG=V1,V2…",
		Short: "Choose the flags of " + a.short,
		Long: "Tunes the job that volley run " + name +
			" describes; see there for its flags, any of which --grid can take.",
		Example: "  volley tune " + name + " --data " + a.data + " --grid " + gridExample(name) +
			" --folds 5 --out model",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error { return t.run(c) },
	}
	f.register(c, a)
	j.register(c.Flags())
	t.register(c.Flags())
	t.command = c
	return c
}

func gridExample(job string) string {
	if job == "kmeans" {
		return "k=5,10,20"
	}
	return "reg=1e-5,1e-4,1e-3"
}

func (t *tuneFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&t.grid, "grid", nil, "a flag of the job and its values, as reg=1e-4,1e-3, or between "+
		"semicolons, as layers=64,32;64; several make a grid")
	fs.IntVar(&t.folds, "folds", 5, "parts that the rows are cut into, each of which one run is measured by")
	fs.IntVar(&t.parallel, "parallel", 0, "runs at a time (default: one a core, or on a cluster four)")
	fs.StringVar(&t.metric, "metric", "", "what is compared (default: auc, accuracy, rmse, silhouette or ndcg_at_10, "+
		"by the job)")
	fs.StringVar(&t.table, "table", "", "CSV file for the table of results")
	fs.StringVar(&t.driver, "driver", "", "a cluster's driver: HOST:PORT, the name of a cluster that was joined, "+
		"unix:PATH, or local (default: run in this process)")
}

// notTuned are flags that no grid can take: they do not change what is learned.
var notTuned = append([]string{"data", "test", "fold", "grid", "folds", "parallel", "metric", "table", "max-wait",
	"log-level", "help"}, kept...)

func (t *tuneFlags) run(c *cobra.Command) error {
	if err := fillFlags(c); err != nil {
		return err
	}
	if t.trainFlags.out != "" {
		if err := mllib.CanSave(t.trainFlags.out, t.trainFlags.overwrite); err != nil {
			return err
		}
	}
	points, err := t.prepare(c)
	if err != nil {
		return err
	}
	if err := t.runAll(c.Context(), points); err != nil {
		if metric, _, e := t.score(points); e == nil { // the results so far
			_ = t.writeTable(points, metric)
		}
		return err
	}
	metric, best, err := t.score(points)
	if err != nil {
		return err
	}
	if err := t.writeTable(points, metric); err != nil {
		return err
	}
	if !t.trainFlags.json {
		t.print(os.Stdout, points, best, metric)
	}
	return t.keepBest(c, points, best, metric)
}

// prepare reads the grid, and checks every point of it before data is read.
func (t *tuneFlags) prepare(c *cobra.Command) ([]*point, error) {
	switch {
	case len(t.grid) == 0:
		return nil, usage(c, "grid", "it is missing: say which flags to try which values of, as reg=1e-4,1e-3")
	case t.folds < 2 || t.folds > 1000:
		return nil, usage(c, "folds", "%d does not lie in [2, 1000]", t.folds)
	case t.parallel < 0:
		return nil, usage(c, "parallel", "%d is below 0", t.parallel)
	case t.metric != "" && !slices.Contains(allMetrics, t.metric):
		return nil, usage(c, "metric", "%q is not one of %s", t.metric, strings.Join(allMetrics, " "))
	case c.Flags().Changed("event-log") || c.Flags().Changed("checkpoint-dir") ||
		c.Flags().Changed("checkpoint-every") || t.trainFlags.resume:
		return nil, usage(c, "event-log", "there are many runs: they keep neither event logs nor checkpoints")
	case c.Flags().Changed("ui"):
		return nil, usage(c, "ui", "there are many runs: a page is of one")
	case len(t.trainFlags.test) > 0 || t.trainFlags.fold != "":
		return nil, usage(c, "test", "every run is measured by the rows that it was trained without")
	}
	if t.table != "" {
		if err := notAnInput(c, "table", t.table, t.trainFlags.data); err != nil {
			return nil, err
		}
		if info, err := os.Stat(filepath.Dir(t.table)); err != nil || !info.IsDir() {
			return nil, usage(c, "table", "there is no directory %s", filepath.Dir(t.table))
		}
	}
	for _, g := range t.grid {
		name, values, ok := strings.Cut(g, "=")
		flag := c.Flags().Lookup(name)
		if !ok || flag == nil || slices.Contains(notTuned, name) {
			return nil, usage(c, "grid", "%q is not a flag of %s with values, as reg=1e-4,1e-3", name, t.job)
		}
		if slices.ContainsFunc(t.axes, func(a axis) bool { return a.flag == name }) {
			return nil, usage(c, "grid", "%s is there twice", name)
		}
		between := ","
		if strings.Contains(values, ";") {
			between = ";" // of values that have commas themselves
		}
		t.axes = append(t.axes, axis{name, strings.Split(values, between)})
	}
	var points []*point
	for i := range size(t.axes) {
		p := &point{Values: map[string]string{}, args: t.baseArgs(c)}
		for _, a := range t.axes {
			v := a.values[i%len(a.values)]
			i /= len(a.values)
			p.Values[a.flag] = v
			p.args = append(p.args, "--"+a.flag+"="+v)
		}
		if _, _, _, err := t.trial(p.args); err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func size(axes []axis) int {
	n := 1
	for _, a := range axes {
		n *= len(a.values)
	}
	return n
}

// baseArgs returns the job's flags that were given, for all points alike.
func (t *tuneFlags) baseArgs(c *cobra.Command) []string {
	own := []string{"grid", "folds", "parallel", "metric", "table"}
	var args []string
	for _, a := range jobArgs(c) {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !slices.Contains(own, name) {
			args = append(args, a)
		}
	}
	if dir := c.Flags().Lookup("data-dir"); t.driver == "" && dir.Changed {
		args = append(args, "--data-dir="+dir.Value.String())
	}
	if t.driver == "" && !c.Flags().Changed("executors") && !c.Flags().Changed("pace") {
		args = append(args, "--executors=1") // runs go side by side
	}
	return args
}

// trial prepares one run.
func (t *tuneFlags) trial(args []string) (volley.Config, *trainFlags, job, error) {
	j, f := newJob(t.job), &trainFlags{}
	c := &cobra.Command{Use: t.job}
	f.register(c, j.about())
	j.register(c.Flags())
	if err := c.ParseFlags(args); err != nil {
		return volley.Config{}, nil, nil, fault.New(fault.Usage, "read the flags of", t.command.CommandPath(), err)
	}
	cfg, err := f.ready(c, j)
	return cfg, f, j, err
}

// runAll runs every fold of every point.
func (t *tuneFlags) runAll(ctx context.Context, points []*point) error {
	parallel := t.parallel
	if parallel == 0 {
		parallel = runtime.GOMAXPROCS(0)
		if t.driver != "" {
			parallel = 4
		}
	}
	do := t.runHere
	if t.driver != "" {
		client, done, err := dialDriver(t.driver)
		if err != nil {
			return err
		}
		defer done()
		do = func(ctx context.Context, args []string) (*runResult, error) { return t.runThere(ctx, client, args) }
	}
	for _, p := range points {
		p.each = make([]*runResult, t.folds)
		p.Folds = make([]*float64, t.folds)
	}
	var mu sync.Mutex
	return eachRun(len(points), t.folds, parallel, func(i, k int) error {
		p := points[i]
		r, err := do(ctx, append(slices.Clone(p.args), fmt.Sprintf("--fold=%d/%d", k+1, t.folds)))
		if ctx.Err() != nil {
			return errInterrupted
		}
		mu.Lock()
		defer mu.Unlock()
		if p.each[k] = r; err != nil {
			p.Failed = err.Error()
		}
		t.progress(p, k, err)
		return nil
	})
}

// eachRun does every fold of every point, some at a time. The first point's run of a fold comes before those of the
// others, which find the fold packed.
func eachRun(points, folds, parallel int, do func(point, fold int) error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	packed := make([]chan struct{}, folds)
	for k := range packed {
		packed[k] = make(chan struct{})
	}
	for i := range points {
		for k := range folds {
			g.Go(func() error {
				if i > 0 {
					<-packed[k]
				} else {
					defer close(packed[k])
				}
				return do(i, k)
			})
		}
	}
	return g.Wait()
}

func (t *tuneFlags) progress(p *point, k int, err error) {
	what := "done"
	if err != nil {
		what = err.Error()
	}
	fmt.Fprintf(os.Stderr, "%s, fold %d of %d: %s\n", t.name(p), k+1, t.folds, what)
}

// name returns the text of a point.
func (t *tuneFlags) name(p *point) string {
	var parts []string
	for _, a := range t.axes {
		parts = append(parts, a.flag+"="+p.Values[a.flag])
	}
	return strings.Join(parts, " ")
}

func (t *tuneFlags) runHere(ctx context.Context, args []string) (*runResult, error) {
	cfg, f, j, err := t.trial(args)
	if err != nil {
		return nil, err
	}
	return trainJob(ctx, cfg, f, j)
}

// trainThere trains on all rows on the cluster, and downloads the model.
func (t *tuneFlags) trainThere(ctx context.Context, args []string) (*runResult, error) {
	client, done, err := dialDriver(t.driver)
	if err != nil {
		return nil, err
	}
	defer done()
	var w *watcher
	r, err := t.follow(ctx, client, args, &w)
	if err != nil {
		return nil, err
	}
	r.Model = t.trainFlags.out
	return r, w.bring(ctx, t.trainFlags.out, t.trainFlags.overwrite, "")
}

func (t *tuneFlags) runThere(ctx context.Context, client wire.ClusterClient, args []string) (*runResult, error) {
	var w *watcher
	return t.follow(ctx, client, args, &w)
}

// follow submits a run and waits for its result.
func (t *tuneFlags) follow(ctx context.Context, client wire.ClusterClient, args []string, by **watcher) (*runResult,
	error) {
	reply, err := client.Submit(ctx, &wire.SubmitRequest{Job: t.job, Args: args, Weight: 1})
	if err != nil {
		return nil, wire.CallError("submit to", t.driver, err)
	}
	w := &watcher{client: client, addr: t.driver, id: reply.Id, maxWait: time.Minute, log: io.Discard}
	*by = w
	info, err := w.follow(ctx)
	if ctx.Err() != nil {
		_, _ = client.Cancel(context.WithoutCancel(ctx), &wire.CancelRequest{Id: reply.Id})
		return nil, errInterrupted
	}
	if err != nil {
		return nil, err
	}
	if err := outcomeOf(info); err != nil {
		return nil, err
	}
	r := &runResult{}
	return r, json.Unmarshal([]byte(info.Result), r)
}

// byJob are the metrics that jobs are compared by, the first that there is.
var byJob = map[string][]string{"kmeans": {"silhouette"}, "als": {"ndcg_at_10", "rmse"}, "logistic": {"auc"},
	"svm":     {"auc"},
	"softmax": {"accuracy"}, "mlp": {"accuracy", "rmse"}}

// allMetrics are those that some job has.
var allMetrics = append([]string{"accuracy", "auc", "pr_auc", "f1", "precision", "recall", "true_positives",
	"true_negatives", "r2", "silhouette", "clusters",
	"map_at_10", "ndcg_at_10"}, mllib.LessIsBetter...)

// score compares the points: best is the index of the best.
func (t *tuneFlags) score(points []*point) (metric string, best int, err error) {
	metric, best = t.metric, -1
	if metric == "" {
		metric = t.defaultMetric(points)
	}
	for i, p := range points {
		for k, r := range p.each {
			if r == nil {
				continue
			}
			if v, ok := r.Metrics[metric]; ok && !math.IsNaN(v) {
				p.Folds[k] = &v
			}
		}
		if p.mean(); p.Failed == "" && math.IsNaN(p.Mean) {
			p.Failed, p.Mean, p.Std = "no run has the metric "+metric, 0, 0
		}
		if p.Failed != "" {
			continue
		}
		if best < 0 || slices.Contains(mllib.LessIsBetter, metric) && p.Mean < points[best].Mean ||
			!slices.Contains(mllib.LessIsBetter, metric) && p.Mean > points[best].Mean {
			best = i
		}
	}
	if best < 0 {
		return "", 0, fault.Newf(fault.UserCode, "tune", t.job, "every point failed: %s", points[0].Failed)
	}
	return metric, best, nil
}

func (t *tuneFlags) defaultMetric(points []*point) string {
	for _, p := range points {
		for _, r := range p.each {
			for _, name := range append(slices.Clone(byJob[t.job]), "rmse") {
				if r == nil {
					continue
				}
				if _, ok := r.Metrics[name]; ok {
					return name
				}
			}
		}
	}
	return "rmse"
}

// mean finds mean and deviation over the folds that have the metric.
func (p *point) mean() {
	var n, sum, square float64
	for _, v := range p.Folds {
		if v != nil {
			n++
			sum += *v
		}
	}
	for _, v := range p.Folds {
		if v != nil {
			square += (*v - sum/n) * (*v - sum/n)
		}
	}
	p.Mean, p.Std = sum/n, math.Sqrt(square/n)
}

// print shows the table.
func (t *tuneFlags) print(to io.Writer, points []*point, best int, metric string) {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	for _, a := range t.axes {
		fmt.Fprintf(w, "%s\t", a.flag)
	}
	fmt.Fprintf(w, "%s\t±\t\n", metric)
	for i, p := range points {
		for _, a := range t.axes {
			fmt.Fprintf(w, "%s\t", p.Values[a.flag])
		}
		mark := ""
		if i == best {
			mark = "best"
		}
		if p.Failed != "" {
			fmt.Fprintf(w, "failed\t\t%s\n", p.Failed)
			continue
		}
		fmt.Fprintf(w, "%.6g\t%.2g\t%s\n", p.Mean, p.Std, mark)
	}
	w.Flush()
}

// writeTable writes the table as CSV.
func (t *tuneFlags) writeTable(points []*point, metric string) error {
	if t.table == "" {
		return nil
	}
	head := []string{metric, "std"}
	for k := range t.folds {
		head = append(head, fmt.Sprintf("fold_%d", k+1))
	}
	var names []string
	for _, a := range t.axes {
		names = append(names, a.flag)
	}
	lines := [][]string{slices.Concat(names, head, []string{"failed"})}
	for _, p := range points {
		lines = append(lines, t.line(p))
	}
	return toFile(t.table, func(w io.Writer) error {
		if err := csv.NewWriter(w).WriteAll(lines); err != nil {
			return fault.New(fault.NoResources, "write", t.table, err)
		}
		return nil
	})
}

// line returns a point's line of the table.
func (t *tuneFlags) line(p *point) (out []string) {
	for _, a := range t.axes {
		out = append(out, p.Values[a.flag])
	}
	for _, v := range append([]*float64{&p.Mean, &p.Std}, p.Folds...) {
		text := ""
		if v != nil && p.Failed == "" {
			text = strconv.FormatFloat(*v, 'g', -1, 64)
		}
		out = append(out, text)
	}
	return append(out, p.Failed)
}

// tuned is what tune prints as JSON.
type tuned struct {
	Job    string     `json:"job"`
	Metric string     `json:"metric"`
	Points []*point   `json:"points"`
	Best   int        `json:"best"`
	Result *runResult `json:"result,omitempty"`
}

// keepBest trains the best point on all rows, where its model is to be kept.
func (t *tuneFlags) keepBest(c *cobra.Command, points []*point, best int, metric string) error {
	out := &tuned{Job: t.job, Metric: metric, Points: points, Best: best}
	f := t.trainFlags
	if f.out != "" && t.driver != "" {
		var err error
		if out.Result, err = t.trainThere(c.Context(), points[best].args); err != nil {
			return err
		}
	} else if f.out != "" {
		args := slices.DeleteFunc(slices.Clone(points[best].args),
			func(a string) bool { return a == "--executors=1" && !c.Flags().Changed("executors") })
		cfg, own, j, err := t.trial(args)
		if err != nil {
			return err
		}
		own.out, own.overwrite = f.out, f.overwrite
		if out.Result, err = trainJob(c.Context(), cfg, own, j); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(out)
	}
	if out.Result == nil {
		return nil
	}
	return newScreen(false, true).result(out.Result)
}
