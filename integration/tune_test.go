package integration

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tuning is what tune prints.
type tuning struct {
	Metric string
	Best   int
	Points []struct {
		Values    map[string]string
		Mean, Std float64
		Folds     []float64
		Failed    string
	}
	Result result
}

func tune(t *testing.T, args ...string) (out tuning) {
	t.Helper()
	text, errs, code := volley(t, append([]string{"tune"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return out
}

// TestTuneKeepsTheBest: its figures are those of runs without a fold, and the model
// that of a run at the best point.
func TestTuneKeepsTheBest(t *testing.T) {
	data, dir := generated(t), t.TempDir()
	model, alone, table := filepath.Join(dir, "model"), filepath.Join(dir, "alone"), filepath.Join(dir, "table.csv")
	got := tune(t, "logistic", "--data", data, "--grid", "reg=1e-3,10", "--grid", "alpha=0,1", "--folds", "3",
		"--sync", "bsp", "--out",
		model, "--table", table, "--json")
	if len(got.Points) != 4 || got.Metric != "auc" || got.Points[got.Best].Values["reg"] != "1e-3" {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Points {
		var mean float64
		for k, v := range p.Folds {
			mean += v / 3
			one := runJob(t, "logistic", "--data", data, "--reg", p.Values["reg"], "--alpha", p.Values["alpha"],
				"--sync", "bsp", "--fold", []string{"1/3", "2/3", "3/3"}[k])
			if one.Metrics["auc"] != v {
				t.Errorf("%v, fold %d: %v, a run alone has %v", p.Values, k+1, v, one.Metrics["auc"])
			}
		}
		if math.Abs(mean-p.Mean) > 1e-12 {
			t.Errorf("mean %v of %v", p.Mean, p.Folds)
		}
	}
	best := got.Points[got.Best].Values
	runJob(t, "logistic", "--data", data, "--reg", best["reg"], "--alpha", best["alpha"], "--sync", "bsp", "--out",
		alone)
	if modelBytes(t, alone) != modelBytes(t, model) {
		t.Error("the model kept is not that of the best point")
	}
	raw, err := os.ReadFile(table)
	if lines := strings.Split(strings.TrimSpace(string(raw)), "\n"); err != nil || len(lines) != 5 ||
		lines[0] != "reg,alpha,auc,std,fold_1,fold_2,fold_3,failed" {
		t.Errorf("table %q, %v", raw, err)
	}
}

// TestTuneOnACluster gives the figures of one process.
func TestTuneOnACluster(t *testing.T) {
	t.Parallel()
	data, model := generated(t), filepath.Join(t.TempDir(), "model")
	c := newCluster(t, "e1", "e2")
	args := []string{"kmeans", "--data", data, "--grid", "k=2,5", "--folds", "2", "--json", "--max-iterations", "10"}
	here, there := tune(t, args...), tune(t, append(args, "--driver", c.Addr, "--out", model)...)
	for i := range here.Points {
		if here.Points[i].Mean != there.Points[i].Mean {
			t.Errorf("%v: %v here, %v there", here.Points[i].Values, here.Points[i].Mean, there.Points[i].Mean)
		}
	}
	modelBytes(t, model)
}

// TestTuneSurvivesPoorFolds: what has no metric is never the best, and its input is not
// written over.
func TestTuneSurvivesPoorFolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "few.csv")
	if err := os.WriteFile(path, []byte("y,x\n1,2\n2,3.5\n3,5\n4,8\n5,9\n6,12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := volley(t, "tune", "ridge", "--data", path, "--grid", "reg=10,1,0.01", "--folds", "10",
		"--json"); code != 1 || !strings.Contains(errs, "fewer folds") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, code := volley(t, "tune", "ridge", "--data", path, "--grid", "reg=10,1", "--folds", "2", "--table",
		path); code != 2 || !strings.Contains(errs, "inputs") {
		t.Errorf("exit %d: %s", code, errs)
	}
	got := tune(t, "mlp", "--data", generated(t), "--grid", "layers=4,3;5", "--folds", "2", "--max-iterations", "5",
		"--json")
	if len(got.Points) != 2 || got.Points[0].Values["layers"] != "4,3" {
		t.Errorf("%+v", got.Points)
	}
}

// TestTuneRunsShareACache from an empty one: no run is disturbed by another's.
func TestTuneRunsShareACache(t *testing.T) {
	got := tune(t, "logistic", "--data", generated(t), "--grid", "reg=1e-4,1e-3,1e-2", "--folds", "8", "--data-dir",
		t.TempDir(), "--parallel", "6", "--json")
	for _, p := range got.Points {
		if p.Failed != "" {
			t.Errorf("%v: %s", p.Values, p.Failed)
		}
	}
}

// TestBadGrids are refused before data is read.
func TestBadGrids(t *testing.T) {
	for says, args := range map[string][]string{
		"foo":      {"--grid", "foo=1,2"},
		"or more":  {"--grid", "reg=1,-1"},
		`"a"`:      {"--grid", "reg=1,a"},
		"missing":  nil,
		"[2, 1000": {"--grid", "reg=1", "--folds", "1"},
		"data":     {"--grid", "data=a,b"},
		"owlqn":    {"--grid", "alpha=0,1", "--reg", "1", "--solver", "lbfgs"},
		"2/5":      {"--grid", "reg=1", "--fold", "6/5"},
		"nope":     {"--grid", "reg=1", "--metric", "nope"},
		"twice":    {"--grid", "reg=1", "--grid", "reg=2"},
		"event":    {"--grid", "reg=1", "--event-log", "x"},
	} {
		_, errs, code := volley(t, append([]string{"tune", "logistic", "--data", "/nowhere"}, args...)...)
		if code != 2 || !strings.Contains(errs, says) && says != "2/5" {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}
