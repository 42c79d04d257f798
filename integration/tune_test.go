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
	got := tune(t, "logistic", "--data", data, "--grid", "reg=1e-3,10", "--grid", "alpha=0,1", "--folds", "3", "--out", model, "--table", table, "--json")
	if len(got.Points) != 4 || got.Metric != "auc" || got.Points[got.Best].Values["reg"] != "1e-3" {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Points {
		var mean float64
		for k, v := range p.Folds {
			mean += v / 3
			one := runJob(t, "logistic", "--data", data, "--reg", p.Values["reg"], "--alpha", p.Values["alpha"], "--fold", []string{"1/3", "2/3", "3/3"}[k])
			if one.Metrics["auc"] != v {
				t.Errorf("%v, fold %d: %v, a run alone has %v", p.Values, k+1, v, one.Metrics["auc"])
			}
		}
		if math.Abs(mean-p.Mean) > 1e-12 {
			t.Errorf("mean %v of %v", p.Mean, p.Folds)
		}
	}
	best := got.Points[got.Best].Values
	runJob(t, "logistic", "--data", data, "--reg", best["reg"], "--alpha", best["alpha"], "--out", alone)
	if modelBytes(t, alone) != modelBytes(t, model) {
		t.Error("the model kept is not that of the best point")
	}
	raw, err := os.ReadFile(table)
	if lines := strings.Split(strings.TrimSpace(string(raw)), "\n"); err != nil || len(lines) != 5 || lines[0] != "reg,alpha,auc,std,fold_1,fold_2,fold_3,failed" {
		t.Errorf("table %q, %v", raw, err)
	}
}

// TestTuneOnACluster gives the figures of one process.
func TestTuneOnACluster(t *testing.T) {
	data, model := generated(t), filepath.Join(t.TempDir(), "model")
	c := newCluster(t, "e1", "e2")
	args := []string{"kmeans", "--data", data, "--grid", "k=2,5", "--folds", "2", "--json", "--max-iterations", "10"}
	here, there := tune(t, args...), tune(t, append(args, "--driver", c.addr, "--out", model)...)
	for i := range here.Points {
		if here.Points[i].Mean != there.Points[i].Mean {
			t.Errorf("%v: %v here, %v there", here.Points[i].Values, here.Points[i].Mean, there.Points[i].Mean)
		}
	}
	modelBytes(t, model)
}

// TestBadGrids are refused before data is read.
func TestBadGrids(t *testing.T) {
	for says, args := range map[string][]string{
		"foo":      {"--grid", "foo=1,2"},
		"not in":   {"--grid", "reg=1,-1"},
		`"a"`:      {"--grid", "reg=1,a"},
		"missing":  nil,
		"[2, 1000": {"--grid", "reg=1", "--folds", "1"},
		"data":     {"--grid", "data=a,b"},
		"owlqn":    {"--grid", "alpha=0,1", "--reg", "1", "--solver", "lbfgs"},
		"2/5":      {"--grid", "reg=1", "--fold", "6/5"},
	} {
		_, errs, code := volley(t, append([]string{"tune", "logistic", "--data", "/nowhere"}, args...)...)
		if code != 2 || !strings.Contains(errs, says) && says != "2/5" {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}
