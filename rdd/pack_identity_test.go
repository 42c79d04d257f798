package rdd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// TestAPackIsOfItsOwnFiles, whatever else the plan reads: what a cache has of other
// points is not taken for it.
func TestAPackIsOfItsOwnFiles(t *testing.T) {
	type side struct{ A string }
	cfg := testConfig(t)
	other := writeOne(t, "side.csv", "A\nx\n")
	for i, text := range []string{"label,x\n1,1\n0,1\n", "label,x\n1,100\n0,100\n1,100\n"} {
		path, want := writeOne(t, "points.csv", text), []float64{2, 300}[i]
		type plan struct {
			side rdd.Action[int64]
			sum  rdd.Step[float64, float64]
		}
		build := func(g *rdd.Graph) plan {
			return plan{rdd.Count(rdd.CSV[side](g, rdd.CSVOptions{}, other)),
				totalOf(rdd.Pack(rdd.Points(g, rdd.Input{}, path)))}
		}
		runPlan(t, cfg, build, func(ctx context.Context, s *rdd.Session, p plan) {
			if sum, err := p.sum.Run(ctx, s, 0); err != nil || sum != want {
				t.Errorf("the sum over %s is %v, %v, want %v", path, sum, err, want)
			}
		})
	}
}

// writeOne writes one file to a new directory and names it.
func writeOne(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// totalOf declares the sum of a pack's first features.
func totalOf(pk rdd.Packed[rdd.Point]) rdd.Step[float64, float64] {
	return rdd.Aggregate(pk, rdd.Aggregator[float64, rdd.Point, float64]{
		Zero:  func(float64) float64 { return 0 },
		Add:   func(a, _ float64, p rdd.Point) float64 { return a + p.Values[0] },
		Merge: func(a, b float64) float64 { return a + b },
	})
}
