package kmeans

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/rdd"
)

// birch generates points about 100 centres, after the three laws of BIRCH (Zhang,
// Ramakrishnan & Livny 1996, table 3): centres on a grid, along a sine, or at random
// with clusters of unequal size and radius.
func birch(law string, each int, seed uint64) (centres, x [][]float64) {
	rng := rand.New(rand.NewPCG(seed, 17))
	for c := range 100 {
		n, radius := each, math.Sqrt2
		var at []float64
		switch law {
		case "grid":
			at = []float64{float64(c%10) * 4 * math.Sqrt2, float64(c/10) * 4 * math.Sqrt2}
		case "sine":
			at = []float64{2 * math.Pi * float64(c), 100 * math.Sin(2*math.Pi*float64(c)/25)}
		case "random":
			at = []float64{100 * rng.Float64(), 100 * rng.Float64()}
			n, radius = rng.IntN(2*each+1), 4*rng.Float64()
		}
		centres = append(centres, at)
		for range n {
			x = append(x, []float64{at[0] + radius/math.Sqrt2*rng.NormFloat64(),
				at[1] + radius/math.Sqrt2*rng.NormFloat64()})
		}
	}
	return centres, x
}

// pointsFile writes points as CSV.
func pointsFile(t *testing.T, x [][]float64) string {
	t.Helper()
	var b strings.Builder
	for _, row := range x {
		for j, v := range row {
			fmt.Fprintf(&b, "%s%v", map[bool]string{true: "", false: ","}[j == 0], v)
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "points.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// One default run ends within a hundredth of Lloyd's steps from the true centres.
func TestOneRunFindsAllClusters(t *testing.T) {
	for _, law := range []string{"grid", "sine", "random"} {
		centres, x := birch(law, 1000, 3)
		_, want := lloyd(x, centres, 100)
		path := pointsFile(t, x)
		for seed := range seeds.Of(4) {
			out := clustersOf(t, Config{Data: []string{path}, Input: rdd.Input{NoLabel: true}, K: 100,
				Centres: ParallelCentres,
				Seed:    uint64(seed) + 1, MaxIterations: 100, Tol: 1e-4}, volley.Config{Executors: 2})
			t.Logf("%s, seed %d: %.4f of Lloyd's from the true centres, %d iterations", law, seed+1, out.Objective/want,
				out.Iterations)
			if out.Objective > 1.01*want {
				t.Errorf("%s, seed %d: cost %.6g is %.2f %% above that from the true centres", law, seed+1,
					out.Objective, 100*(out.Objective/want-1))
			}
		}
	}
}
