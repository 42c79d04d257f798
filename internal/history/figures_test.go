package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver"
)

// TestFiguresOfRuns: a line for each run, a cell for each split and step, a bar for each executor, all within the page.
func TestFiguresOfRuns(t *testing.T) {
	var run Run
	run.Name, run.Splits, run.Executors = `a "<log>"`, 3, []string{"fast", "slow"}
	for k := range 4 {
		at := time.Duration(k) * time.Second
		s := Step{Number: k + 1, Of: 1, Began: at, Ended: at + time.Second, Took: time.Second, Longest: time.Second,
			Iteration: k + 1, Shares: []float64{1, 0.5, 0}, Share: 0.5, Moves: k % 2, Cuts: 1, Stop: time.Second / 2,
			Cursors: []float64{0, 0.75, 0}, Missing: []int{2}, Moved: []driver.LogMove{{Split: 1}},
			Executors: []Work{{Busy: time.Second, Arrived: time.Second},
				{Busy: time.Second / 4, Arrived: time.Second / 2}}}
		run.Steps, run.Last = append(run.Steps, s), &s
		run.Points = append(run.Points, Point{Ended: s.Ended, Iteration: k + 1, Objective: 1 / float64(k+1), Step: true,
			Cut: true})
	}
	run.Points = append(run.Points, Point{Began: 4 * time.Second, Ended: 5 * time.Second, Iteration: 4, Objective: 0.2})
	run.Speeds, run.Processed = []Known{4, 1}, []float64{4, 2, 0}
	none := Run{Name: "nothing"}
	dir := t.TempDir()
	for _, ending := range []string{"html", "csv", "json"} {
		if err := Write(filepath.Join(dir, "figures."+ending), []Run{run, run, none}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "figures.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for what, want := range map[string]int{"<polyline": 2 + 1 + 2*6, "▾</text>": 2 * 3, "slow</text>": 4,
		"✕</text>": 2, "the step is cut": 4, "3 splits in 4 steps: 4 of 12 were taken as a whole, 4 not at all": 2,
		"a &#34;&lt;log&gt;&#34;</h2>": 2, "<log>": 0, "It has no training steps.": 1, "NaN": 0} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%d of %q, want %d", got, what, want)
		}
	}
	rows, err := os.ReadFile(filepath.Join(dir, "figures.csv"))
	if want := `"a ""<log>""",4,true,3.000000,4.000000,0.25,0.5,true,1`; err != nil || !strings.Contains(string(rows),
		want) {
		t.Errorf("%v in\n%s", err, rows)
	}
	if _, err := os.Stat(filepath.Join(dir, "figures.json")); err != nil {
		t.Error(err)
	}
}
