package history

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/volley-engine/volley/driver"
)

// TestLogsOfEveryVersionOpen: what they have is drawn, and it is said that it is not verified.
func TestLogsOfEveryVersionOpen(t *testing.T) {
	t.Parallel()
	for version := 1; version < driver.LogVersion; version++ {
		run, err := Read(fmt.Sprintf("testdata/version%d.log", version), "old")
		if err != nil {
			t.Fatal(err)
		}
		words, steps, figures := strings.Join(run.Words(), " "), "4 steps, the last", 6
		if version > 2 { // whose default solver made whole passes, which logs of then do not call steps
			steps, figures = "", 1
		}
		for _, want := range []string{"logistic under --sync absp", "40 rows in 4 splits", steps, "after iteration 4",
			fmt.Sprintf("of version %d", version), "limit of iterations"} {
			if !strings.Contains(words, want) {
				t.Errorf("version %d: %q is not in %s", version, want, words)
			}
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
