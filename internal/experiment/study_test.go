package experiment

import (
	"github.com/volley-engine/volley/internal/history"

	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// drawn stands for reading a log: steps of a second, of which executors fold 0.9 s, that lower the objective by 0.1.
func drawn(log, name string) (history.Run, error) {
	c := history.Run{Name: name, Splits: 2}
	for k := range 3 {
		s := history.Step{Number: k + 1, Of: 1, Began: time.Duration(k) * time.Second,
			Ended: time.Duration(k+1) * time.Second, Took: time.Second, Longest: time.Second,
			Iteration: k + 1, Shares: []float64{1, 0.5},
			Executors: []history.Work{{Busy: 900 * time.Millisecond}, {Busy: time.Millisecond}}}
		c.Steps, c.Last = append(c.Steps, s), &s
		c.Points = append(c.Points, history.Point{Iteration: k + 1, Objective: 1 - 0.1*float64(k)})
	}
	_, err := os.Stat(log)
	return c, err
}

const logs = `for a in "$@"; do case "$last" in --event-log) echo > "$a";; --out) echo > "$a";; esac; last="$a"; done
` + prints

// TestAStudy makes each run once, with its log, to the objective that BSP has come to, and tells how its steps went.
func TestAStudy(t *testing.T) {
	r, runs := pretend(t, logs)
	r.Draw = drawn
	s := Studies(Size{1000, 4})["paper-fig15"]
	for range 2 {
		report, err := s.Run(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Rows) != 3 || len(report.Groups) != 1 || len(report.Groups[0].Courses) != 3 {
			t.Fatalf("%+v", report)
		}
		row := report.All.([]StudyRow)[1]
		if row.Steps != 3 || row.Seconds != 2 || math.Abs(float64(row.Fall)-0.1) > 1e-12 ||
			math.Abs(float64(row.Network)-0.1) > 1e-12 {
			t.Errorf("%+v", row)
		}
	}
	made := runs()
	if len(made) != 5 { // with that of the data, and one for the target
		t.Errorf("%d: %q", len(made), made)
	}
	if last := made[len(made)-1]; !strings.Contains(last, "--target 0.5004999") || !strings.Contains(last,
		"--event-log") {
		t.Errorf("%s", last)
	}
}

// TestStudiesAreWhole: each has cases that can be run, and what the paper says of methods that it has.
func TestStudiesAreWhole(t *testing.T) {
	for name, s := range Studies(Size{1000, 4}) {
		if len(s.Cases) == 0 || s.Title == "" || len(s.About) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		for _, c := range s.Cases {
			if c.Job.Verb == "" || len(c.Law.Paces) == 0 || c.Steps == 0 || c.Ways[0] != "BSP" {
				t.Errorf("%s: %+v", name, c)
			}
			for way := range c.Their {
				if way != "BSP" && way != "A-BSP" {
					t.Errorf("%s has %s", name, way)
				}
			}
		}
	}
}

// TestAJobOfOnesOwn takes its options in any order, is timed, and refuses what the experiment sets.
func TestAJobOfOnesOwn(t *testing.T) {
	r, runs := pretend(t, `echo '{"objective":0.5,"train_seconds":2,"passes":{"training_rows":5000}}'`)
	for _, args := range [][]string{{"logistic", "--data", "x.csv", "--reg", "0.1"}, {"--data=x.csv", "--reg", "0.1",
		"logistic"}} {
		j, err := Own(context.Background(), r, args)
		if err != nil {
			t.Fatal(err)
		}
		if j.Verb != "logistic" || !strings.HasSuffix(j.Path, "/x.csv") || len(j.Exact) != 3 || !j.Convex ||
			j.Rate != 2501 || strings.Join(j.Flags, " ") != "--reg 0.1" {
			t.Errorf("%q: %+v", args, j)
		}
	}
	if j, err := Own(context.Background(), r, []string{"ridge", "--data", "/a.csv,/b.csv", "--data",
		"s3://c/d.csv"}); err != nil || j.Path != "/a.csv,/b.csv,s3://c/d.csv" {
		t.Errorf("%+v, %v", j, err)
	}
	if n := len(runs()); n != 2 {
		t.Errorf("timed by %d runs", n)
	}
	if j, err := Own(context.Background(), r, []string{"kmeans", "--data", "x.csv", "--k", "3"}); err != nil ||
		j.Convex ||
		len(j.Exact) > 0 {
		t.Errorf("%+v, %v", j, err)
	}
	for _, args := range [][]string{{"logistic"}, {"--data", "x.csv"}, {"logistic", "--data", "x.csv", "--sync", "bsp"},
		{"logistic", "--data", "x.csv", "--pace=physical"}, {"logistic", "--data", "x.csv", "--resume"}} {
		if _, err := Own(context.Background(), r, args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
