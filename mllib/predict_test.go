package mllib

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/mllib/linear"
)

// TestAModelThatChangedIsNotPredictedBy: every node says what the model says that the job began with.
func TestAModelThatChangedIsNotPredictedBy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "model")
	m := &linear.Model{Job: "linear", Loss: linear.Squared, Features: 2, Weights: []float64{1, 2}}
	if err := m.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	c := PredictConfig{Model: dir}
	_, digest, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.says(digest); err != nil {
		t.Errorf("the same model: %v", err)
	}
	if m.Weights[1] = 3; m.Save(dir, true) != nil {
		t.Fatal("the model is not replaced")
	}
	if _, err := c.says(digest); err == nil || !strings.Contains(err.Error(), "it is another one") {
		t.Errorf("another model: %v", err)
	}
}
