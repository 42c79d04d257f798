package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/rdd"
)

// alsFlags are the job als, and its own flags.
type alsFlags struct {
	user, item, rating    string
	initial               string
	rank                  int
	reg, alpha            float64
	implicit, nonNegative bool
	biases                bool
	maxAge                int
	config                mllib.ALSConfig
}

func (f *alsFlags) about() about {
	return about{"als", "vectors of users and items from ratings", `Factors ratings: each user and each item gets a vector of --rank numbers, whose
product is to be the rating. Users are solved from items and items from users by
turns, each from all its ratings, with λ·n·‖x‖² added for one with n ratings.
Where --sync may cut half-sweeps short, users and items that were left out keep
their vectors and come first in the next; the first sweep, the last, and one in
--max-age are never cut. The objective is the root mean squared error on the ratings; of implicit ones
each error is weighted by how far its confidence is above 1.`, "ratings.csv", "--rank 20 --reg 0.1", "from one sweep to the next", 1e-3}
}

func (f *alsFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.user, "user", "", "column of users: a name or a zero-based number (default: user, else the first)")
	fs.StringVar(&f.item, "item", "", "column of items (default: item, else the second)")
	fs.StringVar(&f.rating, "rating", "", "column of ratings (default: rating, else the third)")
	fs.IntVar(&f.rank, "rank", 10, "numbers in a vector")
	fs.Float64Var(&f.reg, "reg", 0.1, "penalty λ, times the number of a user's or an item's ratings")
	fs.BoolVar(&f.implicit, "implicit", false,
		"ratings say how sure it is that a user likes an item (above 0) or not; what has none is not liked, with "+
			"confidence 1")
	fs.Float64Var(&f.alpha, "alpha", 1, "how much confidence a unit of an implicit rating adds")
	fs.IntVar(&f.maxAge, "max-age", 10, "sweeps after which one is not cut, so that no vector is older")
	fs.BoolVar(&f.biases, "biases", false,
		"a rating is the mean of all, a number of its user's and one of its item's, and the product of vectors")
	fs.BoolVar(&f.nonNegative, "non-negative", false, "vectors without negative numbers")
	fs.StringVar(&f.initial, "init", "",
		"directory of a model whose items' vectors to begin with; items that it does not know are drawn")
}

func (f *alsFlags) configure(c *cobra.Command, t *trainFlags) error {
	err := volley.FirstError(volley.Within("rank", float64(f.rank), 1, 2000, false),
		volley.Within("reg", f.reg, 0, math.MaxFloat64, false),
		volley.Within("alpha", f.alpha, 0, math.MaxFloat64, false),
		volley.Within("max-age", float64(f.maxAge), 0, 1e9, true))
	if err != nil {
		return err
	}
	for _, name := range []string{"assign", "storage", "features", "label", "weight-column", "index-base",
		"batch-fraction", "onehot", "hash", "text", "buckets", "missing", "scale", "malformed"} {
		if c.Flags().Changed(name) {
			return usage(c, name, "it means nothing to als, which reads columns of users, items and ratings, and "+
				"solves each from all its ratings")
		}
	}
	var first *mllib.FactorBeginning
	if f.initial != "" {
		if first, err = mllib.BeginWithFactors(f.initial); err != nil {
			return usage(c, "init", "%v", err)
		}
		if !c.Flags().Changed("rank") {
			f.rank = first.Rank
		}
	}
	f.config = mllib.ALSConfig{Data: absolute(t.data), Input: t.input(), User: f.user, Item: f.item, Rating: f.rating,
		Splits: t.splits, Seed: t.seed,
		Rank: f.rank, Reg: f.reg, Implicit: f.implicit, Alpha: f.alpha, NonNegative: f.nonNegative, Biases: f.biases,
		Cut:    t.engine.MayCut(),
		MaxAge: f.maxAge, MaxIterations: t.maxIterations, Tol: t.tol, MaxTime: t.maxTime, Target: t.targetValue(),
		Init: first}
	return f.config.Check()
}

func (f *alsFlags) identity() any {
	job := f.config
	job.MaxIterations, job.MaxTime, job.Tol, job.Target = 0, 0, 0, nil
	return job
}

func (f *alsFlags) train(ctx context.Context, cfg volley.Config, then whenTrained) (*volley.Outcome, error) {
	return volley.Run(context.WithoutCancel(ctx), cfg, "als", f.config, mllib.BuildALS,
		func(_ context.Context, s *rdd.Session, job mllib.ALSConfig, p mllib.ALSPlan) (string, error) {
			t, err := mllib.TrainALS(ctx, s, job, p)
			if err != nil {
				return "", err
			}
			return t.StoppedBy, then(&t.Summary, t.Model, func() (map[string]float64, error) {
				return map[string]float64{map[bool]string{true: "implicit_error",
					false: "rmse"}[f.implicit]: t.Objective}, nil
			})
		})
}

func (f *alsFlags) replay(ctx context.Context, r *replayed) error {
	return replayJob(ctx, r, mllib.BuildALS,
		func(s *rdd.Session, cfg mllib.ALSConfig, p mllib.ALSPlan) (*mllib.Factored, error) {
			return mllib.TrainALS(ctx, s, cfg, p)
		})
}

func recommendCommand() *cobra.Command {
	var top int
	var users, items, out string
	var rated bool
	c := &cobra.Command{
		Use:   "recommend MODEL --out FILE",
		Short: "Recommend items to users, or users for items, with a saved als model",
		Long: `Recommend writes a CSV file with the --top items that score highest for each user,
the highest first: all users of the model, or those of --users. With --items it
is the other way round. Users and items that the model does not know are left
out, with a line on stderr that says how many.`,
		Args: exactArgs(1, "the directory of a model"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			if err := volley.Within("top", float64(top), 1, 1e6, false); err != nil {
				return err
			}
			return recommend(c, args[0], top, users, items, out, rated)
		},
	}
	fs := c.Flags()
	fs.IntVar(&top, "top", 10, "how many are recommended to each")
	fs.StringVar(&users, "users", "all", "users, as 17,42, or all")
	fs.StringVar(&items, "items", "", "recommend users for these items instead, as 3,7, or all")
	fs.StringVar(&out, "out", "", "file for the recommendations; - is stdout")
	fs.BoolVar(&rated, "rated", false, "recommend what users have rated in training, too")
	fs.String("config", "", "YAML file with values for flags")
	return c
}

func recommend(c *cobra.Command, dir string, top int, users, items, out string, rated bool) error {
	wanted, forUsers := users, true
	if items != "" {
		wanted, forUsers = items, false
	}
	if out == "" {
		return usage(c, "out", "it is missing: say where recommendations go, - being stdout")
	}
	m, err := mllib.LoadModel(dir)
	if err != nil {
		return err
	}
	model, ok := m.(*mllib.FactorModel)
	if !ok {
		return fault.Newf(fault.Usage, "recommend with", dir, "it is not a model of als")
	}
	ids, err := parseIDs(model, wanted, forUsers)
	if err != nil {
		return usage(c, map[bool]string{true: "users", false: "items"}[forUsers], "%v", err)
	}
	if !rated && model.Seen == 0 {
		fmt.Fprintln(os.Stderr, "volley: the model does not say what users have rated, which is recommended, too: "+
			"train it again to leave that out")
	}
	return toFile(out, func(w io.Writer) error {
		to := csv.NewWriter(w)
		head := map[bool][]string{true: {"user", "item", "score"}, false: {"item", "user", "score"}}[forUsers]
		if err := to.Write(head); err != nil {
			return err
		}
		done := 0
		err := model.Top(ids, top, forUsers, rated, func(id float64, best []mllib.Recommended) error {
			done++
			for _, r := range best {
				line := []string{model.NameOf(id, forUsers), model.NameOf(r.ID, !forUsers), fmt.Sprint(r.Score)}
				if err := to.Write(line); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if ids != nil && done < len(ids) {
			fmt.Fprintf(os.Stderr, "%d of %d are not known to the model\n", len(ids)-done, len(ids))
		}
		to.Flush()
		return to.Error()
	})
}

// parseIDs reads ids between commas, as the model's data have them; nil is all.
func parseIDs(m *mllib.FactorModel, text string, users bool) (ids []float64, err error) {
	if text == "all" {
		return nil, nil
	}
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	fields, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%q is not a list between commas", text)
	}
	for _, p := range fields {
		id, err := m.IDOf(p, users)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
