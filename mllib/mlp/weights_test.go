package mlp

import (
	"testing"

	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/testrows"
	"github.com/volley-engine/volley/rdd"
)

// TestWeightsOfNetworks do what repeating rows does, too.
func TestWeightsOfNetworks(t *testing.T) {
	weights, repeated := testrows.Weighed(t, 400, 3, 3, 1)
	network := func(path string) *Networked {
		c := Config{Hidden: []int{4}, Activation: Tanh, Solver: solver.Adam, MaxIterations: 20, Seed: 3, Tol: 1e-9}
		c.Input, c.Data = rdd.Input{Label: "y"}, []string{path}
		if path == weights {
			c.Input.Weight = "w"
		}
		return networked(t, c)
	}
	if a, b := network(weights), network(repeated); !testrows.Nearly(a.Objective, b.Objective, 1e-9) ||
		!testrows.Nearly(a.Accuracy, b.Accuracy, 1e-12) {
		t.Errorf("a network comes to %v and is right of %v, of repeated rows %v and %v", a.Objective, a.Accuracy,
			b.Objective, b.Accuracy)
	}
}
