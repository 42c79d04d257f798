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

// TestAPackOfASourceIsOfItsFiles: where these have other rows than when the pack was made, whatever reads them, the
// pack is made of these.
func TestAPackOfASourceIsOfItsFiles(t *testing.T) {
	type row struct{ A string }
	sources := map[string]func(g *rdd.Graph, path string) rdd.Step[int, int64]{
		"TextFile": func(g *rdd.Graph, path string) rdd.Step[int, int64] { return countOf(rdd.TextFile(g, path)) },
		"CSV": func(g *rdd.Graph, path string) rdd.Step[int, int64] {
			return countOf(rdd.CSV[row](g, rdd.CSVOptions{}, path))
		},
		"FlatMapLines": func(g *rdd.Graph, path string) rdd.Step[int, int64] {
			return countOf(rdd.FlatMapLines(g, func(out []string, line []byte) ([]string, error) {
				return append(out, string(line)), nil
			}, path))
		},
		"Map": func(g *rdd.Graph, path string) rdd.Step[int, int64] {
			return countOf(rdd.Map(rdd.TextFile(g, path), func(s string) string { return s }))
		},
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			cfg, path := testConfig(t), writeOne(t, "rows.csv", "A\nx\n")
			count := func() (n int64) {
				runPlan(t, cfg, func(g *rdd.Graph) rdd.Step[int, int64] { return source(g, path) },
					func(ctx context.Context, s *rdd.Session, a rdd.Step[int, int64]) {
						var err error
						if n, err = a.Run(ctx, s, 0); err != nil {
							t.Error(err)
						}
					})
				return n
			}
			before := count()
			if err := os.WriteFile(path, []byte("A\nx\ny\nz\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if after := count(); after != before+2 {
				t.Errorf("%d rows, and %d where two were added", before, after)
			}
		})
	}
}

// countOf declares the number of rows of a dataset's pack.
func countOf[T any](ds rdd.Dataset[T]) rdd.Step[int, int64] {
	return rdd.Aggregate(rdd.Pack(ds), rdd.Aggregator[int, T, int64]{
		Zero:  func(int) int64 { return 0 },
		Add:   func(n int64, _ int, _ T) int64 { return n + 1 },
		Merge: func(a, b int64) int64 { return a + b },
	})
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
