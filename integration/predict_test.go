package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tableOf returns the lines of a directory of tables as one table.
func tableOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	parts, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("%v: %v", parts, err)
	}
	for i, part := range parts {
		raw, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		head, rows, _ := strings.Cut(string(raw), "\n")
		if i == 0 {
			b.WriteString(head + "\n")
		}
		b.WriteString(rows)
	}
	return b.String()
}

// predictsAlike compares what a cluster says of data with what this machine alone says, byte for byte.
func (c *cluster) predictsAlike(model string, data ...string) {
	c.t.Helper()
	dir := c.t.TempDir()
	alone, there := filepath.Join(dir, "alone"), filepath.Join(dir, "there")
	args := append([]string{model, "--data"}, data...)
	for _, run := range [][]string{append([]string{"predict", "--out", alone}, args...),
		append([]string{"submit", "predict", "--driver", c.Addr, "--output", there}, args...)} {
		if _, errs, code := volley(c.t, run...); code != 0 {
			c.t.Fatalf("%v: exit %d: %s", run, code, errs)
		}
	}
	want, err := os.ReadFile(alone)
	if got := tableOf(c.t, there); err != nil || got != string(want) {
		c.t.Errorf("%v: %.200q there, %.200q here, %v", args, got, want, err)
	}
}

// TestEveryModelPredictsOnACluster: labels, scores and probabilities are those of one machine.
func TestEveryModelPredictsOnACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	c := newCluster(t, "e1", "e2", "e3")
	for job, flags := range jobsData(t) {
		model := filepath.Join(t.TempDir(), "model")
		runJob(t, job, append(flags, "--out", model)...)
		c.predictsAlike(model, flags[1])
		if job == "logistic" || job == "softmax" || job == "mlp" {
			c.predictsAlike(model, flags[1], "--probabilities")
		}
	}
}

// TestPreparedTablesArePredictedOnACluster: columns of words and numbers, some missing, in several files and formats;
// the model says how they become features, wherever they are read.
func TestPreparedTablesArePredictedOnACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	dir := t.TempDir()
	var train, many []string
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 9 {
		path := filepath.Join(dir, fmt.Sprintf("t%d.csv", i))
		var b strings.Builder
		b.WriteString("city,size,note,label\n")
		for range 200 {
			size := strconv.Itoa(r.IntN(100))
			if r.IntN(10) == 0 {
				size = ""
			}
			label := []string{"no", "yes"}[r.IntN(2)]
			fmt.Fprintf(&b, "\"c,%d\",%s,some words %d,%s\n", r.IntN(5), size, r.IntN(9), label)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if many = append(many, path); i == 0 {
			train = many
		}
	}
	model := filepath.Join(dir, "model")
	runJob(t, "logistic", "--data", train[0], "--onehot", "city", "--text", "note", "--buckets", "16",
		"--missing", "mean", "--scale", "standard", "--reg", "0.01", "--max-iterations", "9", "--out", model)
	c := newCluster(t, "e1", "e2")
	c.predictsAlike(model, strings.Join(many, ","))
	c.predictsAlike(model, strings.Join(many, ","), "--threshold", "0.3")
	empty, full := filepath.Join(dir, "empty.csv"), filepath.Join(dir, "full")
	if err := os.WriteFile(empty, []byte("city,size,note,label\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.predictsAlike(model, empty, "--header", "true")
	c.predictsAlike(model, many[3]+","+empty+","+many[4], "--header", "true", "--probabilities")
	runJob(t, "predict", model, "--data", many[0], "--output", "file://"+full, "--compress", "gzip")

	log := filepath.Join(dir, "log")
	runJob(t, "predict", model, "--data", many[0], "--output", filepath.Join(dir, "logged"), "--event-log", log)
	if out, errs, code := volley(t, "verify", log); code != 0 || !strings.Contains(out, "all hold") {
		t.Errorf("the log of predictions: exit %d: %s%s", code, out, errs)
	}

	out := filepath.Join(dir, "o")
	for mistake, args := range map[string][]string{
		"it is missing":                          {model},
		"no such file":                           {filepath.Join(dir, "none"), "--output", out},
		"7 is not a probability":                 {model, "--output", out, "--threshold", "7"},
		"is not one of none gzip zstd":           {model, "--output", out, "--compress", "lz"},
		"it exists and is not empty":             {model, "--output", full},
		"it means nothing on a cluster":          {model, "--output", out, "--executors", "2"},
		"is read as data":                        {model, "--output", dir, "--overwrite"},
		"is one of the inputs":                   {model, "--output", out, "--event-log", many[0]},
		"it is of training":                      {model, "--output", out, "--resume"},
		"NaN is not a number":                    {model, "--output", out, "--threshold", "NaN"},
		"neither a path nor the name of objects": {model, "--output", "ftp://host/p"},
	} {
		submit := append([]string{"submit", "predict", "--driver", c.Addr, "--data", many[0]}, args...)
		_, errs, code := volley(t, submit...)
		if code == 0 || !strings.Contains(errs, mistake) {
			t.Errorf("%v: exit %d: %s; want %q", args, code, errs, mistake)
		}
	}
}
