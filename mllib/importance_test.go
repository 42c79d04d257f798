package mllib

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/linear"
	"github.com/volley-engine/volley/rdd"
)

// importances measures a linear model whose predictions are right.
func importances(t *testing.T, rows []string, weights []float64, c ImportanceConfig) (*Importances, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("y,a,b,c\n"+strings.Join(rows, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &linear.Model{Job: "linear", Loss: linear.Squared, Features: 3, Weights: weights, Label: "y",
		Names: []string{"a", "b", "c"}}
	return ImportancesOf(context.Background(), m, rdd.Input{}, []string{path}, c)
}

// TestImportancesAreWhatTheoryHas: permuting a column of a model that is right adds 2·w²·Var(x) to its squared error,
// also where the rows are sorted by it, and of a column without a weight nothing.
func TestImportancesAreWhatTheoryHas(t *testing.T) {
	const n = 4000
	rng := rand.New(rand.NewPCG(1, 2))
	weights := []float64{2, -1, 0}
	var rows []string
	var mean, square float64
	for i := range n {
		x := []float64{float64(i) / n * math.Sqrt(12), rng.NormFloat64(), rng.NormFloat64()} // of variance 1
		y := 2*x[0] - x[1]
		mean, square = mean+y/n, square+y*y/n
		rows = append(rows, fmt.Sprintf("%v,%v,%v,%v", y, x[0], x[1], x[2]))
	}
	got, err := importances(t, rows, weights, ImportanceConfig{Repeats: 3, Seed: 1})
	if err != nil || got.Metric != "r2" || math.Abs(got.Base-1) > 1e-9 || len(got.Columns) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	variance := square - mean*mean
	for i, name := range []string{"a", "b", "c"} {
		want := 2 * weights[i] * weights[i] / variance
		if c := got.Columns[i]; c.Column != name || math.Abs(c.Mean-want) > 0.1*want+1e-12 || want > 0 && c.Std == 0 {
			t.Errorf("%+v, want %v of %s", c, want, name)
		}
	}
	again, err := importances(t, rows, weights, ImportanceConfig{Repeats: 3, Seed: 1, Stored: 1})
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("with data that do not fit: %+v, %v; want %+v", again, err, got)
	}
	worse, err := importances(t, rows, weights, ImportanceConfig{Metric: "rmse", Repeats: 1})
	if err != nil || worse.Columns[0].Mean <= worse.Columns[1].Mean || worse.Columns[2].Mean != 0 {
		t.Errorf("by rmse: %+v, %v", worse, err)
	}
	if _, err := importances(t, rows, weights, ImportanceConfig{Metric: "auc", Repeats: 1}); fault.KindOf(err) !=
		fault.Usage || !strings.Contains(err.Error(), "it has mae nonzeros r2 rmse") {
		t.Errorf("a metric that it has not: %v", err)
	}
}
