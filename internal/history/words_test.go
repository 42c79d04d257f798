package history

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver"
)

// uneven returns a run of two executors, of which one folds a quarter of the other's rows a second: each has 100 rows,
// and steps end after the fast one's, in a second.
func uneven(cut bool, stoppedBy string) *Run {
	c := &Run{Name: "run", Job: "logistic", Sync: "absp", Rows: 200, Splits: 2, Executors: []string{"fast", "slow"},
		Speeds:    []Known{200, 50},
		StoppedBy: stoppedBy}
	for k := range 3 {
		at := time.Duration(k) * 2 * time.Second
		s := Step{Number: k + 1, Of: 1, Iteration: k + 1, Began: at, Ended: at + time.Second, Took: time.Second,
			Shares: []float64{1, 0.25}, Share: 0.625, Cuts: count01(cut), Owns: []int64{100, 100},
			Executors: []Work{{Busy: time.Second / 2}, {Busy: time.Second / 2}},
			Phases:    &driver.LogPhases{Compute: int64(time.Second / 2)}}
		c.Steps, c.Last = append(c.Steps, s), &s
		c.Points = append(c.Points, Point{Ended: s.Ended, Iteration: k + 1, Objective: 1 / float64(k+1)})
	}
	return c
}

// TestWordsSayWhatIsAsked: whether the model is done, which executor is slow, and what waiting would have cost.
func TestWordsSayWhatIsAsked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		run   *Run
		wants []string
		not   string
	}{
		{uneven(true, "target"), []string{"200 rows in 2 splits on 2 executors: 3 steps, one an iteration, the " +
			"last of which ended 5 s after the job began, and of which 3 ended before",
			"62 % of all rows", "The objective is 0.3333 after iteration 3. It has reached its target (target).",
			"Executor slow is slow: it processes 50 rows a second, executor fast 4.0 times as many.",
			"The run's steps took 3 s. Had each waited",
			"they would have taken about 7.5 s, 2.5 times as long, and the " +
				"run 9.5 s in place of 5 s."}, "even"},
		{uneven(false, "max-iterations"), []string{"5 s after the job began; a step uses 62.5 % of all rows",
			"it might become better",
			"about 7.5 s, 2.5 times"}, "ended before"},
		{uneven(true, ""), []string{"goes on, or was interrupted"}, "converged"},
		{&Run{Job: "lda", Sync: "bsp", Rows: 1, Splits: 1, StoppedBy: "odd",
			Points: nil},
			[]string{"lda under --sync bsp (each step waits for every row), 1 row in 1 split.", "It was ended by odd."},
			"The objective"},
	} {
		got := strings.Join(test.run.Words(), " ")
		for _, want := range test.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
		if strings.Contains(got, test.not) {
			t.Errorf("%s\nhas %s", got, test.not)
		}
	}
}

// TestStolenStepsAreComparedToo: what is whole as others did a part of the slow one's is beside waiting for it; a step
// of a tenth of all rows is beside waiting for a tenth.
func TestStolenStepsAreComparedToo(t *testing.T) {
	t.Parallel()
	c := uneven(false, "gap")
	for i := range c.Steps {
		c.Steps[i].Batch = 0.5
	}
	if got := strings.Join(c.Words(), " "); !strings.Contains(got, "about 4.5 s, 1.5 times") {
		t.Error(got)
	}
	c.Steps[1].Cuts, c.Steps[1].Owns = 1, nil
	if got := strings.Join(c.Words(), " "); strings.Contains(got, "Had each") {
		t.Errorf("of a step it is not known: %s", got)
	}
}

// TestEvenExecutorsAreCalledSo, however many there are.
func TestEvenExecutorsAreCalledSo(t *testing.T) {
	t.Parallel()
	c := uneven(true, "gap")
	c.Speeds[1] = 180
	got := strings.Join(c.Words(), " ")
	if !strings.Contains(got, "Executors are even: the slowest, slow, processes 0.90") {
		t.Error(got)
	}
}

// TestTextFitsATerminal: words, objective, strip and executors, of any width, whatever is known.
func TestTextFitsATerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 40, 80, 200} {
		c := uneven(true, "target")
		c.Lost = []string{"slow"}
		text := c.Text(width)
		for _, want := range []string{"target", "splits      in steps 1 to 3", "         1  ░░░", "         0  ███",
			"objective   █", "✕ slow", "Executor slow was lost; others have its splits now."} {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%d columns: no %q in\n%s", width, want, text)
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if n := len([]rune(line)); n > max(leastWidth, width) && width >= 80 {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
	}
	many := &Run{Job: "x", Splits: 5000, Speeds: make([]Known, 50), Executors: make([]string, 50)}
	many.Speeds[0] = 1
	for k := range 300 {
		s := Step{Number: k + 1, Of: 1, Shares: make([]float64, 5000)}
		many.Steps = append(many.Steps, s)
	}
	if text := many.Text(80); !strings.Contains(text, "in steps 233 to 300") || !strings.Contains(text, "312–624") ||
		!strings.Contains(text, "and 38 more") || strings.Count(text, "\n") > 60 {
		t.Errorf("of a large run:\n%s", text)
	}
}

// TestWhenACourseWasNearItsEndIsSaid: by the first iteration after which one hundredth of the fall was left.
func TestWhenACourseWasNearItsEndIsSaid(t *testing.T) {
	t.Parallel()
	var run Run
	for k := range 60 {
		run.Points = append(run.Points, Point{Iteration: k + 1, Objective: 1 + math.Pow(0.5, float64(k))})
	}
	if got := run.end(); !strings.Contains(got, "by iteration 8 it had come 99 % of its way down") {
		t.Errorf("of halves: %s", got)
	}
	slices.Reverse(run.Points)
	if got := run.end(); strings.Contains(got, "fallen") {
		t.Errorf("of one that rises: %s", got)
	}
}
