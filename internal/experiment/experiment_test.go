package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pretend is a program that stands for volley: it prints what a script says, and notes that it was run.
func pretend(t *testing.T, script string) (r *Runner, runs func() []string) {
	t.Helper()
	dir := t.TempDir()
	program, noted := filepath.Join(dir, "volley"), filepath.Join(dir, "noted")
	text := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s\n%s\n", noted, script)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	r = &Runner{Program: program, Dir: filepath.Join(dir, "lab"), Parallel: 2, Limit: time.Minute}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, func() []string {
		raw, _ := os.ReadFile(noted)
		return strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
}

const prints = `case "$*" in *broken*) echo no >&2; exit 1;; esac
echo '{"objective":0.5,"train_seconds":2,"iterations":3,"stopped_by":"target","rows":100}'`

// TestRunsAreMadeOnce: results are kept, those of failures are not, and a torn line is one run less.
func TestRunsAreMadeOnce(t *testing.T) {
	r, runs := pretend(t, prints)
	all := []Run{{"run", "a"}, {"run", "b"}, {"run", "a"}, {"run", "broken"}}
	if err := r.Do(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	if got := r.Result(all[0]); got == nil || got.Objective != 0.5 || got.Seconds != 2 || !got.Reached(0.5) ||
		got.Reached(0.4) {
		t.Errorf("%+v", got)
	}
	if got := r.Result(all[3]); got == nil || !strings.Contains(got.Failed, "no") || got.Reached(9) {
		t.Errorf("%+v", got)
	}
	if got := runs(); len(got) != 3 {
		t.Errorf("%q", got)
	}
	r.Close()
	path := filepath.Join(r.Dir, "runs.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(raw), "\n"), func(l string) bool {
		return strings.Contains(l, "run b")
	})
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")+`{"version":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	if got := runs(); len(got) != 5 || strings.HasPrefix(got[3], "run a ") || strings.HasPrefix(got[4], "run a ") {
		t.Errorf("%q", got)
	}
}

// TestAnExperimentThatIsInterrupted says how to go on; a run that does not end is given up.
func TestAnExperimentThatIsInterrupted(t *testing.T) {
	r, _ := pretend(t, "exec sleep 30")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.Do(ctx, []Run{{"run", "a"}}); err == nil || !strings.Contains(err.Error(), "the same command goes on") {
		t.Error(err)
	}
	r.Limit = 50 * time.Millisecond
	if err := r.Do(context.Background(), []Run{{"run", "b"}}); err != nil {
		t.Fatal(err)
	}
	if got := r.Result(Run{"run", "b"}); !strings.Contains(got.Failed, "not over after") {
		t.Errorf("%+v", got)
	}
}

// TestACellIsOfItsRuns: the best of the exact ones that arrive, medians, and Ideal by the best's steps.
func TestACellIsOfItsRuns(t *testing.T) {
	r, _ := pretend(t, prints)
	j := Job{Name: "job", Verb: "job", Data: Data{"law", nil, "csv"}, Exact: []string{"fast", "slow", "never"},
		Convex: true}
	l := Law{"law", []string{"static:1,3", "static:1,1", "static:1,2"}, nil, 4}
	g := Gain{Jobs: []Job{j}, Laws: []Law{l}, Within: []float64{0.001}}
	put := func(pace string, method []string, seconds, objective float64) {
		run := g.to(r, &j, &l, draw{pace: pace}, method, 0.5, 0.001)
		r.known[run.String()] = &Result{Run: run.String(), Objective: objective, Seconds: seconds,
			Passes: Passes{4 * 40000}}
	}
	for k, pace := range l.Paces {
		for _, m := range j.methods() {
			at := map[string]float64{"fast": 1, "slow": 5, "never": 0.1}[m[3]] + float64(k)
			objective := 0.5
			if m[3] == "never" && k == 2 {
				objective = 0.6
			}
			if m[1] == "bsp" {
				at += 0.5
			}
			put(pace, m, at, objective)
		}
		put(pace, auto, 0.5+float64(k), 0.5009)
		put(pace, j.paper(), 9, 0.7)
	}
	c := g.cell(r, &j, &l, map[string]float64{j.drawn(&l, draw{}): 0.5}, 0.001)
	if c.Best != "steal fast" || c.Exact != (Spread{2, 1, 3}) || c.Auto != (Spread{1.5, 0.5, 2.5}) ||
		!math.IsNaN(c.Paper.Median) || math.Abs(c.Ideal.Median-4*40000.0/30000) > 1e-6 {
		t.Errorf("%+v", c)
	}
	report := GainReport([]Cell{c})
	if row := report.Rows[0]; row[3] != "steal fast" || row[4] != "2 [1, 3]" || row[5] != "–" || row[8] != "0.75" {
		t.Errorf("%q", row)
	}
	dir := t.TempDir()
	if err := report.Write(dir, "gain"); err != nil {
		t.Fatal(err)
	}
	for ending, want := range map[string]string{"html": "does not arrive", "md": "| job | law | 0.001 | steal fast |",
		"csv":  "job,law,within",
		"json": `"paper": null`} {
		raw, err := os.ReadFile(filepath.Join(dir, "gain."+ending))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %v\n%s", ending, err, raw)
		}
		if ending == "json" && !json.Valid(raw) {
			t.Errorf("%s", raw)
		}
	}
}

// TestSeedsOfWhereAJobBegins: as many runs as there are, the law's seeds in turn; most of them have to arrive.
func TestSeedsOfWhereAJobBegins(t *testing.T) {
	j, l := Job{Name: "job", Seeds: 3}, Law{Paces: []string{"a", "b"}}
	if got := j.draws(&l); !slices.Equal(got, []draw{{"a", 1}, {"b", 2}, {"a", 3}}) {
		t.Errorf("%v", got)
	}
	no := math.NaN()
	if got := mostOf([]float64{5, no, 3}); got.Median != 5 || got.Low != 3 || !math.IsNaN(got.High) {
		t.Errorf("%v", got)
	}
	if got := mostOf([]float64{5, no, 3, no}); !math.IsNaN(got.Median) {
		t.Errorf("%v", got)
	}
	if got := spreadOf([]float64{5, no, 3}); !math.IsNaN(got.Median) {
		t.Errorf("%v", got)
	}
}

// TestThePapersRatio is BSP's time over A-BSP's, of each seed, and batches have A-BSP's share.
func TestThePapersRatio(t *testing.T) {
	r, _ := pretend(t, prints)
	p := NewPaper(4, 1, Size{Rows: 1000, Features: 5})
	if len(p.Jobs) != len(papers) {
		t.Fatalf("%d jobs of %d", len(p.Jobs), len(papers))
	}
	j := &p.Jobs[0]
	pace := p.Law.Paces[0]
	for name, seconds := range map[string]float64{"BSP": 10, "A-BSP w/o DP": 7, "A-BSP": 4, "ours": 1} {
		run := p.to(r, j, pace, name, 0.5).String()
		r.known[run] = &Result{Run: run, Objective: 0.5, Seconds: seconds, Iterations: 20,
			Passes: Passes{20 * 1000}, Share: 0.634}
	}
	batches := p.to(r, j, pace, "batches", 0.5).String()
	if !strings.Contains(batches, "--batch-fraction 0.63") {
		t.Error(batches)
	}
	r.known[batches] = &Result{Run: batches, Objective: 0.6}
	row := p.row(r, j, 0.5)
	if row.Measured != 2.5 || row.Times["A-BSP"].Median != 4 || !math.IsNaN(row.Times["batches"].Median) ||
		math.Abs(row.Published-630.0/347) > 1e-12 || !(row.Times["Ideal"].Median > 0) {
		t.Errorf("%+v", row)
	}
	if text := PaperReport(4, []PaperRow{row}).Rows[0]; text[2] != "2.5" || text[5] != "4 / 20" || text[6] != "–" {
		t.Errorf("%q", text)
	}
}

// TestChoosing: the fastest of those that are near the least objective comes first.
func TestChoosing(t *testing.T) {
	r, runs := pretend(t, `case "$*" in
*absp*) echo '{"objective":0.9,"train_seconds":0.1}';;
*lbfgs*) echo '{"objective":0.5,"train_seconds":1,"solver":"lbfgs"}';;
*newton*) exit 1;;
*) echo '{"objective":0.5001,"train_seconds":3,"solver":"newton"}';;
esac`)
	report, err := Choose(context.Background(), r, []string{"logistic", "--data", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.About[0], "--sync steal --solver lbfgs") || len(report.Rows) != len(runs()) {
		t.Errorf("%q, %d rows of %d runs", report.About, len(report.Rows), len(runs()))
	}
	for _, row := range report.Rows {
		if row[0] == "absp" && !strings.Contains(row[6], "above the least") {
			t.Errorf("%q", row)
		}
	}
	if _, err := Choose(context.Background(), r, []string{"logistic", "--sync=bsp"}); err == nil {
		t.Error("--sync is taken")
	}
}

// TestTracesAreTimesOfTheMean: an executor that was not measured keeps its speed.
func TestTracesAreTimesOfTheMean(t *testing.T) {
	got, err := Trace([]Measured{{0, time.Second, 100}, {1, time.Second, 300}, {0, 2 * time.Second, 0},
		{1, 2 * time.Second, 200}})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(got); text != "[{0 0s 0.5} {1 0s 1.5} {1 1s 1}]" {
		t.Error(text)
	}
	if _, err := Trace(nil); err == nil {
		t.Error("a trace of nothing")
	}
}
