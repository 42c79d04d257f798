package rdd_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type packed struct {
	Pack  rdd.Packed[rdd.Point]
	Count rdd.Step[int, int]
}

// packing runs a step over points, and returns its error.
func packing(t *testing.T, build func(g *rdd.Graph) rdd.Packed[rdd.Point], labels *[]string, rows int) error {
	t.Helper()
	_, err := volley.Run(context.Background(), testConfig(t), "points", struct{}{},
		func(g *rdd.Graph, _ struct{}) packed {
			pk := build(g)
			return packed{pk, rdd.Aggregate(pk, rdd.Aggregator[int, rdd.Point, int]{Zero: func(int) int { return 0 },
				Add: func(n, _ int, _ rdd.Point) int { return n + 1 }, Merge: func(a, b int) int { return a + b }})}
		},
		func(ctx context.Context, s *rdd.Session, _ struct{}, p packed) (string, error) {
			n, err := p.Count.Run(ctx, s, 0)
			if err == nil && n != rows {
				t.Errorf("%d rows, want %d", n, rows)
			}
			if meta, err := p.Pack.Meta(ctx, s); err == nil && labels != nil {
				*labels = meta.Labels
			}
			return "", err
		})
	return err
}

// TestPointsThatCannotBePacked: what is computed is checked as what is read is.
func TestPointsThatCannotBePacked(t *testing.T) {
	dense := func(x ...float64) rdd.Point { return rdd.Point{Values: x} }
	inf := math.Inf(1)
	for want, points := range map[string][]rdd.Point{
		"it has 3 values, those before it 5": {dense(1, 2, 3, 4, 5), dense(1, 2, 3)},
		"dense and sparse":                   {dense(1), {Indices: []int32{0}, Values: []float64{1}}},
		"do not ascend":                      {{Indices: []int32{3, 1}, Values: []float64{1, 2}}},
		"do not ascend from 0":               {{Indices: []int32{-1}, Values: []float64{1}}},
		"2 indices and 1 values":             {{Indices: []int32{1, 2}, Values: []float64{1}}},
		"has no values":                      {{}},
		"not finite":                         {dense(inf)},
		"others have none":                   {{Values: []float64{1}, Class: "a"}, dense(1)},
	} {
		build := func(g *rdd.Graph) rdd.Packed[rdd.Point] { return rdd.Pack(rdd.Parallelize(g, 1, points...)) }
		err := packing(t, build, nil, 0)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "row ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestTextLabelsKeepTheirMeaning: chunks number them in the order in which each has them.
func TestTextLabelsKeepTheirMeaning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.csv")
	text := "y,x\n" + strings.Repeat("no,1\n", 400_000) + strings.Repeat("yes,2\nno,1\n", 400_000)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var labels []string
	err := packing(t, func(g *rdd.Graph) rdd.Packed[rdd.Point] {
		return rdd.Pack(rdd.Filter(rdd.Points(g, rdd.Input{Label: "y"}, path), func(p rdd.Point) bool {
			return (p.Class == "yes") == (p.Values[0] == 2) && p.Class == "yes"
		}))
	}, &labels, 400_000)
	if err != nil || !slices.Equal(labels, []string{"yes"}) {
		t.Errorf("%q, %v", labels, err)
	}
}

// TestAFileThatChangesIsNoticed: a text file is another one than the plan was made for.
func TestAFileThatChangesIsNoticed(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"cut":   func(path string) error { return os.Truncate(path, 4) },
		"grown": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("5\n", 40)), 0o600) },
	} {
		path := numbersFile(t, strings.Repeat("1\n", 20))
		_, err := volley.Run(context.Background(), testConfig(t), "changing", struct{}{},
			func(g *rdd.Graph, _ struct{}) rdd.Action[int64] { return rdd.Count(rdd.TextFile(g, path)) },
			func(ctx context.Context, s *rdd.Session, _ struct{}, count rdd.Action[int64]) (string, error) {
				if err := change(path); err != nil {
					return "", err
				}
				_, err := count.Run(ctx, s)
				return "", err
			})
		if err == nil || !strings.Contains(err.Error(), "changed since") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
