package main

import (
	"bufio"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input/files"
)

// kmeansFlags are the job kmeans, and its own flags.
type kmeansFlags struct {
	k, restarts       int
	centres, distance string
	config            mllib.KMeansConfig
}

// onTables reports whether workers on tables can train the job.
func (f *kmeansFlags) onTables() bool { return true }

func (f *kmeansFlags) about() about {
	return about{"kmeans", "centres of clusters", `Minimizes the sum over rows of the squared distance to the nearest of k centres,
by Lloyd's iterations from centres that a search among drawn rows finds, --centers random takes, or
a file has. A centre without rows stays where it is. Where --sync may cut steps
short, a run ends with one that is not cut, and the cost is that of all rows. All
columns are features, unless --label names one to set aside.`, "points.csv", "--k 10", "of one run's cost", 1e-7}
}

func (f *kmeansFlags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.k, "k", 0, "number of centres (default: those of a file)")
	fs.StringVar(&f.centres, "centers", mllib.ParallelCentres,
		"where to begin: parallel (k-means‖), random (rows), or a file with a line of numbers for each centre")
	fs.IntVar(&f.restarts, "restarts", 1, "runs from other centres, of which the best is kept")
	fs.StringVar(&f.distance, "distance", string(mllib.Euclidean),
		"euclidean, or cosine: of rows brought to length 1, with cost 1 − cos")
}

func (f *kmeansFlags) configure(c *cobra.Command, t *trainFlags) (err error) {
	if f.k == 0 && (f.centres == mllib.ParallelCentres || f.centres == mllib.RandomCentres) {
		return usage(c, "k", "it is missing: say how many centres")
	}
	if err := volley.FirstError(volley.Within("k", float64(f.k), 0, 1e8, false),
		volley.Within("restarts", float64(f.restarts), 1, 1e6, false)); err != nil {
		return err
	}
	cfg := mllib.KMeansConfig{Data: absolute(t.data), Input: t.input(), Splits: t.splits, Random: t.assign == "random",
		Seed:    t.seed,
		Float32: t.storage == "float32", K: f.k, Restarts: f.restarts, Cut: t.engine.MaySample(),
		Batches: t.engine.Batches(), Bounded: t.bounded,
		MaxIterations: t.maxIterations, Tol: t.tol,
		MaxTime: t.maxTime, Target: t.targetValue()}
	cfg.Input.NoLabel = cfg.Input.Label == ""
	if cfg.Distance, err = mllib.ParseDistance(f.distance); err != nil {
		return usage(c, "distance", "%v", err)
	}
	switch f.centres {
	case mllib.ParallelCentres, mllib.RandomCentres:
		cfg.Centres = f.centres
	default:
		if cfg.Start, err = readCentres(f.centres); err != nil {
			return err
		}
		if cfg.K == 0 {
			cfg.K = len(cfg.Start)
		}
	}
	f.config = cfg
	return cfg.Check()
}

// readCentres reads a line of numbers for each centre, between blanks, tabs,
// commas or semicolons.
func readCentres(path string) (rows [][]float64, err error) {
	file, err := files.OpenPath(path)
	if err != nil {
		return nil, fault.Newf(fault.Usage, "read --centers", path,
			"there is no such file").WithHint("use parallel, random, or a file with a line of numbers for each centre")
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<26)
	for n := 1; lines.Scan(); n++ {
		var row []float64
		for i, field := range strings.FieldsFunc(lines.Text(),
			func(r rune) bool { return strings.ContainsRune(" \t,;", r) }) {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil || v-v != 0 {
				return nil, fault.Newf(fault.BadInput, "read --centers", path,
					"line %d: field %d is %q, not a finite number", n, i, field)
			}
			row = append(row, v)
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.BadInput, "read --centers", path, err)
	}
	return rows, nil
}

func (f *kmeansFlags) identity() any {
	job := f.config
	job.MaxIterations, job.MaxTime, job.Tol, job.Target = 0, 0, 0, nil
	return job
}

func (f *kmeansFlags) train(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error) {
	return volley.Run(context.WithoutCancel(ctx), cfg, "kmeans", f.config, mllib.BuildKMeans,
		func(_ context.Context, s *rdd.Session, job mllib.KMeansConfig, p mllib.KMeansPlan) (string, error) {
			t, err := mllib.TrainKMeans(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, then(&t.Summary, t.Model, func() (map[string]float64, error) {
				return map[string]float64{"cost": t.Objective}, nil
			})
		})
}

func (f *kmeansFlags) replay(ctx context.Context, r *replayed) error {
	cfg, err := argsOf[mllib.KMeansConfig](r.log.Path, r.log.Header.Args)
	if err != nil {
		return err
	}
	if cfg.Bounded != nil {
		workers := func(c *mllib.KMeansConfig) workersOf { return ofBounded(c.Bounded) }
		return runAgain(ctx, r, workers, mllib.BuildKMeans,
			func(ctx context.Context, s *rdd.Session, c mllib.KMeansConfig, p mllib.KMeansPlan) (string, error) {
				return stoppedBy(mllib.TrainKMeans(ctx, s, c, p))
			})
	}
	return replayJob(ctx, r, mllib.BuildKMeans,
		func(s *rdd.Session, cfg mllib.KMeansConfig, p mllib.KMeansPlan) (*mllib.Clustered, error) {
			return mllib.TrainKMeans(ctx, s, cfg, p)
		})
}
