package mlp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

func networked(t *testing.T, c Config, flags ...string) (out *Networked) {
	t.Helper()
	if !slices.Contains(flags, "--sync") {
		flags = append(flags, "--sync", "bsp") // auto may cut batches where this machine is busy
	}
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "mlp", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestANetworksGradientIsItsSlope, by finite differences, for each activation, dense
// and sparse, of classes and of numbers.
func TestANetworksGradientIsItsSlope(t *testing.T) {
	dense := &rdd.Batch{Features: 3, Rows: []int32{0, 1, 2, 3}, Labels: []float64{0, 1, 2, 1},
		X64: []float64{1, 2, -1, 0, 1, 0.5, -2, 1, 1, 0.3, -0.7, 2}}
	sparse := &rdd.Batch{Features: 3, Rows: []int32{0, 1, 2}, Labels: []float64{2, 0, 1}, X64: []float64{1, -2, 0.5, 3},
		Indices: []int32{0, 2, 1, 2}, Offsets: []int32{0, 2, 3, 4}}
	for _, act := range []Activation{ReLU, Sigmoid, Tanh} {
		for _, b := range []*rdd.Batch{dense, sparse} {
			for _, net := range []network{{Sizes: []int{3, 4, 3, 3}, Labels: []float64{0, 1, 2}},
				{Sizes: []int{3, 5, 1}}} {
				f := &netFold{act: act}
				net.V = make([]float64, numbers(net.Sizes))
				for i := range net.V {
					net.V[i] = math.Sin(float64(3*i + 1))
				}
				a := f.aggregator(true)
				sum := a.AddBatch(a.Zero(net), net, b)
				at := func(v []float64) float64 {
					return f.aggregator(false).AddBatch(fold.ClassSums{},
						network{Sizes: net.Sizes, Labels: net.Labels, V: v}, b).Loss
				}
				for i := range net.V {
					const h = 1e-6
					up, down := slices.Clone(net.V), slices.Clone(net.V)
					up[i], down[i] = up[i]+h, down[i]-h
					if slope := (at(up) - at(down)) / (2 * h); math.Abs(slope-sum.Sum[i]) > 1e-6 {
						t.Fatalf("%s %v: slope %d is %v, gradient %v", act, net.Sizes, i, slope, sum.Sum[i])
					}
				}
			}
		}
	}
}

// TestANetworkLearnsWhatNoPlaneCan: classes of alternating quadrants, from whole
// steps, small batches, and cut ones.
func TestANetworkLearnsWhatNoPlaneCan(t *testing.T) {
	path := xor(t)
	for name, c := range map[string]struct {
		method solver.Name
		flags  []string
		n      int
	}{
		"whole":   {solver.Adam, []string{"--executors", "2"}, 400},
		"batches": {solver.Constant, []string{"--executors", "2", "--batch-fraction", "0.1"}, 800},
		"absp": {solver.Adam, []string{"--executors", "4", "--sync", "absp", "--clock", "virtual", "--pace",
			"static:4,1,1,1"}, 400},
		"momentum": {solver.Constant, []string{"--executors", "1"}, 400},
	} {
		cfg := Config{Data: []string{path}, Hidden: []int{12}, Activation: Tanh, Solver: c.method,
			StepSize: map[solver.Name]float64{solver.Adam: 0.03, solver.Constant: 0.3}[c.method],
			Momentum: 0.9, MaxIterations: c.n, Seed: 3, Splits: 8}
		if got := networked(t, cfg, c.flags...); got.Accuracy < 0.95 {
			t.Errorf("%s: accuracy %v after %d, objective %v", name, got.Accuracy, got.Iterations, got.Objective)
		}
	}
}

// xor writes points of the square whose class is whether their signs agree.
func xor(t *testing.T) string {
	return testrows.Lines(t, 2000, func(i int, _ *rand.Rand) string {
		a, b := math.Sin(float64(7*i)), math.Sin(float64(11*i+3))
		label := 0.0
		if a*b > 0 {
			label = 1
		}
		return fmt.Sprintf("%v,%v,%v", label, a, b)
	})
}

func TestANetworkIsUsed(t *testing.T) {
	path := xor(t)
	c := Config{Data: []string{path}, Hidden: []int{8, 4}, Activation: ReLU, Solver: solver.Adam, StepSize: 0.02,
		MaxIterations: 60, Seed: 1}
	got := networked(t, c, "--executors", "1")
	if other := networked(t, c, "--executors", "5"); !slices.Equal(other.Model.numbers, got.Model.numbers) {
		t.Error("five executors give another network")
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir, []model.Kind{Kind})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := m.Evaluate(context.Background(), rdd.Input{}, []string{path})
	if err != nil || math.Abs(metrics["accuracy"]-got.Accuracy) > 1e-12 ||
		math.Abs(metrics["log_loss"]-got.Loss) > 1e-9 {
		t.Errorf("%v, %v, want %v and %v", metrics, err, got.Accuracy, got.Loss)
	}
	c.Regression, c.MaxIterations = true, 300
	numbers := networked(t, c, "--executors", "2")
	metrics, err = numbers.Model.Evaluate(context.Background(), rdd.Input{}, []string{path})
	if err != nil || math.Abs(metrics["rmse"]-math.Sqrt(2*numbers.Loss)) > 1e-9 || metrics["r2"] < 0.5 {
		t.Errorf("%v, %v, want rmse %v", metrics, err, math.Sqrt(2*numbers.Loss))
	}
	for _, bad := range []Config{{Hidden: []int{0}, Solver: solver.Adam}, {Solver: solver.LBFGS},
		{Solver: solver.Constant, Momentum: 1}, {Solver: solver.Adam, Reg: -1}} {
		if err := bad.Check(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A network that training begins with is where the last one ended, in whatever units the data are.
func TestANetworkGoesOn(t *testing.T) {
	path := testrows.Lines(t, 600, func(i int, rng *rand.Rand) string {
		a, b := 100+rng.NormFloat64(), 1e-3*rng.NormFloat64()
		return fmt.Sprintf("%v,%v,%v,7", math.Round(math.Abs(a-100)), a, b)
	})
	for _, regression := range []bool{false, true} {
		c := Config{Data: []string{path}, Hidden: []int{6}, Activation: Tanh, Solver: solver.Adam, StepSize: 0.02,
			MaxIterations: 80, Seed: 1, Regression: regression}
		first := networked(t, c, "--executors", "2")
		c.Init, c.MaxIterations, c.StepSize = BeginWith(first.Model), 1, 1e-13
		next := networked(t, c, "--executors", "2")
		if math.Abs(next.Loss-first.Loss) > 1e-9*(1+first.Loss) || next.Loss == 0 {
			t.Errorf("regression %v: it begins at %v, the last one ended at %v", regression, next.Loss, first.Loss)
		}
		for name, change := range map[string]func(*Config){
			"layers":     func(c *Config) { c.Hidden = []int{5} },
			"activation": func(c *Config) { c.Activation = ReLU },
			"regression": func(c *Config) { c.Regression = !regression },
		} {
			other := c
			if change(&other); fault.KindOf(other.Check()) != fault.Usage {
				t.Errorf("another network is taken: %s", name)
			}
		}
	}
}
