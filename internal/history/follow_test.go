package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
	"github.com/volley-engine/volley/internal/audit/logtest"
)

// TestLogsOfEveryVersionOpen: what they have is drawn, and of those that are not verified it is said.
func TestLogsOfEveryVersionOpen(t *testing.T) {
	t.Parallel()
	for version := 1; version < driver.LogVersion; version++ {
		run, err := Read(fmt.Sprintf("testdata/version%d.log", version), "old")
		if err != nil {
			t.Fatal(err)
		}
		words, steps, figures := strings.Join(run.Words(), " "), "4 steps, one an iteration", 6
		if version > 2 { // whose default solver made whole passes, which logs of then do not call steps
			steps, figures = "", 1
		}
		for _, want := range []string{"logistic under --sync absp", "40 rows in 4 splits", steps, "after iteration 4",
			"limit of iterations"} {
			if !strings.Contains(words, want) {
				t.Errorf("version %d: %q is not in %s", version, want, words)
			}
		}
		if said := fmt.Sprintf("of version %d", version); strings.Contains(words, said) == audit.Verifies(version) {
			t.Errorf("version %d: it is to be said where decisions are not verified: %s", version, words)
		}
		if page := page([]Run{run}); strings.Count(page, "<figure>") < figures || strings.Contains(page, "NaN") {
			t.Errorf("version %d has %d figures", version, strings.Count(page, "<figure>"))
		}
	}
}

// TestTornLinesWait: however a log is cut into parts, what is put together is the same, and a line that makes no sense
// ends it.
func TestTornLinesWait(t *testing.T) {
	t.Parallel()
	path := "testdata/version5.log"
	want, err := Read(path, "run")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7, 1000, len(raw)} {
		f := Follow(path, "run")
		for from := 0; from < len(raw); from += size {
			if _, err := f.Write(raw[from:min(from+size, len(raw))]); err != nil {
				t.Fatal(err)
			}
		}
		if got := page([]Run{f.Run()}); got != page([]Run{want}) {
			t.Errorf("in parts of %d bytes it is another page", size)
		}
		if _, err := f.Write([]byte("{}\n")); err == nil {
			t.Error("a line after the last one is taken")
		}
	}
}

// TestLongRunsAreBounded: what is kept of a run does not grow with its steps, extremes are, and so is the sum of all.
func TestLongRunsAreBounded(t *testing.T) {
	t.Parallel()
	const steps, splits = 50_000, 500
	run := &Run{Splits: splits}
	for k := range steps {
		run.thin()
		s := Step{Number: k + 1, Of: 1, Took: 1, Share: 1, Shares: make([]float64, splits)}
		for i := range s.Shares {
			s.Shares[i] = 1
		}
		p := Point{Iteration: k + 1, Objective: 1}
		if k == 31_337 {
			s.Cuts, s.Shares[7], p.Objective = 1, 0.25, 9
		}
		run.Steps, run.Points = append(run.Steps, s), append(run.Points, p)
	}
	if len(run.Steps) > mostSteps || len(run.Steps)*splits > 2*mostShares || len(run.Points) > mostPoints {
		t.Errorf("%d steps and %d points are kept", len(run.Steps), len(run.Points))
	}
	least, most, took := 1.0, 0.0, 0
	for _, s := range run.Steps {
		least, took = min(least, s.Shares[7]), took+int(s.Took)
	}
	for _, p := range run.Points {
		most = max(most, p.Objective)
	}
	n, cut, _ := run.counted()
	if n != steps || cut != 1 || took != steps || least != 0.25 || most != 9 ||
		run.Points[len(run.Points)-1].Iteration != steps {
		t.Errorf("%d steps, %d cut, in %d, share %v, objective %v", n, cut, took, least, most)
	}
}

// TestWhatWasShownDoesNotChange: a run that was taken from one that is followed stays as it was.
func TestWhatWasShownDoesNotChange(t *testing.T) {
	t.Parallel()
	run := &Run{Splits: 1}
	for k := range mostSteps {
		run.Steps = append(run.Steps, Step{Number: k + 1, Of: 1, Shares: []float64{float64(1 - k%2)}})
	}
	f := &Following{run: *run}
	before := f.Run()
	f.run.thin()
	is, was := f.run.Steps[0].Shares[0], before.Steps[0].Shares[0]
	if len(f.run.Steps) != mostSteps/2 || was != 1 || is != 0 {
		t.Errorf("%d steps, the first was %v and is %v", len(f.run.Steps), was, is)
	}
}

// TestArgumentsOfAnyForm: those of a program of one's own say nothing of limits, and all else is drawn as it is.
func TestArgumentsOfAnyForm(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]any{"a list": []any{1, "x"}, "a word": "x", "others": map[string]any{
		"MaxIterations": "many"}, "none": map[string]any{}} {
		lines := logtest.Runs["absp"](t).Written()
		lines[0] = logtest.Changed(t, lines[0], "args", args)
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, bytes.Join(logtest.Seal(lines), nil), 0o600); err != nil {
			t.Fatal(err)
		}
		run, err := Read(path, "run")
		if err != nil || len(run.Steps) != 3 || len(run.Steps[1].Shares) != 6 || run.Steps[1].Shares[1] != 0.6 ||
			run.Most != 0 {
			t.Errorf("%s: %+v, %v", name, run.Steps, err)
		}
	}
}

// TestPlacesThatAreOfOthers: rows by executor are of those of then, and forgotten where these come in another order.
func TestPlacesThatAreOfOthers(t *testing.T) {
	t.Parallel()
	f := Follow("log", "run")
	f.saw(audit.Told{Executors: []string{"a", "b"}})
	f.run.Steps = []Step{{Of: 1, Owns: []int64{1, 2}}}
	if f.saw(audit.Told{Executors: []string{"a", "b", "c"}}); f.run.Steps[0].Owns == nil {
		t.Error("one more executor has made them others")
	}
	if f.saw(audit.Told{Executors: []string{"b", "a"}}); f.run.Steps[0].Owns != nil {
		t.Error("the rows of a are said to be b's")
	}
	run := Run{Splits: 1, Executors: []string{"a"}, Speeds: []Known{1}, Last: &Step{Executors: make([]Work, 3)},
		Steps: []Step{{Of: 1}}}
	if figures := run.Figures(); len(figures) < 6 { // it has come to more executors than the last line says
		t.Errorf("%d figures", len(figures))
	}
}
