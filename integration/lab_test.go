package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheLab makes a table, goes on from what it has, and writes a report that can be read.
func TestTheLab(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lab")
	args := []string{"lab", "run", "gain", "--quick", "--rows", "2000", "--features", "4", "--jobs", "ridge,kmeans",
		"--laws",
		"physical", "--out", dir}
	out, errs, code := volley(t, args...)
	if code != 0 || !strings.Contains(out, "| ridge | physical | 0.001 | steal normal |") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	again, errs, code := volley(t, args...)
	if code != 0 || again != out || strings.Contains(errs, " runs, ") {
		t.Errorf("again: exit %d: %s%s", code, again, errs)
	}
	for _, ending := range []string{"html", "md", "csv", "json"} {
		raw, err := os.ReadFile(filepath.Join(dir, "gain."+ending))
		if err != nil || !strings.Contains(string(raw), "ridge") {
			t.Errorf("%s: %v", ending, err)
		}
		if ending == "json" && !json.Valid(raw) {
			t.Errorf("%s", raw)
		}
	}
	out, errs, code = volley(t, "lab", "run", "paper-table4", "--rows", "2000", "--features", "4", "--jobs", "ridge",
		"--out",
		dir)
	if code != 0 || !strings.Contains(out, "| ridge | 1.84 |") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestChoosingAndTracing: what wins on one's own data, and the speeds of a run as a law, under which it takes as long.
func TestChoosingAndTracing(t *testing.T) {
	t.Parallel()
	data, dir := generated(t), t.TempDir()
	out, errs, code := volley(t, "lab", "choose", "logistic", "--data", data, "--reg", "0.01", "--pace", "static:3,1,1",
		"--clock", "virtual")
	if code != 0 || !strings.Contains(out, "Use --sync ") || strings.Count(out, "| steal |") < 2 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	log, law := filepath.Join(dir, "log"), filepath.Join(dir, "law.csv")
	flags := []string{"--data", data, "--reg", "0.01", "--solver", "lbfgs", "--sync", "bsp", "--clock", "virtual"}
	first := run(t, append(flags, "--pace", "static:3,1,2", "--event-log", log)...)
	if _, errs, code := volley(t, "lab", "trace", log, "--out", law); code != 0 {
		t.Fatal(errs)
	}
	traced := run(t, append(flags, "--pace", "trace:"+law, "--pace-rate", "20000")...)
	if ratio := traced.TrainSeconds / first.TrainSeconds; ratio < 0.97 || ratio > 1.03 {
		t.Errorf("the run took %v s, under the law of its log %v s", first.TrainSeconds, traced.TrainSeconds)
	}
}

// TestScaling: the command's table has a line for each cluster, and it refuses what makes none.
func TestScaling(t *testing.T) {
	t.Parallel()
	out, errs, code := volley(t, "lab", "scale", "--executors", "4,20", "--sync", "bsp,steal", "--out", t.TempDir())
	if code != 0 || strings.Count(out, "| 20 | steal | tree of 8 |") != 1 || strings.Count(out, "\n") < 12 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, flags := range [][]string{{"--executors", "1"}, {"--executors", "1000000"}, {"--sync", "auto"},
		{"--result", "7"},
		{"--fan-in", "1"}, {"--executors", "3", "--pace", "static:1,1"}} {
		if _, errs, code := volley(t, append([]string{"lab", "scale", "--out", t.TempDir()}, flags...)...); code != 2 ||
			errs == "" {
			t.Errorf("%v: exit %d: %s", flags, code, errs)
		}
	}
}
