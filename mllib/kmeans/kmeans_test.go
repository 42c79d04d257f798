package kmeans

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
)

// blobs writes points about k places, far from zero, as CSV or LIBSVM.
func blobs(t *testing.T, rows, d, k int, sparse bool) (path string, x [][]float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(k)))
	places := make([][]float64, k)
	for c := range places {
		for range d {
			places[c] = append(places[c], 1000+20*rng.NormFloat64())
		}
	}
	var b strings.Builder
	for i := range rows {
		row := make([]float64, d)
		for j := range row {
			row[j] = math.Round(100*(places[i%k][j]+rng.NormFloat64())) / 100
		}
		if sparse {
			b.WriteString("0")
			for j, v := range row {
				if row[j] = v - 1000; j == i%d {
					row[j] = 0
					continue
				}
				fmt.Fprintf(&b, " %d:%v", j+1, row[j])
			}
		} else {
			for j, v := range row {
				fmt.Fprintf(&b, "%s%v", map[bool]string{true: "", false: ","}[j == 0], v)
			}
		}
		b.WriteByte('\n')
		x = append(x, row)
	}
	path = filepath.Join(t.TempDir(), map[bool]string{true: "x.libsvm", false: "x.csv"}[sparse])
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, x
}

func clustersOf(t *testing.T, c Config, cfg volley.Config) *Clustered {
	t.Helper()
	out, err := tryCluster(t, c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryCluster(t *testing.T, c Config, cfg volley.Config) (out *Clustered, err error) {
	cfg.DataDir = t.TempDir()
	_, err = volley.Run(context.Background(), cfg, "kmeans", c, Build,
		func(ctx context.Context, s *rdd.Session, c Config, p Plan) (string, error) {
			var err error
			out, err = Train(ctx, s, c, p)
			return "", err
		})
	return out, err
}

// lloyd is the serial reference: some steps from given centres, and their cost.
func lloyd(x, centres [][]float64, steps int) ([][]float64, float64) {
	for step := 0; ; step++ {
		sum, n, cost := make([][]float64, len(centres)), make([]float64, len(centres)), 0.0
		for _, row := range x {
			best, at := math.Inf(1), 0
			for c, centre := range centres {
				var sq float64
				for j := range row {
					sq += (row[j] - centre[j]) * (row[j] - centre[j])
				}
				if sq < best {
					best, at = sq, c
				}
			}
			cost += best
			if n[at]++; sum[at] == nil {
				sum[at] = make([]float64, len(row))
			}
			for j, v := range row {
				sum[at][j] += v
			}
		}
		if step == steps {
			return centres, cost
		}
		next := make([][]float64, len(centres))
		for c := range next {
			if next[c] = centres[c]; n[c] > 0 {
				next[c] = sum[c]
				for j := range next[c] {
					next[c][j] /= n[c]
				}
			}
		}
		centres = next
	}
}

func TestLloydIsTheSerialOne(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		path, x := blobs(t, 500, 5, 6, sparse)
		start := [][]float64{x[0], x[1], x[2], x[3], x[9], x[20], x[0]} // the last stays without rows
		want, cost := lloyd(x, start, 7)
		c := Config{Data: []string{path}, K: 7, Start: start, MaxIterations: 7}
		c.Input.NoLabel = !sparse
		got := clustersOf(t, c, volley.Config{Executors: 2})
		if got.Iterations != 7 || math.Abs(got.Objective-cost) > 1e-8*cost {
			t.Errorf("sparse=%v: cost %v after %d, want %v", sparse, got.Objective, got.Iterations, cost)
		}
		for k, centre := range want {
			for j, v := range centre {
				if math.Abs(got.Model.Centres[k*5+j]-v) > 1e-8 {
					t.Fatalf("sparse=%v: centre %d is %v, want %v", sparse, k, got.Model.Centres[k*5:k*5+5], centre)
				}
			}
		}
	}
}

// TestKMeansOnAnyClusterIsTheSame: bit for bit, on one executor or several.
func TestKMeansOnAnyClusterIsTheSame(t *testing.T) {
	path, _ := blobs(t, 3000, 4, 5, false)
	c := Config{Data: []string{path}, K: 8, Centres: ParallelCentres, MaxIterations: 30, Restarts: 2, Tol: 1e-9,
		Seed: 5}
	c.Input.NoLabel = true
	one := clustersOf(t, c, volley.Config{Executors: 1})
	for _, executors := range []int{3, 8} {
		if got := clustersOf(t, c, volley.Config{Executors: executors}); !slices.Equal(got.Model.Centres,
			one.Model.Centres) || got.Objective != one.Objective {
			t.Errorf("%d executors: %v, one: %v", executors, got.Objective, one.Objective)
		}
	}
}

func TestKMeansFindsWhatIsThere(t *testing.T) {
	path, x := blobs(t, 2000, 3, 8, false)
	best := math.Inf(1)
	for s := range 8 {
		var start [][]float64
		for c := range 8 {
			start = append(start, x[s*40+c])
		}
		_, cost := lloyd(x, start, 30) // a point of each place
		best = min(best, cost)
	}
	for _, how := range []string{ParallelCentres, RandomCentres} {
		c := Config{Data: []string{path}, K: 8, Centres: how, MaxIterations: 100, Restarts: 10, Tol: 1e-9, Seed: 1}
		c.Input.NoLabel = true
		if got := clustersOf(t, c, volley.Config{Executors: 2}); got.Objective > 1.0001*best || got.Runs != 10 {
			t.Errorf("%s: %v in %d runs, want %v", how, got.Objective, got.Runs, best)
		}
	}
}

func TestKMeansAtItsEdges(t *testing.T) {
	path, x := blobs(t, 40, 2, 4, false)
	c := Config{Data: []string{path}, K: 40, Centres: ParallelCentres, MaxIterations: 50, Tol: 1e-9, Restarts: 3}
	c.Input.NoLabel = true
	if got := clustersOf(t, c, volley.Config{Executors: 2}); got.Objective > 0.2*float64(len(x)) {
		t.Errorf("as many centres as rows: cost %v", got.Objective)
	}
	c.K = 41
	if _, err := tryCluster(t, c, volley.Config{Executors: 1}); fault.KindOf(err) != fault.Usage {
		t.Errorf("more centres than rows: %v", err)
	}
	c.K, c.Restarts = 1, 1
	_, cost := lloyd(x, x[:1], 1)
	if got := clustersOf(t, c, volley.Config{Executors: 1}); math.Abs(got.Objective-cost) > 1e-8*cost {
		t.Errorf("one centre: cost %v, want %v", got.Objective, cost)
	}
	for _, bad := range []Config{{K: 0}, {K: 2, Start: [][]float64{{1}}}, {K: 2, Start: [][]float64{{1}, {1, 2}}},
		{K: 1, Start: [][]float64{{1}}, Restarts: 2}} {
		if err := bad.Check(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestACutKMeansIsAsGood as one that is not, on uneven executors.
func TestACutKMeansIsAsGood(t *testing.T) {
	path, x := blobs(t, 6000, 4, 6, false)
	c := Config{Data: []string{path}, K: 6, Start: x[:6], MaxIterations: 60, Tol: 1e-6}
	c.Input.NoLabel = true
	whole := clustersOf(t, c, volley.Config{Executors: 4})
	c.Cut = true
	cfg, err := volley.ParseConfig("--executors", "4", "--clock", "virtual", "--pace", "static:4,1,1,1", "--sync",
		"absp")
	if err != nil {
		t.Fatal(err)
	}
	got := clustersOf(t, c, cfg)
	if got.MeanShare > 0.95 || math.Abs(got.Objective-whole.Objective) > 0.01*whole.Objective {
		t.Errorf("cost %v at a share of %v, want %v", got.Objective, got.MeanShare, whole.Objective)
	}
}

func TestCosine(t *testing.T) {
	path, x := blobs(t, 300, 4, 3, true)
	c := Config{Data: []string{path}, K: 3, Distance: Cosine, Centres: ParallelCentres, MaxIterations: 50, Tol: 1e-9,
		Restarts: 5}
	got := clustersOf(t, c, volley.Config{Executors: 2})
	var cost float64
	for _, row := range x {
		length, best := 0.0, math.Inf(1)
		for _, v := range row {
			length += v * v
		}
		for k := range 3 {
			centre, z := got.Model.Centres[k*4:k*4+4], 0.0
			for j, v := range row {
				z += v * centre[j] / math.Sqrt(length)
			}
			best = min(best, 1-z)
		}
		cost += best
	}
	if math.Abs(cost-got.Objective) > 1e-9 {
		t.Errorf("cost %v, reference %v", got.Objective, cost)
	}
}

// TestAKMeansModelIsUsed for predictions and metrics, the silhouette against its
// definition.
func TestAKMeansModelIsUsed(t *testing.T) {
	path, x := blobs(t, 60, 2, 3, false)
	c := Config{Data: []string{path}, K: 3, Centres: ParallelCentres, MaxIterations: 50, Tol: 1e-9, Restarts: 3}
	c.Input.NoLabel = true
	got := clustersOf(t, c, volley.Config{Executors: 2})
	dir := filepath.Join(t.TempDir(), "model")
	if err := got.Model.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir, []model.Kind{Kind})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if rows, err := m.Predict(context.Background(), rdd.Input{}, []string{path}, &out); err != nil || rows != 60 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	of := make([]int, 0, 60)
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
		var k int
		if _, err := fmt.Sscanf(line, "%d,", &k); err != nil {
			t.Fatal(err)
		}
		of = append(of, k)
	}
	metrics, err := m.Evaluate(context.Background(), rdd.Input{}, []string{path})
	if err != nil || math.Abs(metrics["cost"]-got.Objective) > 1e-9*got.Objective ||
		math.Abs(metrics["silhouette"]-silhouette(x, of, 3)) > 1e-9 {
		t.Errorf("%v, %v; want cost %v, silhouette %v", metrics, err, got.Objective, silhouette(x, of, 3))
	}
}

// silhouette is its definition, by squared distances.
func silhouette(x [][]float64, of []int, k int) (mean float64) {
	for i := range x {
		sum, n := make([]float64, k), make([]float64, k)
		for l := range x {
			if i != l {
				n[of[l]]++
				for j := range x[i] {
					sum[of[l]] += (x[i][j] - x[l][j]) * (x[i][j] - x[l][j])
				}
			}
		}
		a, b := sum[of[i]]/n[of[i]], math.Inf(1)
		for c := range k {
			if c != of[i] {
				b = min(b, sum[c]/n[c])
			}
		}
		mean += (b - a) / max(a, b) / float64(len(x))
	}
	return mean
}
