package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/volley-engine/volley/internal/fault"
)

// TestCalibrationsAreScikitLearns: of margins with ties and weights (testdata/calibration.py).
func TestCalibrationsAreScikitLearns(t *testing.T) {
	var want struct {
		Z, Y, W, Grid, Sigmoid, Isotonic []float64
		Brier                            float64
		LogLoss                          float64 `json:"log_loss"`
	}
	raw, err := os.ReadFile("testdata/calibration.json")
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []Scored
	for i, z := range want.Z {
		all = append(all, Scored{Z: z, Y: want.Y[i], Weight: want.W[i]})
	}
	for method, values := range map[string][]float64{BySigmoid: want.Sigmoid, ByIsotonic: want.Isotonic} {
		c, err := Calibrate(method, all)
		if err != nil || c.Check() != nil {
			t.Fatal(method, err)
		}
		for i, z := range want.Grid {
			if p := c.Probability(z); math.Abs(p-values[i]) > 1e-6 {
				t.Errorf("%s: a probability of %v at %v, want %v", method, p, z, values[i])
			}
		}
		if method == BySigmoid {
			for i := range all {
				all[i].Z = c.Probability(want.Z[i])
			}
			got := ProbabilityMetrics(all)
			if math.Abs(got["brier"]-want.Brier) > 1e-7 || math.Abs(got["log_loss"]-want.LogLoss) > 1e-7 {
				t.Errorf("%v, want %v and %v", got, want.Brier, want.LogLoss)
			}
			for i := range all {
				all[i].Z = want.Z[i]
			}
		}
	}
}

// TestReliability: what is said half of the time and is so three times in four is off by a quarter.
func TestReliability(t *testing.T) {
	all := []Scored{{0.5, 1, 1}, {0.5, 1, 1}, {0.5, 1, 1}, {0.5, 0, 1}, {1, 1, 4}, {0, 0, 0}}
	table := ReliabilityOf(all)
	if len(table) != 2 || table[0] != (ReliabilityBin{0.5, 0.6, 0.5, 0.75, 4}) || table[1].Through != 1 {
		t.Errorf("%+v", table)
	}
	if got := ProbabilityMetrics(all)["calibration_error"]; math.Abs(got-0.125) > 1e-12 {
		t.Errorf("a calibration error of %v", got)
	}
}

func TestWhatCannotBeCalibrated(t *testing.T) {
	two := []Scored{{1, 1, 1}, {-1, 0, 1}}
	for name, of := range map[string]struct {
		method string
		all    []Scored
		kind   fault.Kind
	}{
		"method":         {"beta", two, fault.Usage},
		"one label":      {BySigmoid, two[:1], fault.BadInput},
		"without spread": {BySigmoid, []Scored{{0, 1, 1}, {0, 0, 1}}, fault.BadInput},
	} {
		if _, err := Calibrate(of.method, of.all); fault.KindOf(err) != of.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []Calibration{{}, {Method: BySigmoid, A: math.NaN()}, {Method: ByIsotonic},
		{Method: ByIsotonic, Margins: []float64{2, 1}, Probabilities: []float64{0, 1}},
		{Method: ByIsotonic, Margins: []float64{1, 2}, Probabilities: []float64{0, 2}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	c, err := Calibrate(BySigmoid, []Scored{{1e300, 1, 1}, {-1e300, 0, 1}, {1e300, 1, 1}})
	if err != nil || !(c.Probability(1e300) > 0.7) || !(c.Probability(-1e300) < 0.5) {
		t.Errorf("large margins: %+v, %v", c, err)
	}
}
