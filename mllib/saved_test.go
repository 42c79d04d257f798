package mllib

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/mllib/linear"
)

func TestModelsAreSavedWholeAndReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	m := &linear.Model{Job: "logistic", Labels: [2]string{"ham", "spam"}, TextLabels: true, Features: 3,
		Weights: []float64{1, -2, 0.5}, Intercept: 0.25}
	if err := m.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(dir, false); err == nil {
		t.Error("an existing model is replaced without being asked to")
	}
	if err := m.Save(dir, true); err != nil {
		t.Fatal(err)
	}
	back, err := LoadLinear(dir)
	if err != nil || back.Labels != m.Labels || back.Weights[2] != 0.5 || back.Intercept != 0.25 {
		t.Errorf("%+v, %v", back, err)
	}
	path := filepath.Join(dir, "weights.arrow")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw { // cut there, and with one bit turned
		turned := bytes.Clone(raw)
		turned[i] ^= 1 << (i % 8)
		for _, damaged := range [][]byte{raw[:i], turned} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadModel(dir); err == nil || !strings.Contains(err.Error(), "weights.arrow") {
				t.Fatalf("damaged at byte %d, loading gives %v", i, err)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".model-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A model of another program's job is refused, not taken for a linear one.
func TestAnUnknownModelIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.json"), []byte(`{"version":2,"job":"forest","features":1}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadModel(dir); err == nil || !strings.Contains(err.Error(), "forest") {
		t.Errorf("loading gives %v", err)
	}
}
