package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMetricsAreScikitLearns trains on public data what scikit-learn was trained on (testdata/metrics.py), by the
// same objective, and compares every metric.
func TestMetricsAreScikitLearns(t *testing.T) {
	raw, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct {
		Name, Job, Train, Test string
		Reg                    float64
		Metrics                map[string]float64
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	for _, c := range table {
		t.Run(c.Name, func(t *testing.T) {
			args := []string{"run", c.Job, "--json", "--data", shared(t, c.Train), "--reg", fmt.Sprint(c.Reg),
				"--tol", "1e-13", "--max-iterations", "5000", "--data-dir", t.TempDir()}
			if c.Test != "" {
				args = append(args, "--test", shared(t, c.Test))
			}
			if strings.Contains(c.Train, ".data") {
				args = append(args, "--format", "csv", "--label", "8")
			}
			out, errs, code := volley(t, args...)
			if code != 0 {
				t.Fatalf("exit %d\n%s", code, errs)
			}
			var r result
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			for name, want := range c.Metrics {
				if got, ok := r.Metrics[name]; !ok || math.Abs(got-want) > 2e-6*max(1, math.Abs(want)) {
					t.Errorf("%s is %v, of scikit-learn %v", name, got, want)
				}
			}
		})
	}
}

// TestPredictionsOfManyPartsAreInOrder: a file of several parts, which are read side by side and begin within quoted
// text, comes out row by row; an error names the row of the file.
func TestPredictionsOfManyPartsAreInOrder(t *testing.T) {
	dir := t.TempDir()
	small, large, model := filepath.Join(dir, "small.csv"), filepath.Join(dir, "large.csv"), filepath.Join(dir, "model")
	note := "\"" + strings.Repeat("a line\nand, after it, another ", 40) + "\""
	const rows = 35_000 // of 1 KB and more
	positive := func(i int) bool { return i%7 == 3 || i%11 == 5 }
	lines := func(n int, bad int) []byte {
		out := []byte("label,x,note\n")
		for i := range n {
			label, x := "no", -1
			if positive(i) {
				label, x = "yes", 1
			}
			if i == bad {
				label = "perhaps"
			}
			out = fmt.Appendf(out, "%s,%d,%s\n", label, x, note)
		}
		return out
	}
	writeFile(t, small, lines(500, -1))
	writeFile(t, large, lines(rows, 30_000))
	if _, errs, code := volley(t, "run", "logistic", "--data", small, "--label", "label", "--hash", "note",
		"--reg", "0.01", "--out", model, "--data-dir", filepath.Join(dir, "cache")); code != 0 {
		t.Fatal(errs)
	}
	out, errs, code := volley(t, "predict", model, "--data", large, "--out", "-")
	if code != 0 {
		t.Fatal(errs)
	}
	said := strings.Split(strings.TrimSuffix(out, "\n"), "\n")[1:]
	if len(said) != rows {
		t.Fatalf("%d predictions of %d rows", len(said), rows)
	}
	for i, line := range said {
		if strings.HasPrefix(line, "yes,") != positive(i) {
			t.Fatalf("row %d is said to be %q", i, line)
		}
	}
	_, errs, code = volley(t, "evaluate", model, "--data", large)
	if code == 0 || !strings.Contains(errs, `row 30001 has the label "perhaps"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
	confusion := filepath.Join(dir, "confusion.csv")
	if _, errs, code = volley(t, "evaluate", model, "--data", small, "--confusion", confusion); code != 0 {
		t.Fatal(errs)
	}
	raw, err := os.ReadFile(confusion)
	if want := "label,said no,said yes\nno,390,0\nyes,0,110\n"; err != nil || string(raw) != want {
		t.Errorf("%q, %v; want %q", raw, err, want)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRowsWithoutWeights are left out by --missing drop, and counted; a model that was trained with weights predicts
// and is measured without.
func TestRowsWithoutWeights(t *testing.T) {
	dir := t.TempDir()
	weighted, plain := filepath.Join(dir, "weighted.csv"), filepath.Join(dir, "plain.csv")
	var with, without []byte
	for i := range 300 {
		w := fmt.Sprint(1 + i%3)
		if i%50 == 7 {
			w = []string{"", "NA"}[i/50%2]
		}
		with = fmt.Appendf(with, "%d,%d,%s\n", i%2, i%7-3+i%2, w)
		without = fmt.Appendf(without, "%d,%d\n", i%2, i%7-3+i%2)
	}
	writeFile(t, weighted, with)
	writeFile(t, plain, without)
	for _, header := range []bool{true, false} {
		model := filepath.Join(dir, fmt.Sprint("model", header))
		train := []string{"--label", "0", "--weight-column", "2"}
		if header {
			writeFile(t, weighted, append([]byte("y,x,w\n"), with...))
			writeFile(t, plain, append([]byte("y,x\n"), without...))
			train = []string{"--label", "y", "--weight-column", "w"}
		} else {
			writeFile(t, weighted, with)
			writeFile(t, plain, without)
		}
		flags := append(train, "--data", weighted, "--missing", "drop", "--out", model, "--json",
			"--data-dir", dir+"/cache")
		out, errs, code := volley(t, append([]string{"run", "logistic"}, flags...)...)
		var r struct {
			Rows    int64
			Missing int64 `json:"missing_rows"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Rows != 294 || r.Missing != 6 {
			t.Fatalf("%+v, %v, exit %d: %s", r, err, code, errs)
		}
		for _, data := range []string{weighted, plain} {
			out, errs, code = volley(t, "predict", model, "--data", data, "--weight-column", "none", "--out", "-")
			if lines := strings.Count(out, "\n"); (lines != 301 || code != 0) && (header || data == plain) {
				t.Errorf("%d lines, exit %d: %s", lines, code, errs)
			}
		}
		if _, errs, code = volley(t, "evaluate", model, "--data", plain, "--weight-column", "none"); code != 0 {
			t.Error(errs)
		}
	}
}

// TestCalibration: a support vector machine has no probabilities, and has them once it is calibrated, in a table that
// says how often they are right.
func TestCalibration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, calibrated, data := filepath.Join(dir, "m"), filepath.Join(dir, "c"), generated(t)
	if _, errs, code := volley(t, "run", "svm", "--data", data, "--out", model); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := volley(t, "predict", model, "--data", data, "--probabilities", "--out", "-"); code == 0 ||
		!strings.Contains(errs, "volley calibrate") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, method := range []string{"sigmoid", "isotonic"} {
		_, errs, code := volley(t, "calibrate", model, "--data", data, "--method", method, "--out", calibrated,
			"--overwrite")
		if code != 0 || !strings.Contains(errs, "calibrated") {
			t.Fatal(errs)
		}
		out, errs, code := volley(t, "predict", calibrated, "--data", data, "--probabilities", "--out", "-")
		if code != 0 || !strings.HasPrefix(out, "label,probability") {
			t.Fatalf("exit %d: %s %.100s", code, errs, out)
		}
		out, errs, code = volley(t, "evaluate", calibrated, "--data", data, "--json", "--reliability",
			filepath.Join(dir, "table.csv"))
		var metrics map[string]float64
		if err := json.Unmarshal([]byte(out), &metrics); err != nil || code != 0 || !(metrics["brier"] < 0.25) ||
			!(metrics["calibration_error"] < 0.1) || !(metrics["log_loss"] < 0.69) {
			t.Errorf("%s: exit %d, %v: %s %s", method, code, err, out, errs)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, "table.csv")); err != nil ||
			!strings.HasPrefix(string(raw), "from,to,said,is,weight\n") {
			t.Errorf("%q, %v", raw, err)
		}
	}
}
