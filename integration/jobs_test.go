package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/integration/reference"
	"github.com/volley-engine/volley/internal/seeds"
)

// runJob runs a bundled job and reads its result.
func runJob(t *testing.T, job string, args ...string) result {
	t.Helper()
	out, errs, code := volley(t, append([]string{"run", job, "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("volley run %s %s: exit %d\n%s", job, strings.Join(args, " "), code, errs)
	}
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return r
}

// uneven are executors of which three run at 1 and nine at 2.2, in virtual time.
var uneven = []string{"--sync", "absp", "--clock", "virtual", "--pace", "physical"}

// TestReferenceValues holds every job against a published or computed value, whole
// and cut (make bench-jobs prints the table). What takes tens of seconds is for make soak.
func TestReferenceValues(t *testing.T) {
	cases, err := reference.Cases(filepath.Dir(shared(t, "README.md")), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Long && !seeds.Soaking() {
				t.Skip("takes long")
			}
			bsp := runJob(t, c.Job, c.Flags...)
			if got := c.Of(bsp.Objective, bsp.Metrics); c.Off(got) > c.Within {
				t.Errorf("%v, want %v", got, c.Want)
			}
			if n := bsp.Metrics["nonzeros"]; c.Nonzeros > 0 && n != c.Nonzeros {
				t.Errorf("%v weights are not zero, want %v", n, c.Nonzeros)
			}
			if n := bsp.Metrics["cold_rows"]; strings.HasPrefix(c.Name, "MovieLens") && n != 32 {
				t.Errorf("%v cold rows, want 32", n)
			}
			if c.Long {
				return // the benchmark cuts it
			}
			absp := runJob(t, c.Job, slices.Concat(c.Flags, uneven, c.CutFlags)...)
			if got := c.Of(absp.Objective, absp.Metrics); c.Off(got) > c.Cut {
				t.Errorf("cut: %v, want %v", got, c.Want)
			}
			if absp.MeanShare >= 1 && slices.Contains([]string{"logistic", "mlp", "als"}, c.Job) {
				t.Error("no step was cut")
			}
		})
	}
}

// TestEverySeedFindsTheClusters of the S sets, with enough restarts.
func TestEverySeedFindsTheClusters(t *testing.T) {
	cases, err := reference.Cases(filepath.Dir(shared(t, "README.md")), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !strings.Contains(c.Name, "best of 10") {
			continue
		}
		for n := range min(4, seeds.Of(1)) {
			seed := fmt.Sprint(2 + n)
			r := runJob(t, c.Job, append(slices.Clone(c.Flags), "--restarts", "20", "--seed", seed)...)
			if c.Off(r.Objective) > c.Within {
				t.Errorf("%s, seed %s: %v, want %v", c.Name, seed, r.Objective, c.Want)
			}
		}
	}
}

// jobsData are small data for every job, with its flags.
func jobsData(t *testing.T) map[string][]string {
	points := generated(t)
	var b strings.Builder
	b.WriteString("user,item,rating\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "%d,%d,%d\n", i%271, i*i%83, 1+(i*7+i/13)%5)
	}
	ratings := filepath.Join(t.TempDir(), "ratings.csv")
	if err := os.WriteFile(ratings, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	linear := []string{"--data", points, "--reg", "0.01", "--max-iterations", "12"}
	return map[string][]string{"logistic": linear, "svm": linear, "linear": linear, "ridge": linear, "lasso": linear,
		"elasticnet": linear, "softmax": linear,
		"kmeans": {"--data", points, "--k", "4", "--max-iterations", "8", "--restarts", "2"},
		"mlp":    {"--data", points, "--layers", "6,5", "--max-iterations", "8"},
		"als":    {"--data", ratings, "--header", "true", "--rank", "4", "--max-iterations", "4"}}
}

// TestEveryJobIsVerifiedAndReplayed, whole and cut, and its model is inspected, used
// and measured.
func TestEveryJobIsVerifiedAndReplayed(t *testing.T) {
	for job, flags := range jobsData(t) {
		t.Run(job, func(t *testing.T) {
			for _, sync := range [][]string{{"--executors", "3"}, {"--executors", "3", "--sync", "steal"},
				append(uneven, "--splits", "24")} {
				log, model := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "model")
				runJob(t, job, append(flags, append(sync, "--event-log", log, "--out", model)...)...)
				for _, check := range [][]string{{"verify", log}, {"replay", log}, {"inspect", model},
					{"evaluate", model, "--data", flags[1]},
					{"predict", model, "--data", flags[1], "--out", filepath.Join(t.TempDir(), "out")}} {
					if _, errs, code := volley(t, check...); code != 0 {
						t.Errorf("%v: exit %d: %s", check, code, errs)
					}
				}
			}
		})
	}
}

// TestEveryJobOnACluster of processes gives the bytes of one on one executor.
func TestEveryJobOnACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	c := newCluster(t)
	for _, name := range []string{"e1", "e2", "e3"} {
		c.join(name)
	}
	for job, flags := range jobsData(t) {
		flags = append(flags, "--sync", "bsp")
		alone, there := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "model")
		runJob(t, job, append(flags, "--executors", "1", "--out", alone)...)
		if _, errs, code := volley(t, append([]string{"submit", job, "--driver", c.Addr, "--out", there},
			flags...)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", job, code, errs)
		}
		if modelBytes(t, alone) != modelBytes(t, there) {
			t.Errorf("%s: the cluster's model has other bytes", job)
		}
	}
}

// TestALogHasTheModelThatARunBeganWith, which may be gone.
func TestALogHasTheModelThatARunBeganWith(t *testing.T) {
	dir, data := t.TempDir(), generated(t)
	model, log := filepath.Join(dir, "model"), filepath.Join(dir, "log")
	runJob(t, "logistic", "--data", data, "--max-iterations", "3", "--out", model)
	runJob(t, "logistic", "--data", data, "--max-iterations", "3", "--init", model, "--out", model, "--overwrite",
		"--event-log", log)
	if err := os.RemoveAll(model); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := volley(t, "replay", log); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestBadJobs are refused before data is read, by name.
func TestBadJobs(t *testing.T) {
	data := generated(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"lasso", "--reg", "-1"}, "--reg"},
		{[]string{"lasso", "--solver", "normal"}, "owlqn"},
		{[]string{"svm", "--loss", "huber"}, "squared-hinge"},
		{[]string{"svm", "--solver", "cd"}, "lbfgs"},
		{[]string{"elasticnet", "--alpha", "1.5"}, "--alpha"},
		{[]string{"logistic", "--class-weights", "1"}, "--class-weights"},
		{[]string{"logistic", "--init", "/nowhere"}, "/nowhere"},
		{[]string{"kmeans"}, "--k"},
		{[]string{"kmeans", "--k", "3", "--centers", "/nowhere"}, "/nowhere"},
		{[]string{"kmeans", "--k", "3", "--distance", "far"}, "cosine"},
		{[]string{"kmeans", "--k", "7000"}, "6000 rows"},
		{[]string{"als", "--rank", "0"}, "--rank"},
		{[]string{"als", "--max-age", "0"}, "--max-age"},
		{[]string{"als", "--onehot", "a"}, "--onehot"},
		{[]string{"logistic", "--validation", "0.9"}, "--validation"},
		{[]string{"logistic", "--threshold", "1.5"}, "--threshold"},
		{[]string{"softmax", "--solver", "sdca"}, "binary classification"},
		{[]string{"logistic", "--fold", "3/2"}, "--fold"},
		{[]string{"als", "--batch-fraction", "0.5"}, "--batch-fraction"},
		{[]string{"als", "--user", "who"}, "who"},
	} {
		_, errs, code := volley(t, append([]string{"run", c.args[0], "--data", data}, c.args[1:]...)...)
		if want := map[bool]int{true: 1, false: 2}[c.says == "who"]; code != want || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
}

// TestEveryJobIsResumed from a checkpoint, by every solver, and ends with the bytes
// of a run that was not interrupted, whole or cut; the logs of both are replayed.
func TestEveryJobIsResumed(t *testing.T) {
	data := jobsData(t)
	points := []string{"--data", data["logistic"][1], "--reg", "1e-3", "--max-iterations", "11", "--tol", "0"}
	for _, c := range []struct {
		job   string
		flags []string
	}{
		{"logistic", append(points, "--solver", "lbfgs")},
		{"logistic", append(points, "--solver", "owlqn", "--alpha", "0.5")},
		{"logistic", append(points, "--solver", "adam")}, {"svm", append(points, "--solver", "newton", "--reg", "0.1")},
		{"svm", append(points, "--solver", "lbfgs", "--reg", "0.1")},
		{"lasso", append(points, "--solver", "nesterov", "--sync", "absp")},
		{"lasso", append(points, "--solver", "nesterov", "--sync", "auto")},
		{"softmax", append(points, "--solver", "nesterov", "--sync", "auto")},
		{"mlp", append(data["mlp"], "--tol", "0", "--validation", "0.2", "--patience", "50")},
		{"logistic", append(points, "--solver", "lbfgs", "--validation", "0.2", "--patience", "50")},
		{"svm", append(points, "--solver", "sdca")}, {"svm", append(points, "--solver", "sdca", "--sync", "absp")},
		{"lasso", append(points, "--solver", "sdca", "--sync", "steal")},
		{"logistic", append(points, "--solver", "svrg", "--sync", "absp")},
		{"logistic", append(points, "--solver", "svrg", "--batch-fraction", "0.2")},
		{"softmax", append(points, "--solver", "lbfgs")},
		{"softmax", append(points, "--solver", "nesterov", "--sync", "absp")},
		{"softmax", append(points, "--sync", "absp")}, {"svm", append(points, "--sync", "absp")},
		{"logistic", append(points, "--solver", "newton", "--sync", "absp")},
		{"kmeans", append(data["kmeans"], "--tol", "0")},
		{"kmeans", append(data["kmeans"], "--tol", "0", "--sync", "absp")},
		{"mlp", append(data["mlp"], "--tol", "0")},
		{"logistic", append(points, "--solver", "lbfgs", "--sync", "absp")}, {"svm", append(points, "--reg", "0.1")},
		{"kmeans", append(data["kmeans"], "--tol", "0", "--sync", "bsp")},
		{"mlp", append(data["mlp"], "--tol", "0", "--batch-fraction", "0.2")},
		{"mlp", append(data["mlp"], "--tol", "0", "--solver", "constant", "--sync", "absp")},
		{"als", append(data["als"], "--tol", "0")},
		{"als", append(data["als"], "--tol", "0", "--sync", "absp", "--max-iterations", "8")},
	} {
		t.Run(c.job+strings.Join(c.flags[6:], ""), func(t *testing.T) {
			dir := t.TempDir()
			whole, resumed, ck := filepath.Join(dir, "whole"), filepath.Join(dir, "resumed"), filepath.Join(dir, "ck")
			flags := slices.Concat(c.flags, []string{"--clock", "virtual", "--pace", "static:3,1,1", "--splits", "6",
				"--exchange", "off"})
			keep := slices.Concat(flags, []string{"--checkpoint-dir", ck, "--checkpoint-every", "3"})
			if c.job == "als" && !strings.Contains(strings.Join(c.flags, " "), "absp") {
				flags = append(flags, "--max-iterations", "1")
				keep = append(keep, "--max-iterations", "1", "--checkpoint-every", "1") // before items are known
			}
			first, second := filepath.Join(dir, "log"), filepath.Join(dir, "log of the resumed")
			keep = append(keep, "--event-log", second)
			runJob(t, c.job, slices.Concat(flags, []string{"--out", whole, "--event-log", first})...)
			runJob(t, c.job, keep...)
			kept, err := filepath.Glob(filepath.Join(ck, "checkpoint-*"))
			if err != nil || len(kept) != 2 {
				t.Fatalf("%v, %v", kept, err)
			}
			os.Remove(kept[1])
			runJob(t, c.job, slices.Concat(keep, []string{"--resume", "--out", resumed})...)
			if modelBytes(t, whole) != modelBytes(t, resumed) {
				t.Error("the resumed run has another model")
			}
			for _, log := range []string{first, second} {
				holds(t, log)
			}
		})
	}
}

// holds verifies and replays a log.
func holds(t *testing.T, log string) {
	t.Helper()
	for _, check := range []string{"verify", "replay"} {
		if _, errs, code := volley(t, check, log); code != 0 {
			t.Errorf("%s of %s: exit %d: %s", check, filepath.Base(log), code, errs)
		}
	}
}

// TestMaxTimeHoldsAcrossAResume: what a run took before it was resumed counts.
func TestMaxTimeHoldsAcrossAResume(t *testing.T) {
	ck, data := filepath.Join(t.TempDir(), "ck"), generated(t)
	flags := []string{"--data", data, "--solver", "gd", "--tol", "0", "--sync", "bsp", "--clock", "virtual",
		"--pace", "static:2,1", "--executors", "2", "--checkpoint-dir", ck, "--checkpoint-every", "1",
		"--max-time", "1h"}
	first := runJob(t, "logistic", slices.Concat(flags, []string{"--max-iterations", "20"})...)
	if first.StoppedBy != "max-iterations" {
		t.Fatalf("stopped by %s", first.StoppedBy)
	}
	each := first.TrainSeconds / 20
	left := fmt.Sprintf("%.6fs", first.TrainSeconds+5*each)
	again := slices.Concat(flags, []string{"--max-iterations", "1000", "--resume"})
	again[slices.Index(again, "1h")] = left
	second := runJob(t, "logistic", again...)
	if second.StoppedBy != "max-time" || second.Iterations < 22 || second.Iterations > 28 {
		t.Errorf("stopped by %s after iteration %d, want about 25", second.StoppedBy, second.Iterations)
	}
}
