package kmeans

import (
	"context"
	"maps"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// TestWeightsOfClusters do what repeating rows does, too.
func TestWeightsOfClusters(t *testing.T) {
	weights, repeated := testrows.Weighed(t, 400, 3, 3, 1)
	clusters := func(path string) *Clustered {
		c := Config{K: 3, Start: [][]float64{{-1, 0, 0}, {0, 1, 0}, {1, 0, 2}}, MaxIterations: 30, Tol: 1e-12}
		c.Input, c.Data = rdd.Input{Label: "y"}, []string{path}
		if path == weights {
			c.Input.Weight = "w"
		}
		return clustersOf(t, c, volley.Config{Executors: 2})
	}
	a, b := clusters(weights), clusters(repeated)
	if !testrows.Nearly(a.Objective, b.Objective, 1e-9) {
		t.Errorf("k-means costs %v, of repeated rows %v", a.Objective, b.Objective)
	}
	for j, v := range a.Model.Centres {
		if !testrows.Nearly(v, b.Model.Centres[j], 1e-9) {
			t.Errorf("centres are at %v, of repeated rows at %v", a.Model.Centres, b.Model.Centres)
			break
		}
	}
	own, err := a.Model.Evaluate(context.Background(), rdd.Input{}, []string{weights})
	if err != nil {
		t.Fatal(err)
	}
	other, err := a.Model.Evaluate(context.Background(), rdd.Input{}, []string{repeated})
	delete(own, "silhouette") // to itself, a row that is repeated is as near as another
	delete(other, "silhouette")
	if err != nil || len(own) != 2 || !maps.EqualFunc(own, other,
		func(x, y float64) bool { return testrows.Nearly(x, y, 1e-9) }) {
		t.Errorf("its metrics are %v, of repeated rows %v: %v", own, other, err)
	}
}
