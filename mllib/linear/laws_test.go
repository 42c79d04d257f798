package linear

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
)

// kindsOfMany are the shapes of data of which a part tells something, so that steps are cut and samples are taken.
var kindsOfMany = []kindOfRows{
	{"many", func(rng *rand.Rand) [][]float64 { return gaussians(rng, 400+rng.IntN(2000), 1+rng.IntN(8)) }},
	{"very many", func(rng *rand.Rand) [][]float64 { return gaussians(rng, 3000+rng.IntN(3000), 1+rng.IntN(4)) }},
	{"many and scaled", func(rng *rand.Rand) [][]float64 {
		x := gaussians(rng, 400+rng.IntN(1000), 6)
		for _, row := range x {
			for j := range row {
				row[j] *= []float64{1e4, 1e-4, 1}[j%3]
			}
		}
		return x
	}},
	{"many, a few of them long", func(rng *rand.Rand) [][]float64 {
		x := gaussians(rng, 400+rng.IntN(1000), 4)
		for _, row := range x {
			if rng.IntN(50) > 0 {
				continue
			}
			for j := range row {
				row[j] *= 1e3
			}
		}
		return x
	}},
	{"many that come in order", func(rng *rand.Rand) [][]float64 {
		x := gaussians(rng, 400+rng.IntN(1000), 3)
		for i, row := range x {
			row[0] += 6 * float64(i) / float64(len(x))
		}
		return x
	}},
}

// lawsOfSpeed are those under which the problems are tried; they take a seed where they have one.
var lawsOfSpeed = []string{"static:4,1,1", "physical", "multi-tenant:%d", "one-straggler", "delayed:1p", "disrupter:1p",
	"slow-worker:400", "power-law:7", "static:1,1,1"}

// problemsUnderLaws is how many problems are tried; VOLLEY_SOAK=500 tries as many.
const problemsUnderLaws = 16

// TestNoRunEndsFurtherThanItSays under laws of speed by which steps are cut, samples taken and splits moved: of random
// problems, none has converged further from the optimum than its tolerance, or than its gap.
func TestNoRunEndsFurtherThanItSays(t *testing.T) {
	converged := map[string]int{}
	for seed := range uint64(seeds.Of(problemsUnderLaws)) {
		p, c, name := randomProblemOf(t, seed, kindsOfMany)
		e := ends{p: p, c: c, o: p.solve(), null: p.without()}
		rng := rand.New(rand.NewPCG(seed, 78))
		law := lawsOfSpeed[rng.IntN(len(lawsOfSpeed))]
		if law == "multi-tenant:%d" {
			law = fmt.Sprintf(law, seed)
		}
		names := solver.Names()
		c.Solver, c.Splits, c.Seed = solver.Auto, 24, seed
		if rng.IntN(2) == 0 || len(p.x) >= 3000 {
			c.Solver = names[rng.IntN(len(names))]
			if len(p.x) >= 3000 && rng.IntN(2) == 0 {
				c.Solver = solver.LBFGS
			}
		}
		for _, sync := range []string{"absp", "auto"} {
			got, err := trainedUnder(t, c, sync, "--pace", law, "--executors", lawExecutors(law), "--pace-rate", "5000")
			if err != nil {
				t.Errorf("%s, %s, %s, %s: %v", name, law, c.Solver, sync, err)
				continue
			}
			if got == nil {
				continue
			}
			for _, f := range e.hold(got) {
				t.Errorf("%s, %s, %s (%s after %d), %s: %s", name, law, got.Solver, got.StoppedBy, got.Iterations,
					sync, f)
			}
			if c.Solver == solver.Auto && !(c.Loss == Hinge && c.Alpha > 0) { // of such newton may know too little
				converged[sync+" tried"]++
				if got.Converged {
					converged[sync]++
				} else {
					t.Logf("%s, %s, %s: %s (%s after %d) has not converged: gap %.1e, above the optimum by %.1e",
						name, law, sync,
						got.Solver, got.StoppedBy, got.Iterations, got.Gap, got.Objective-e.o.value)
				}
			}
		}
	}
	for _, sync := range []string{"absp", "auto"} {
		t.Logf("%s: %d of %d converged", sync, converged[sync], converged[sync+" tried"])
		if 100*converged[sync] < 95*converged[sync+" tried"] {
			t.Errorf("%s: %d of %d runs by auto converged", sync, converged[sync], converged[sync+" tried"])
		}
	}
}

// lawExecutors returns for how many executors a law is; 0 is as it says itself.
func lawExecutors(law string) string {
	switch law {
	case "static:4,1,1", "static:1,1,1":
		return "3"
	case "delayed:1p", "disrupter:1p", "slow-worker:400", "power-law:7":
		return "4"
	}
	return "0"
}

// TestSamplesInWhichNoRowCounts have more rows look: of most rows the weight is nothing.
func TestSamplesInWhichNoRowCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	p := &convex{x: gaussians(rng, 20_000, 3), intercept: true, loss: Logistic}
	p.label(rng)
	for i := range p.x {
		p.c = append(p.c, float64(max(0, 1-i%2000)))
	}
	c := Config{Loss: Logistic, Reg: 0.1, Intercept: true, MaxIterations: 100, Tol: 1e-6, Stop: train.ByObjective,
		Splits:   4,
		Positive: "1"}
	c.Data, c.Input.Label, c.Input.Weight = []string{p.write(t, true)}, "y", "c"
	p.penalize(c)
	e := ends{p: p, c: c, o: p.solve(), null: p.without()}
	for _, c.Solver = range []solver.Name{solver.LBFGS, solver.Newton} {
		e.try(t, c, "absp", "rows without weight")
	}
}
