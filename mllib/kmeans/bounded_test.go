package kmeans

import (
	"fmt"
	"math"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/tables"
)

// byWorkers returns a configuration of clustering by workers on tables.
func byWorkers(m tables.Model, c Config) Config {
	c.Bounded = &parameters.Bounded{Model: m, Passes: 1}
	return c
}

// virtualCluster is one whose executors are slow in turn.
func virtualCluster(t *testing.T) volley.Config {
	t.Helper()
	cfg, err := volley.ParseConfig("--executors", "3", "--clock", "virtual", "--pace", "disrupted:300:0.7p:3")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestExactWorkersTakeLloydsSteps: clocks without slack come to where as many of Lloyd's steps do, dense and
// sparse, by either distance, with weights and in passes of parts of a clock.
func TestExactWorkersTakeLloydsSteps(t *testing.T) {
	t.Parallel()
	dense, x := blobs(t, 400, 5, 6, false)
	sparse, y := blobs(t, 400, 5, 6, true)
	weighed, _ := testrows.Weighed(t, 300, 4, 2, 0.5)
	for name, c := range map[string]Config{
		"dense":   {Data: []string{dense}, Start: x[:9], K: 9},
		"float32": {Data: []string{dense}, Start: x[:9], K: 9, Float32: true},
		"sparse":  {Data: []string{sparse}, Start: y[:9], K: 9},
		"cosine":  {Data: []string{dense}, Start: x[:9], K: 9, Distance: Cosine},
		"weights": {Data: []string{weighed}, Start: [][]float64{{0, 0, 0, 0}, {1, 1, 1, 1}, {-1, 0, 0, 2}}, K: 3},
	} {
		if c.Input.NoLabel = name != "sparse" && name != "weights"; name == "weights" {
			c.Input.Label, c.Input.Weight = "y", "w"
		}
		c.Splits = 5
		for _, steps := range []int{1, 2, 7} {
			c.MaxIterations = steps
			want := clustersOf(t, c, volley.Config{Executors: 2})
			for _, passes := range []float64{1, 2} {
				b := byWorkers(tables.SSP(0), c)
				b.Bounded.Passes = passes
				if passes == 2 { // the second pass of a clock finds no other centres
					b.Bounded.Batch = 13
				}
				got := clustersOf(t, b, volley.Config{Executors: 2, Slots: 2})
				for i, v := range want.Model.Centres {
					if math.Abs(got.Model.Centres[i]-v) > 1e-9*max(1, math.Abs(v)) {
						t.Fatalf("%s: after %d clocks number %d of the centres is %v, after Lloyd's steps %v", name,
							steps, i, got.Model.Centres[i], v)
					}
				}
				if !testrows.Nearly(got.Objective, want.Objective, 1e-9) {
					t.Errorf("%s: the cost is %v, want %v", name, got.Objective, want.Objective)
				}
			}
		}
	}
}

// TestWorkersClusterUnderEveryModel: where executors are slow in turn they come to the cost of Lloyd's steps.
func TestWorkersClusterUnderEveryModel(t *testing.T) {
	t.Parallel()
	path, x := blobs(t, 900, 4, 5, false)
	c := Config{Data: []string{path}, K: 5, Start: x[:5], Splits: 6, MaxIterations: 60, Tol: 1e-9}
	c.Input.NoLabel = true
	want := clustersOf(t, c, volley.Config{Executors: 2})
	for _, m := range []tables.Model{tables.SSP(2), tables.ASP(), tables.CAP(1), tables.VAP(1e4, false),
		tables.CVAP(1, 1e4, true)} {
		var first string
		for range 2 {
			got := clustersOf(t, byWorkers(m, c), virtualCluster(t))
			if !testrows.Nearly(got.Objective, want.Objective, 1e-6) || got.StoppedBy != "tolerance" {
				t.Errorf("%v: after %d clocks the cost is %v (%s), after Lloyd's steps %v", m, got.Iterations,
					got.Objective, got.StoppedBy, want.Objective)
			}
			if told := fmt.Sprint(got.Iterations, got.Model.Centres); first != "" && told != first {
				t.Errorf("%v: once %s, and again %s", m, first, told)
			} else {
				first = told
			}
		}
	}
}

// TestHelpedWorkersTakeLloydsSteps: without slack rows go to the cluster that Lloyd's steps have them in, whichever
// worker assigns them, and with it the end is the same.
func TestHelpedWorkersTakeLloydsSteps(t *testing.T) {
	t.Parallel()
	path, x := blobs(t, 6000, 4, 9, false)
	c := Config{Data: []string{path}, K: 9, Start: x[:9], Splits: 8, MaxIterations: 7}
	c.Input.NoLabel = true
	cfg, err := volley.ParseConfig("--executors", "8", "--clock", "virtual", "--pace-rate", "20000", "--pace",
		"static:1,1,1,1,1,1,1,0.25")
	if err != nil {
		t.Fatal(err)
	}
	want := clustersOf(t, c, volley.Config{Executors: 2})
	for _, slack := range []int{0, 2} {
		for _, passes := range []float64{1, 0.5} {
			if testing.Short() && (slack == 0) == (passes < 1) {
				continue // two of the four are enough for the race detector
			}
			if c.Tol, c.MaxIterations = 0, 7; slack > 0 || passes < 1 {
				c.Tol, c.MaxIterations = 1e-9, 80
				want = clustersOf(t, c, volley.Config{Executors: 2})
			}
			b, help := byWorkers(tables.SSP(slack), c), tables.DefaultHelp()
			b.Bounded.Help, b.Bounded.Batch, b.Bounded.Passes = &help, 5, passes
			got := clustersOf(t, b, cfg)
			if !testrows.Nearly(got.Objective, want.Objective, 1e-9) || got.Helped < 0.04 || got.Waited > 0.5 {
				t.Errorf("slack %d, %v passes: the cost is %v, want %v; helped %.3f, waited %.3f", slack, passes,
					got.Objective, want.Objective, got.Helped, got.Waited)
			}
		}
	}
}

// TestRestartsOfWorkersKeepTheBest.
func TestRestartsOfWorkersKeepTheBest(t *testing.T) {
	t.Parallel()
	path, _ := blobs(t, 300, 3, 6, false)
	c := Config{Data: []string{path}, K: 6, Centres: RandomCentres, MaxIterations: 30, Tol: 1e-9, Seed: 4}
	c.Input.NoLabel = true
	one := clustersOf(t, byWorkers(tables.SSP(0), c), volley.Config{Executors: 2})
	c.Restarts = 5
	five := clustersOf(t, byWorkers(tables.SSP(0), c), volley.Config{Executors: 2})
	if five.Runs != 5 || five.Objective > one.Objective {
		t.Errorf("%d runs come to %v, one to %v", five.Runs, five.Objective, one.Objective)
	}
}

// TestConvergedWorkersAreAtAFixedPoint: where a run says that it has converged one more of Lloyd's steps lowers the
// cost by no more than the tolerance, whatever workers have missed, and however small their clocks are.
func TestConvergedWorkersAreAtAFixedPoint(t *testing.T) {
	t.Parallel()
	path, x := blobs(t, 700, 2, 30, false) // more places than centres: workers stand still far from one another's
	for _, m := range []tables.Model{tables.ASP(), tables.SSP(100), tables.SSP(0)} {
		for _, passes := range []float64{1, 0.02} {
			c := byWorkers(m, Config{Data: []string{path}, K: 10, Start: x[100:110], Splits: 6, Tol: 1e-7})
			c.MaxIterations = 2000
			c.Input.NoLabel, c.Bounded.Passes = true, passes
			got := clustersOf(t, c, virtualCluster(t))
			var centres [][]float64
			for k := range 10 {
				centres = append(centres, got.Model.Centres[2*k:2*k+2])
			}
			_, next := lloyd(x, centres, 1)
			if got.Converged && next < got.Objective*(1-2e-7) {
				t.Errorf("%v, %v passes: converged at %v, and a step of Lloyd's comes to %v", m, passes,
					got.Objective, next)
			}
			if !got.Converged {
				t.Errorf("%v, %v passes: not converged after %d clocks (%s)", m, passes, got.Iterations, got.StoppedBy)
			}
		}
	}
}

// TestACostOfZeroEndsARun of steps, as it does one of workers: no centre can move.
func TestACostOfZeroEndsARun(t *testing.T) {
	path := pointsFile(t, [][]float64{{1, 2}, {1, 2}, {1, 2}, {1, 2}})
	c := Config{Data: []string{path}, K: 2, Start: [][]float64{{1, 2}, {1, 2}}, MaxIterations: 50, Tol: 1e-7}
	c.Input.NoLabel = true
	for _, c := range []Config{c, byWorkers(tables.SSP(1), c)} {
		got := clustersOf(t, c, volley.Config{Executors: 1})
		if got.Objective != 0 || !got.Converged || got.Iterations > 10 {
			t.Errorf("workers %v: after %d iterations the cost is %v, converged %v", c.Bounded != nil, got.Iterations,
				got.Objective, got.Converged)
		}
	}
}
