package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportsOfRuns: a page of a run with one slow executor says which it is, what waiting would have cost, and whether
// the model is done; workers on tables have one, too; a log that was changed has none, and other names are refused.
func TestReportsOfRuns(t *testing.T) {
	dir := t.TempDir()
	points, log, workers := labelled(t, 20_000), filepath.Join(dir, "run.log"), filepath.Join(dir, "workers.log")
	pace := []string{"--clock", "virtual", "--pace", "static:1,1,1,0.25", "--pace-rate", "10000", "--data-dir", dir}
	for path, flags := range map[string][]string{log: {"--sync", "absp", "--solver", "nesterov"},
		workers: {"--sync", "ssp"}} {
		job := append([]string{"run", "logistic", "--data", points, "--max-iterations", "20", "--event-log", path},
			flags...)
		if _, errs, code := volley(t, append(job, pace...)...); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	page := filepath.Join(dir, "run.html")
	if _, errs, code := volley(t, "report", log, workers, "--out", page); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"How 2 runs went", "Executor executor-3 is slow: it processes", "4.0 times as many",
		"Had each waited for every row, as under bsp", "The objective is", "workers.log", "under --sync ssp(1)",
		"How far workers on tables are from each other", "<svg", "table (CSV)</a>"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, not := range []string{"http:", "https:", "<script", "NaN"} {
		if strings.Contains(string(raw), not) {
			t.Errorf("the page has %q", not)
		}
	}
	for name, begins := range map[string]string{"run.csv": "run,iteration,step,began_s,ended_s,objective,share,cut,",
		"run.json": "[\n {\n  \"name\""} {
		path := filepath.Join(dir, name)
		_, errs, code := volley(t, "report", log, "--out", path)
		raw, err := os.ReadFile(path)
		if code != 0 || err != nil || !bytes.HasPrefix(raw, []byte(begins)) {
			t.Errorf("exit %d, %v: %s\n%.80s", code, err, errs, raw)
		}
	}
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(dir, "begun.log")
	if err := os.WriteFile(begun, whole[:len(whole)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := volley(t, "report", begun, "--out", page)
	if raw, err := os.ReadFile(page); code != 0 || err != nil || !strings.Contains(string(raw), "its log has no end") {
		t.Errorf("of a run that goes on: exit %d, %v: %s", code, err, errs)
	}
	changed := filepath.Join(dir, "changed.log")
	other := bytes.Replace(whole, []byte(`"cut":true`), []byte(`"cut":false`), 1)
	if err := os.WriteFile(changed, other, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{"see volley verify": {changed},
		"ends in none of": {log, "--out", "x.png"}, "no such file": {filepath.Join(dir, "none")}} {
		_, errs, code := volley(t, append([]string{"report", "--out", page}, args...)...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %s, want %q", code, errs, want)
		}
	}
}
