package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/tables"
)

// graphFlags are the flags of jobs on graphs.
type graphFlags struct {
	placedFlags
	bounded  boundedFlags
	edges    mllib.Edges
	converge bool
	personal []int64
	damping  float64
	tol      float64
	most     int
	table    string // on a cluster, how the job's process writes the table
	job      mllib.PageRankConfig
}

func (f *graphFlags) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.edges.Data, "data", nil,
		"files of edges, one a line: two whole numbers with blanks, a tab, a comma or a semicolon between them; # "+
			"and % begin comments: paths, globs, directories, or names of objects")
	fs.BoolVar(&f.edges.Undirected, "undirected", false, "each edge leads both ways")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the order of nodes in splits")
	fs.StringVar(&f.out, "out", "",
		"file for the table of nodes, Parquet where it ends in .parquet and else CSV; - is stdout")
	fs.BoolVar(&f.overwrite, "overwrite", false, "replace the file if it exists")
	f.placedFlags.register(fs)
	f.registerCheckpoints(fs)
	fs.StringVar(&f.table, "table", "", "for the job's process on a cluster: how it writes the table")
	_ = fs.MarkHidden("table") // it is there
}

// ready reads and checks the flags that all jobs on graphs have.
func (f *graphFlags) ready(c *cobra.Command) (cfg volley.Config, err error) {
	if cfg, err = f.placedFlags.ready(c, f.edges.Data); err != nil {
		return cfg, err
	}
	switch {
	case len(f.edges.Data) == 0:
		return cfg, usage(c, "data", "it is missing: say which edges")
	case f.out == "-" && f.json:
		return cfg, usage(c, "json", "stdout is where --out - goes")
	}
	if dir := filepath.Dir(localPath(f.out)); f.out != "" && f.out != "-" && !objects.Is(f.out) {
		if _, failed := os.Stat(dir); failed != nil {
			return cfg, usage(c, "out", "there is no directory %s", dir)
		}
	}
	if _, failed := os.Stat(f.out); failed == nil && !f.overwrite && f.out != "-" {
		return cfg, usage(c, "out", "%s exists", f.out).(*fault.Error).WithHint("--overwrite replaces it")
	}
	f.edges.Data, f.edges.Splits, f.edges.Seed = absolute(f.edges.Data), f.splits, f.seed
	return cfg, nil
}

// graphResult is the JSON object of a job on a graph.
type graphResult struct {
	Job          string   `json:"job"`
	Sync         string   `json:"sync,omitempty"`
	Nodes        int      `json:"nodes"`
	Edges        int64    `json:"edges"`
	Duplicates   int64    `json:"duplicate_edges"`
	Dangling     *int     `json:"dangling,omitempty"`
	Iterations   int      `json:"iterations,omitempty"`
	StoppedBy    string   `json:"stopped_by,omitempty"`
	Change       *float64 `json:"change,omitempty"`
	Bound        *float64 `json:"error_bound,omitempty"`
	Converged    *bool    `json:"converged,omitempty"`
	Components   int      `json:"components,omitempty"`
	Largest      int      `json:"largest_component,omitempty"`
	Seconds      float64  `json:"seconds"`
	LoadSeconds  float64  `json:"load_seconds"`
	TrainSeconds float64  `json:"train_seconds"`
	Waited       float64  `json:"waited_share,omitempty"`
	Executors    int      `json:"executors"`
	Out          string   `json:"out"`
}

// ranking is the job of PageRank.
type ranking struct{ graphFlags }

func (f *ranking) name() string { return "pagerank" }

func (f *ranking) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "pagerank --data URI…",
		Short: "Rank the nodes of a graph by PageRank",
		Long: `Computes the share of time that a walker spends at each node who follows an edge,
all alike, with the probability --damping, and else begins anew at any node; at a
node that no edge leaves it always begins anew. Edges count once, however often
they are given. Ranks sum to 1. Rounds end where one changes all ranks together by
no more than --tol; error_bound says how far they may be, together, from those
that no round would change.`,
		Example: "  volley run pagerank --data edges.txt --damping 0.85 --tol 1e-10 --out ranks.parquet\n" +
			"  volley run pagerank --data edges.txt --personalize 17,42 --out ranks.csv",
		Args: exactArgs(0, "no arguments beside flags"),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	f.register(fs)
	f.bounded.register(fs)
	fs.Float64Var(&f.damping, "damping", 0.85, "probability to follow an edge, in [0, 1)")
	fs.Float64Var(&f.tol, "tol", 1e-10, "stop when a round changes all ranks together by at most this; 0 never")
	fs.IntVar(&f.most, "max-iterations", 500, "most rounds")
	fs.Int64SliceVar(&f.personal, "personalize", nil, "nodes at which walks begin, as 17,42 (default: all)")
	fs.BoolVar(&f.converge, "must-converge", false, "exit with 3 where the result has not converged; it is saved and "+
		"printed all the same")
	return c
}

// ready reads and checks the flags.
func (f *ranking) ready(c *cobra.Command) (cfg volley.Config, err error) {
	if cfg, err = f.graphFlags.ready(c); err != nil {
		return cfg, err
	}
	f.job = mllib.PageRankConfig{Edges: f.edges, Damping: f.damping, Tol: f.tol, MaxIterations: f.most,
		Personal: f.personal}
	if f.job.Model, err = f.bounded.model(c); err != nil {
		return cfg, err
	}
	return cfg, f.job.Check()
}

func (f *ranking) run(c *cobra.Command) error {
	cfg, err := f.ready(c)
	if err != nil {
		return err
	}
	return f.graphFlags.run(c, cfg, func(ctx context.Context, cfg volley.Config) (t *graphTable, o *volley.Outcome,
		err error) {
		o, err = volley.Run(ctx, cfg, "pagerank", f.job, mllib.BuildPageRank,
			func(ctx context.Context, s *rdd.Session, job mllib.PageRankConfig, p *mllib.PageRankPlan) (string, error) {
				r, err := mllib.RankNodes(ctx, s, job, p)
				if err != nil {
					return "", err
				}
				t = rankTable(r, &job)
				return r.StoppedBy, nil
			})
		return t, o, err
	})
}

// rankTable returns what PageRank has come to.
func rankTable(r *mllib.Ranks, job *mllib.PageRankConfig) *graphTable {
	return &graphTable{names: []string{"node", "rank"}, columns: []any{r.Nodes, r.Ranks},
		graphResult: graphResult{Job: "pagerank", Sync: job.Model.String(), Nodes: len(r.Nodes), Edges: r.Edges,
			Duplicates: r.Lines - r.Edges, Dangling: &r.Dangling, Iterations: r.Iterations, StoppedBy: r.StoppedBy,
			Change: &r.Change, Bound: &r.Bound, Converged: &r.Converged, Waited: r.Waited}}
}

// connecting is the job of connected components.
type connecting struct{ graphFlags }

func (f *connecting) name() string { return "components" }

func (f *connecting) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "components --data URI…",
		Short: "Find the connected components of a graph",
		Long: `Finds which nodes are connected, whichever way the edges lead: each node's
component is known by its least node.`,
		Example: "  volley run components --data edges.txt --out components.parquet",
		Args:    exactArgs(0, "no arguments beside flags"),
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.register(c.Flags())
	for _, name := range []string{"checkpoint-dir", "checkpoint-every", "resume"} {
		_ = c.Flags().MarkHidden(name) // it begins again: these are for the cluster's driver, which passes them to all
	}
	return c
}

func (f *connecting) run(c *cobra.Command) error {
	cfg, err := f.ready(c)
	if err != nil {
		return err
	}
	return f.graphFlags.run(c, cfg, func(ctx context.Context, cfg volley.Config) (t *graphTable, o *volley.Outcome,
		err error) {
		o, err = volley.Run(ctx, cfg, "components", f.edges, mllib.BuildComponents,
			func(ctx context.Context, s *rdd.Session, e mllib.Edges, p *mllib.ComponentsPlan) (string, error) {
				r, err := mllib.FindComponents(ctx, s, e, p)
				if err == nil {
					t = componentTable(r)
				}
				return "done", err
			})
		return t, o, err
	})
}

// componentTable returns what components has come to.
func componentTable(r *mllib.Components) *graphTable {
	return &graphTable{names: []string{"node", "component"}, columns: []any{r.Nodes, r.Component},
		graphResult: graphResult{Job: "components", Nodes: len(r.Nodes), Edges: r.Edges,
			Duplicates: r.Lines - r.Edges, Components: r.Count, Largest: r.Largest}}
}

// graphTable is what a job on a graph has come to: the table of its nodes, and a line about it.
type graphTable struct {
	graphResult
	names   []string
	columns []any
}

// run runs a job on a graph, writes its table and says what it has come to.
func (f *graphFlags) run(c *cobra.Command, cfg volley.Config, do func(context.Context, volley.Config) (*graphTable,
	*volley.Outcome, error)) error {
	began := time.Now()
	var t *graphTable
	out, err := f.runs(c, cfg, func(ctx context.Context, cfg volley.Config) (out *volley.Outcome, err error) {
		t, out, err = do(ctx, cfg)
		return out, err
	})
	if err == nil && f.out != "" {
		err = f.write(t)
	}
	if err != nil {
		return err
	}
	t.LoadSeconds, t.Executors, t.Out = out.Load.Seconds(), out.Executors, f.out
	t.Seconds, t.TrainSeconds = trained(cfg, out, began)
	return f.show(&t.graphResult)
}

// write writes the table of nodes: on a cluster into the directory of the job, from where its submitter gets it.
func (f *graphFlags) write(t *graphTable) error {
	if wire.ThisProcess().Role == "" {
		return toFile(f.out, func(w io.Writer) error { return writeTable(w, f.out, t.names, t.columns) })
	}
	if f.table == "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return fault.New(fault.NoResources, "write", f.out, err)
	}
	name := filepath.Join(f.out, "nodes."+f.table)
	return toFile(name, func(w io.Writer) error { return writeTable(w, name, t.names, t.columns) })
}

// wants returns how the job's process on a cluster is to write its table, for the submitter.
func (f *graphFlags) wants() []string {
	switch {
	case f.out == "":
		return nil
	case strings.HasSuffix(f.out, ".parquet"):
		return []string{"--table=parquet"}
	}
	return []string{"--table=csv"}
}

// shows writes and prints what a job on a cluster has come to.
func (f *graphFlags) shows(result []byte, files map[string][]byte) error {
	r := &graphResult{}
	if err := json.Unmarshal(result, r); err != nil {
		return err
	}
	if r.Out = f.out; f.out != "" {
		for _, name := range []string{"out/nodes.csv", "out/nodes.parquet"} {
			if raw, there := files[name]; there {
				if err := toFile(f.out, func(w io.Writer) error { _, err := w.Write(raw); return err }); err != nil {
					return err
				}
			}
		}
	}
	return f.show(r)
}

// show prints a result, and says if it has not converged as --must-converge wants; on a cluster the submitter does.
func (f *graphFlags) show(r *graphResult) (err error) {
	if f.json {
		err = printJSON(r)
	} else {
		_, err = fmt.Fprintf(os.Stderr, "%s: %s; %.3g s, of which loading %.3g s\n", r.Job, r.text(), r.Seconds,
			r.LoadSeconds)
	}
	if err == nil && f.converge && r.Converged != nil && !*r.Converged && wire.ThisProcess().Role == "" {
		return errNotConverged
	}
	return err
}

// text returns a line about what a job has come to.
func (r *graphResult) text() string {
	if r.Job == "components" {
		return fmt.Sprintf("%d components of %d nodes; the largest has %d", r.Components, r.Nodes, r.Largest)
	}
	return fmt.Sprintf("%d nodes and %d edges after %d rounds; the last changed all by %.3g, which are within %.3g",
		r.Nodes, r.Edges, r.Iterations, *r.Change, *r.Bound)
}

// writeTable writes columns of numbers, as Parquet or CSV.
func writeTable(w io.Writer, name string, names []string, columns []any) error {
	if strings.HasSuffix(name, ".parquet") {
		return writeParquet(w, names, columns)
	}
	to := bufio.NewWriter(w)
	fmt.Fprintln(to, strings.Join(names, ","))
	first := columns[0].([]int64)
	for i, id := range first {
		switch second := columns[1].(type) {
		case []int64:
			fmt.Fprintf(to, "%d,%d\n", id, second[i])
		case []float64:
			fmt.Fprintf(to, "%d,%v\n", id, second[i])
		}
	}
	return to.Flush()
}

func (f *ranking) replay(ctx context.Context, r *replayed) error {
	return runAgain(ctx, r, func(c *mllib.PageRankConfig) workersOf { return ofModel(c.Model) }, mllib.BuildPageRank,
		func(ctx context.Context, s *rdd.Session, job mllib.PageRankConfig, p *mllib.PageRankPlan) (string, error) {
			ranks, err := mllib.RankNodes(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return ranks.StoppedBy, nil
		})
}

func (f *connecting) replay(ctx context.Context, r *replayed) error {
	return runAgain(ctx, r, func(*mllib.Edges) workersOf { return ofModel(tables.BSP()) }, mllib.BuildComponents,
		func(ctx context.Context, s *rdd.Session, e mllib.Edges, p *mllib.ComponentsPlan) (string, error) {
			_, err := mllib.FindComponents(ctx, s, e, p)
			return "done", err
		})
}
