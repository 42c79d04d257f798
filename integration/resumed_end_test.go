package integration

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestARunResumedAtItsEnd is of jobs whose process has died after the last commit, before there was a model: the one
// that goes on has nothing to do but to make it, knows how the loop ended, and its log is like any other.
func TestARunResumedAtItsEnd(t *testing.T) {
	data := jobsData(t)
	points := []string{"--data", data["logistic"][1], "--reg", "1e-2"}
	for _, c := range []struct {
		job   string
		flags []string
	}{
		{"logistic", points}, {"logistic", append(points, "--sync", "bsp")},
		{"logistic", append(points, "--solver", "lbfgs")}, {"logistic", append(points, "--alpha", "0.5")},
		{"logistic", append(points, "--solver", "sdca", "--sync", "bsp")}, {"logistic", append(points, "--solver",
			"nesterov")},
		{"svm", points}, {"svm", append(points, "--solver", "newton")}, {"svm", append(points, "--solver", "sdca")},
		{"lasso", points}, {"ridge", points}, {"softmax", points}, {"softmax", append(points, "--sync", "bsp")},
		{"logistic", append(points, "--max-iterations", "2")},
		{"logistic", append(points, "--validation", "0.3", "--patience", "1", "--sync", "bsp")},
		{"kmeans", data["kmeans"]}, {"kmeans", append(data["kmeans"], "--sync", "absp")},
		{"mlp", append(data["mlp"], "--max-iterations", "20")},
		{"mlp", append(data["mlp"], "--max-iterations", "60", "--target", "0.5")},
		{"als", data["als"]}, {"als", append(data["als"], "--sync", "absp")},
	} {
		t.Run(c.job, func(t *testing.T) {
			dir := t.TempDir()
			ck, log := filepath.Join(dir, "ck"), filepath.Join(dir, "log")
			flags := slices.Concat(c.flags, []string{"--clock", "virtual", "--pace", "static:3,1,1", "--splits", "6",
				"--exchange", "off", "--event-log", log, "--checkpoint-dir", ck})
			first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
			whole := runJob(t, c.job, slices.Concat(flags, []string{"--out", first})...)
			end := runJob(t, c.job, slices.Concat(flags, []string{"--resume", "--out", second})...)
			whole.compareEnd(t, end)
			if modelBytes(t, first) != modelBytes(t, second) {
				t.Error("the models differ")
			}
			holds(t, log)
		})
	}
}

// TestARunGoesOnWithMoreIterations than it had at first, and comes to what a run with as many comes to.
func TestARunGoesOnWithMoreIterations(t *testing.T) {
	dir := t.TempDir()
	log, ck := filepath.Join(dir, "log"), filepath.Join(dir, "ck")
	flags := []string{"--data", jobsData(t)["logistic"][1], "--reg", "1e-2", "--solver", "lbfgs", "--tol", "1e-9",
		"--clock", "virtual", "--pace", "static:3,1,1", "--splits", "6", "--sync", "bsp", "--max-iterations"}
	kept := []string{"--event-log", log, "--checkpoint-dir", ck}
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	whole := runJob(t, "logistic", slices.Concat(flags, []string{"9", "--out", first})...)
	runJob(t, "logistic", slices.Concat(flags, []string{"4"}, kept)...)
	whole.compareEnd(t, runJob(t, "logistic", slices.Concat(flags, []string{"9", "--resume", "--out", second},
		kept)...))
	if modelBytes(t, first) != modelBytes(t, second) {
		t.Error("the models differ")
	}
	holds(t, log)
}

func (r result) compareEnd(t *testing.T, end result) {
	t.Helper()
	if end.StoppedBy != r.StoppedBy || end.Iterations != r.Iterations || end.Objective != r.Objective ||
		end.Converged != r.Converged {
		t.Errorf("stopped by %s after %d, at %v, converged %v; resumed: %s, %d, %v, %v", r.StoppedBy, r.Iterations,
			r.Objective, r.Converged, end.StoppedBy, end.Iterations, end.Objective, end.Converged)
	}
}
