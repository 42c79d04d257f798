package linear

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// boundedModels are one of each kind of what workers may miss.
func boundedModels() []tables.Model {
	return []tables.Model{tables.SSP(0), tables.SSP(3), tables.ASP(), tables.CAP(2), tables.VAP(0.1, false),
		tables.VAP(0.1, true), tables.CVAP(2, 0.1, false)}
}

// unevenly runs a training of workers on a virtual cluster whose executors are slow in turn.
func unevenly(t *testing.T, c Config, train func(ctx context.Context, s *rdd.Session, c Config, p Plan) error,
	flags ...string) {
	t.Helper()
	if flags == nil {
		flags = []string{"--executors", "4", "--clock", "virtual", "--pace", "disrupted:300:0.7p:3"}
	}
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "linear", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			return "", train(ctx, s, c, p)
		})
	if err != nil {
		t.Fatal(err)
	}
}

func boundedly(t *testing.T, c Config, flags ...string) (out *Trained) {
	t.Helper()
	unevenly(t, c, func(ctx context.Context, s *rdd.Session, c Config, p Plan) (err error) {
		out, err = Train(ctx, s, c, p)
		return err
	}, flags...)
	return out
}

// byWorkers returns a configuration that workers are to train.
func byWorkers(m tables.Model, c Config) Config {
	c.Solver, c.Splits, c.MaxIterations = solver.Auto, 8, 400
	c.Bounded = &parameters.Bounded{Model: m, Passes: 1}
	return c
}

// TestWorkersComeToTheOptimum, of each loss and penalty, under each model, dense and sparse, where executors are slow
// in turn: what is reported is the objective at the model, and the gap a bound of how far that is from the exact
// solver's.
func TestWorkersComeToTheOptimum(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"logistic":      func(*Config) {},
		"sparse rows":   func(*Config) {},
		"hinge":         func(c *Config) { c.Loss = Hinge },
		"squared hinge": func(c *Config) { c.Loss, c.Standardize = SquaredHinge, true },
		"squared":       func(c *Config) { c.Loss, c.Positive = Squared, "" },
		"lasso":         func(c *Config) { c.Loss, c.Alpha, c.Reg = Squared, 1, 0.05 },
		"elastic net":   func(c *Config) { c.Alpha, c.Intercept = 0.5, false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _, _ := sample(t, 900, 12, name == "sparse rows")
			c := defaults(path)
			c.Tol = 1e-7
			change(&c)
			c.Solver = solver.Auto
			best := fitted(t, c)
			for _, m := range boundedModels() {
				got := boundedly(t, byWorkers(m, c))
				above := got.Objective - best.Objective
				if above < -1e-6 || above > 1e-3*math.Abs(best.Objective) {
					t.Errorf("%v: after %d clocks the objective is %v, %v above the least", m, got.Iterations,
						got.Objective, above)
				}
				if got.StoppedBy == "" || !math.IsNaN(got.Gap) && got.Gap < above-1e-6 {
					t.Errorf("%v: it is %v above the least, by its gap at most %v; stopped by %q", m, above, got.Gap,
						got.StoppedBy)
				}
				zeros := func(k *Trained) (n int) {
					for _, w := range k.Model.Weights {
						if w == 0 {
							n++
						}
					}
					return n
				}
				if name == "lasso" && zeros(got) != zeros(best) {
					t.Errorf("%v: %d weights are zero, of the exact solver %d", m, zeros(got), zeros(best))
				}
			}
		})
	}
}

// TestExactWorkersHaveTheSameBits, however many executors and slots run them.
func TestExactWorkersHaveTheSameBits(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 500, 9, false)
	c := byWorkers(tables.SSP(0), defaults(path))
	c.MaxIterations = 12
	var want []float64
	for _, shape := range [][]string{{"--executors", "1"}, {"--executors", "8"}, {"--executors", "2", "--slots", "3"},
		{"--executors", "3", "--clock", "virtual", "--pace", "static:1,2,5"}} {
		got := boundedly(t, c, shape...)
		if want == nil {
			want = got.Model.Weights
		}
		if !slices.Equal(got.Model.Weights, want) {
			t.Errorf("%v: weights %v, of one executor %v", shape, got.Model.Weights, want)
		}
	}
}

// TestTheMeanGradientIsThatOfAllRows: at every tick what the table has for the intercept is the sum of what workers
// keep of their rows, under each model, also where clocks are parts of passes, and steps of few rows.
func TestTheMeanGradientIsThatOfAllRows(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 600, 5, false)
	for _, m := range boundedModels() {
		for _, passes := range []float64{1, 0.3, 2.5} {
			c := byWorkers(m, defaults(path))
			c.Bounded.Passes, c.Bounded.Batch = passes, 7
			unevenly(t, c, func(ctx context.Context, s *rdd.Session, c Config, p Plan) error {
				return heldAgainstRows(t, ctx, s, c, p)
			})
		}
	}
}

func heldAgainstRows(t *testing.T, ctx context.Context, s *rdd.Session, c Config, p Plan) error {
	k := &trainer{cfg: c, plan: p}
	k.Training = train.Training{Session: s, Summary: &k.out.Summary, Ending: &k.st.Ending}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	r := c.boundedRun(&k.Training, k, p.bounded, k.meta, k.prob, &k.st.Point, &k.stop, k.moments)
	r.Moves.Resize(len(r.Y))
	if _, err := r.Begin(ctx, r.Step, 1); err != nil {
		return err
	}
	for tick, err := range p.bounded.workers.Clocks(ctx, s, r.param, 9, 1) {
		if err != nil {
			return err
		}
		if c.Bounded.Help != nil && tick.Clock == 9 && tick.Helped == 0 {
			t.Errorf("%v passes: none is helped", c.Bounded.Passes)
		}
		slope := slices.Clone(r.param.Slope)
		p.bounded.slopes.AddAt(tick, slope)
		// Rows that were not visited have the gradient of the beginning, of which the sum over all rows is known.
		sum, all := 0.0, true
		for w := range tick.Workers() {
			state, err := p.bounded.workers.StateAt(tick, w)
			if err != nil {
				return err
			}
			for _, v := range state.Coef {
				if all = all && !math.IsNaN(v); all {
					sum += v
				}
			}
		}
		last := len(slope) - 1
		if want := sum / r.param.Weight; all && math.Abs(slope[last]-want) > 1e-12 {
			t.Errorf("%v, %v passes, clock %d: the table has %v for the intercept, the rows %v", c.Bounded.Model,
				c.Bounded.Passes, tick.Clock, slope[last], want)
		}
	}
	return nil
}

// TestWorkersCountWeights: rows with weights, and the same rows each as often as it weighs, have the same optimum.
func TestWorkersCountWeights(t *testing.T) {
	t.Parallel()
	weights, repeated := testrows.Weighed(t, 400, 4, 2, 1)
	one, many := defaults(weights), defaults(repeated)
	one.Input = rdd.Input{Label: "y", Weight: "w"}
	many.Input = rdd.Input{Label: "y"}
	want := fitted(t, many)
	for _, m := range []tables.Model{tables.SSP(1), tables.ASP()} {
		got := boundedly(t, byWorkers(m, one))
		if !testrows.Nearly(got.Objective, want.Objective, 1e-4) {
			t.Errorf("%v: the objective is %v, that of repeated rows %v", m, got.Objective, want.Objective)
		}
	}
}

// TestStepsThatLeadAstrayBecomeSmaller, and one that never leads anywhere is an error.
func TestStepsThatLeadAstrayBecomeSmaller(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 600, 8, false)
	for _, step := range []float64{30, 1e4} {
		c := byWorkers(tables.SSP(3), defaults(path))
		c.StepSize = step
		want := fitted(t, defaults(path))
		if got := boundedly(t, c); got.Objective > 1.001*want.Objective {
			t.Errorf("with a first step of %v the objective is %v, the least %v", step, got.Objective, want.Objective)
		}
	}
}

// TestARunOfWorkersBeginsWithAModel, and ends near it at once.
func TestARunOfWorkersBeginsWithAModel(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 600, 8, false)
	first := fitted(t, defaults(path))
	c := byWorkers(tables.SSP(1), defaults(path))
	c.Tol = 1e-6
	c.Init = BeginWith(first.Model)
	if got := boundedly(t, c); got.Iterations > 20 || got.Objective > first.Objective*(1+1e-5) {
		t.Errorf("after %d clocks the objective is %v, it began at %v", got.Iterations, got.Objective, first.Objective)
	}
}

// TestWhatWorkersDoNotDo is refused before data are read, by an error that says what does.
func TestWhatWorkersDoNotDo(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"another solver": func(c *Config) { c.Solver = solver.Newton },
		"steps":          func(c *Config) { c.Solver, c.Bounded = solver.SAGA, nil },
	} {
		c := byWorkers(tables.SSP(1), defaults("nothing"))
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(fmt.Sprint(err), "--sync") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWorkersTellClassesApart: they come to the optimum of several classes, dense and sparse, by either loss, and with
// weights of classes.
func TestWorkersTellClassesApart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"dense":       func(*Config) {},
		"sparse":      func(*Config) {},
		"weights":     func(c *Config) { c.Classes = []float64{1, 3, 0.5, 2} },
		"one vs rest": func(c *Config) { c.Loss = OneVsRest },
		"lasso":       func(c *Config) { c.Alpha = 1 },
	} {
		path, _, _ := classes(t, 600, 5, name == "sparse")
		c := defaults(path)
		c.Loss, c.Solver, c.Tol = Softmax, solver.Auto, 1e-7
		change(&c)
		best := classesOf(t, c)
		for _, m := range []tables.Model{tables.SSP(0), tables.SSP(2), tables.ASP()} {
			got := classesOf(t, byWorkers(m, c), "--executors", "3", "--clock", "virtual", "--pace",
				"disrupted:300:0.7p:3")
			above := got.Objective - best.Objective
			if above < -1e-6 || above > 1e-3*math.Abs(best.Objective) {
				t.Errorf("%s, %v: after %d clocks the objective is %v, the least %v", name, m, got.Iterations,
					got.Objective, best.Objective)
			}
		}
	}
}

func classesOf(t *testing.T, c Config, flags ...string) (out *Classified) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "softmax", c, BuildSoftmax,
		func(ctx context.Context, s *rdd.Session, c Config, p SoftmaxPlan) (_ string, err error) {
			out, err = TrainSoftmax(ctx, s, c, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWorkersGoOnFromACheckpoint: a run that is stopped at a tick, also after workers have begun again with smaller
// steps, and goes on, ends where one does that was not: under ssp(0) with its bits.
func TestWorkersGoOnFromACheckpoint(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 500, 6, false)
	for _, m := range []tables.Model{tables.SSP(0), tables.SSP(2)} {
		c := byWorkers(m, defaults(path))
		c.Tol, c.StepSize = 1e-6, 40 // of which some are too long
		whole := boundedly(t, c)
		for _, at := range []int{1, 2, 3, 5, 9, whole.Iterations - 1, whole.Iterations} {
			got := stoppedAt(t, c, at)
			told := func(k *Trained) string { return fmt.Sprint(k.Iterations, k.StoppedBy, k.Model.Weights) }
			if m.Exact() && told(got) != told(whole) {
				t.Errorf("stopped at tick %d it comes to %s; one that was not to %s", at, told(got), told(whole))
			}
			if !testrows.Nearly(got.Objective, whole.Objective, 1e-4) {
				t.Errorf("%v: stopped at tick %d, after %d clocks the objective is %v; of a run that was not %v", m, at,
					got.Iterations, got.Objective, whole.Objective)
			}
		}
	}
}

// stoppedAt runs a training in two processes: the first is stopped at a tick.
func stoppedAt(t *testing.T, c Config, at int) (got *Trained) {
	t.Helper()
	dir := t.TempDir()
	for _, first := range []bool{true, false} {
		cfg, err := volley.ParseConfig("--executors", "3", "--data-dir", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = dir, 1, true
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ticks := 0
		cfg.Progress = func(p rdd.Progress) {
			if _, ok := p.Values["objective"]; ok && first {
				if ticks++; ticks == at {
					cancel()
				}
			}
		}
		_, err = volley.Run(context.Background(), cfg, "linear", c, Build,
			func(_ context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
				got, err = Train(ctx, s, c, p)
				return "", err
			})
		if err != nil {
			t.Fatal(err)
		}
		if first && got.StoppedBy != "interrupted" && got.Iterations > at {
			t.Errorf("the first process ends by %s after %d clocks, not at tick %d", got.StoppedBy, got.Iterations, at)
		}
	}
	return got
}

// TestWorkersGoOnUnderALongerLimit: a run that its limit of time has ended goes on where it is resumed under a longer
// one, and stays as it is under the same.
func TestWorkersGoOnUnderALongerLimit(t *testing.T) {
	t.Parallel()
	path, _, _ := sample(t, 500, 6, false)
	dir := t.TempDir()
	before := 0
	for _, limit := range []time.Duration{300 * time.Millisecond, 300 * time.Millisecond, time.Second, 0} {
		c := byWorkers(tables.SSP(0), defaults(path))
		c.MaxTime, c.Tol, c.MaxIterations = limit, 0, 40
		cfg, err := volley.ParseConfig("--executors", "2", "--clock", "virtual", "--pace", "static:1,1", "--pace-rate",
			"10000", "--data-dir", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume, cfg.Identity = dir, 1, true, "all but limits"
		var got *Trained
		_, err = volley.Run(context.Background(), cfg, "linear", c, Build,
			func(ctx context.Context, s *rdd.Session, c Config, p Plan) (_ string, err error) {
				got, err = Train(ctx, s, c, p)
				return "", err
			})
		if err != nil {
			t.Fatal(err)
		}
		want := map[time.Duration]string{0: "max-iterations"}[limit]
		if want == "" {
			want = "max-time"
		}
		if got.StoppedBy != want || got.Iterations < before || limit == 0 && got.Iterations != 40 {
			t.Errorf("under %v it ends after %d clocks by %s, before after %d", limit, got.Iterations, got.StoppedBy,
				before)
		}
		before = got.Iterations
	}
}
