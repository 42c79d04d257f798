package mllib

import (
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/crash"
	"github.com/volley-engine/volley/mllib/linear"
)

// modelOf is a model that has one number.
func modelOf(x float64) *linear.Model {
	return &linear.Model{Job: "logistic", Labels: [2]string{"0", "1"}, Features: 1, Intercept: x, Weights: []float64{x}}
}

// numberOf is the number of a model that was saved; 0 where there is none.
func numberOf(t *testing.T, dir string, s *crash.State) float64 {
	t.Helper()
	m, err := LoadModel(dir)
	if err != nil {
		return 0
	}
	l := m.(*linear.Model)
	if len(l.Weights) != 1 || l.Weights[0] != l.Intercept {
		t.Errorf("%v: a mixture: %v and %v", s, l.Weights, l.Intercept)
	}
	return l.Intercept
}

// TestAModelIsOldOrNew, wherever the power fails, and new from the end of its saving on.
func TestAModelIsOldOrNew(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "model")
	if err := modelOf(1).Save(dir, false); err != nil {
		t.Fatal(err)
	}
	r := crash.Record(t, root)
	if err := modelOf(2).Save(dir, true); err != nil {
		t.Fatal(err)
	}
	r.Promise()
	r.End(t)
	faults := 0
	for s := range r.States(t) {
		if got := numberOf(t, filepath.Join(s.Put(t), "model"), s); (got != 2 && (got != 1 || s.Promised > 0)) &&
			faults < 5 {
			t.Errorf("%v: the model is %v", s, got)
			faults++
		}
	}
}

// TestAFirstModelIsThereOrNot: no half of it.
func TestAFirstModelIsThereOrNot(t *testing.T) {
	root := t.TempDir()
	r := crash.Record(t, root)
	if err := modelOf(2).Save(filepath.Join(root, "models", "first"), false); err != nil {
		t.Fatal(err)
	}
	r.Promise()
	r.End(t)
	for s := range r.States(t) {
		if got := numberOf(t, filepath.Join(s.Put(t), "models", "first"), s); s.Promised > 0 && got != 2 {
			t.Errorf("%v: the model is %v", s, got)
			return
		}
	}
}
