package als

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

func descended(t testing.TB, c SGDConfig, flags ...string) (out *Factored, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "mf", c, BuildSGD,
		func(ctx context.Context, s *rdd.Session, c SGDConfig, p *SGDPlan) (string, error) {
			var err error
			out, err = TrainSGD(ctx, s, c, p)
			return "", err
		})
	return out, err
}

func sgdDefaults(path string) SGDConfig {
	return SGDConfig{Config: Config{Data: []string{path}, Splits: 4, Seed: 1, Rank: 4, Reg: 0.02, MaxIterations: 60,
		Biases: true}, Rate: 0.1, Decay: 1, Model: tables.BSP()}
}

// TestDescentFindsPlantedRatings: cells of a product of vectors, with a mean and numbers of users and items, are found
// to a tenth of their spread, under exact and bounded models.
func TestDescentFindsPlantedRatings(t *testing.T) {
	t.Parallel()
	all := planted(60, 40, 2, 0.6)
	var mean, spread float64
	for i := range all {
		all[i].value += 3 + math.Mod(all[i].user, 5)/4 - math.Mod(all[i].item, 3)/3
		mean += all[i].value / float64(len(all))
	}
	for _, r := range all {
		spread += (r.value - mean) * (r.value - mean) / float64(len(all))
	}
	path := writeRatings(t, all, ratingsHead)
	for _, m := range []tables.Model{tables.BSP(), tables.SSP(1), tables.CAP(1)} {
		c := sgdDefaults(path)
		c.Model, c.MaxIterations, c.Reg, c.Decay = m, 300, 0.001, 1
		out, err := descended(t, c, "--executors", "2")
		if err != nil {
			t.Fatal(err)
		}
		if e := rmse(out.Model, all); e > 0.1*math.Sqrt(spread) || math.Abs(e-out.Objective) > 0.05*e+0.01 {
			t.Errorf("%v: an error of %v, during the last pass %v; ratings spread by %v", m, e, out.Objective,
				math.Sqrt(spread))
		}
	}
}

// TestDescentHasTheSameBits on any number of executors.
func TestDescentHasTheSameBits(t *testing.T) {
	t.Parallel()
	path := writeRatings(t, planted(50, 30, 2, 0.5), ratingsHead)
	want, err := descended(t, sgdDefaults(path), "--executors", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, executors := range []string{"2", "8"} {
		got, err := descended(t, sgdDefaults(path), "--executors", executors, "--slots", "2")
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(got.Model.users.At, got.Model.items.At)
		for i, x := range slices.Concat(want.Model.users.At, want.Model.items.At) {
			if math.Float64bits(x) != math.Float64bits(all[i]) {
				t.Fatalf("%s executors: number %d is %v, one executor's %v", executors, i, all[i], x)
			}
		}
	}
}

// TestDescentOnMovieLens: u1's test set, of which published results of biased factorizations are 0.93 to 0.96.
func TestDescentOnMovieLens(t *testing.T) {
	base, test := datasets.Path(t, "ml-100k/u1.base.gz"), datasets.Path(t, "ml-100k/u1.test")
	c := sgdDefaults(base)
	c.Rank, c.Reg, c.Rate, c.Decay, c.MaxIterations, c.Tol = 50, 0.09, 0.05, 0.98, 100, 1e-4
	out, err := descended(t, c)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := out.Model.Evaluate(context.Background(), rdd.Input{}, []string{test})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d passes, %.4f in training, %v", out.Iterations, out.Objective, metrics); metrics["rmse"] > 0.93 {
		t.Errorf("test rmse %v, want at most 0.93", metrics["rmse"])
	}
}

// TestMistakesOfDescentAreNamed before data is read, or with what would help.
func TestMistakesOfDescentAreNamed(t *testing.T) {
	t.Parallel()
	path := writeRatings(t, planted(20, 10, 2, 0.5), ratingsHead)
	for want, change := range map[string]func(*SGDConfig){
		"--rate: 0 does not":       func(c *SGDConfig) { c.Rate = 0 },
		"--decay: 1.5 does not":    func(c *SGDConfig) { c.Decay = 1.5 },
		"takes away more than":     func(c *SGDConfig) { c.Reg = 1000 },
		"0 passes":                 func(c *SGDConfig) { c.MaxIterations = 0 },
		"--rank: 0 does not":       func(c *SGDConfig) { c.Rank = 0 },
		"--rank: 2001 does not":    func(c *SGDConfig) { c.Rank = maxRank - 1 },
		"lower --rate":             func(c *SGDConfig) { c.Rate = 9 },
		"neither penalty nor":      func(c *SGDConfig) { c.Reg = -1 },
		"the slack of a table: -2": func(c *SGDConfig) { c.Model = tables.SSP(-2) },
	} {
		c := sgdDefaults(path)
		change(&c)
		if _, err := descended(t, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
