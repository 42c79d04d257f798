package mlp

import (
	"slices"
	"testing"

	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/tables"
)

// byWorkers returns a configuration of a network that workers on tables train.
func byWorkers(path string, m tables.Model) Config {
	return Config{Data: []string{path}, Hidden: []int{12}, Activation: Tanh, Solver: solver.Adam, StepSize: 0.03,
		MaxIterations: 60, Seed: 3, Splits: 8, Bounded: &parameters.Bounded{Model: m, Passes: 1, Batch: 16}}
}

// TestWorkersLearnWhatNoPlaneCan, under each kind of model, by either solver, whole passes and parts of one, also
// where some do parts of others' clocks.
func TestWorkersLearnWhatNoPlaneCan(t *testing.T) {
	t.Parallel()
	path := xor(t)
	flags := []string{"--executors", "8", "--clock", "virtual", "--pace-rate", "5000", "--pace",
		"static:1,1,1,1,1,1,1,0.25"}
	for name, change := range map[string]func(*Config){
		"bsp":      func(c *Config) { c.Bounded.Model = tables.SSP(0) },
		"ssp":      func(c *Config) { c.Bounded.Model = tables.SSP(3) },
		"asp":      func(c *Config) { c.Bounded.Model = tables.ASP() },
		"cvap":     func(c *Config) { c.Bounded.Model = tables.CVAP(2, 0.5, true) },
		"momentum": func(c *Config) { c.Solver, c.StepSize, c.Momentum = solver.Constant, 0.1, 0.9 },
		"half":     func(c *Config) { c.Bounded.Passes, c.MaxIterations = 0.5, 120 },
		"flexrr": func(c *Config) {
			help := tables.DefaultHelp()
			c.Bounded.Help, c.Bounded.Batch = &help, 4
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := byWorkers(path, tables.SSP(1))
			change(&c)
			got := networked(t, c, flags...)
			if got.Accuracy < 0.95 || got.Iterations != c.MaxIterations {
				t.Errorf("accuracy %v after %d clocks, objective %v", got.Accuracy, got.Iterations, got.Objective)
			}
			if c.Bounded.Help != nil && (got.Helped < 0.04 || got.Waited > 0.5) {
				t.Errorf("helped %.3f, waited %.3f", got.Helped, got.Waited)
			}
		})
	}
}

// TestExactWorkersHaveTheSameBits, however many executors and slots run them.
func TestExactWorkersHaveTheSameBits(t *testing.T) {
	t.Parallel()
	c := byWorkers(xor(t), tables.SSP(0))
	c.MaxIterations = 7
	var want []float64
	for _, shape := range [][]string{{"--executors", "1"}, {"--executors", "8"}, {"--executors", "2", "--slots", "3"},
		{"--executors", "3", "--clock", "virtual", "--pace", "static:1,2,5"}} {
		got := networked(t, c, shape...)
		if want == nil {
			want = got.Model.numbers
		}
		if !slices.Equal(got.Model.numbers, want) {
			t.Errorf("%v: other numbers than those of one executor", shape)
		}
	}
}

// TestWorkersFitNumbers, to about the loss of steps along all rows. On a virtual clock, as what is stale would else be
// the machine's load.
func TestWorkersFitNumbers(t *testing.T) {
	t.Parallel()
	c := byWorkers(xor(t), tables.SSP(1))
	c.Regression, c.MaxIterations, c.StepSize = true, 150, 0.01
	got := networked(t, c, "--executors", "3", "--clock", "virtual", "--pace", "static:1,1,2")
	c.Bounded, c.MaxIterations = nil, 600
	want := networked(t, c, "--executors", "3")
	if got.Objective > 1.3*want.Objective {
		t.Errorf("the objective is %v by workers, %v by steps", got.Objective, want.Objective)
	}
}
