package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// resumable are runs of all jobs, with limits that end them within few turns.
func resumable(t *testing.T) map[string][]string {
	data := jobsData(t)
	points := []string{"--data", data["logistic"][1], "--reg", "1e-2"}
	return map[string][]string{
		"logistic newton": points, "logistic lbfgs bsp": append(points, "--solver", "lbfgs", "--sync", "bsp"),
		"logistic nesterov": append(points, "--solver", "nesterov"),
		"logistic owlqn":    append(points, "--solver", "owlqn"),
		"logistic sdca bsp": append(points, "--solver", "sdca", "--sync", "bsp"),
		"svm":               points, "lasso": points, "softmax": points, "kmeans": data["kmeans"], "mlp": data["mlp"],
		"als": data["als"], "als absp": append(data["als"], "--sync", "absp"),
	}
}

// run is one process of a run that may be resumed.
type resumableRun struct {
	job   string
	flags []string
	log   string
}

func newResumable(t *testing.T, name string, flags []string) resumableRun {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	job, _, _ := strings.Cut(name, " ")
	return resumableRun{job, slices.Concat(flags, []string{"--clock", "virtual", "--pace", "static:3,1,1", "--splits",
		"6",
		"--exchange", "off", "--event-log", log, "--checkpoint-dir", filepath.Join(dir, "ck")}), log}
}

func (r resumableRun) with(t *testing.T, more ...string) result {
	return runJob(t, r.job, slices.Concat(r.flags, more)...)
}

// TestARunGoesOnUnderOtherRules: one that its limit of iterations has ended, under another tolerance, or that its limit
// of time has ended, under a longer one. Its log is replayed in parts, each under the rules of its time.
func TestARunGoesOnUnderOtherRules(t *testing.T) {
	for name, flags := range resumable(t) {
		t.Run(name, func(t *testing.T) {
			r := newResumable(t, name, flags)
			first := r.with(t, "--max-time", "1ms", "--tol", "1e-9")
			if first.StoppedBy != "max-time" {
				t.Fatalf("stopped by %s after %d", first.StoppedBy, first.Iterations)
			}
			holds(t, r.log)
			if strings.HasPrefix(name, "kmeans") {
				return // its last turn makes the model
			}
			second := r.with(t, "--max-time", "1h", "--tol", "1e-9", "--max-iterations", "3", "--resume")
			if second.StoppedBy == "max-time" {
				t.Errorf("resumed: stopped by %s after %d", second.StoppedBy, second.Iterations)
			}
			holds(t, r.log)
			if second.StoppedBy != "max-iterations" {
				return
			}
			third := r.with(t, "--tol", "1e-1", "--max-iterations", "60", "--resume")
			if third.Iterations < second.Iterations || third.Objective > second.Objective {
				t.Errorf("resumed: %v after %d, before %v after %d", third.Objective, third.Iterations,
					second.Objective,
					second.Iterations)
			}
			holds(t, r.log)
		})
	}
}

// TestAnEndIsOfTheRulesThatItWasBy: a run that has ended by some is not said to have ended by others.
func TestAnEndIsOfTheRulesThatItWasBy(t *testing.T) {
	for name, flags := range resumable(t) {
		t.Run(name, func(t *testing.T) {
			r := newResumable(t, name, flags)
			first := r.with(t, "--tol", "0.3")
			if first.StoppedBy == "max-iterations" && !strings.HasPrefix(name, "kmeans") {
				t.Skip("it does not end by tolerance")
			}
			_, text, code := volley(t, slices.Concat([]string{"run", r.job}, r.flags, []string{"--tol", "1e-9",
				"--resume"})...)
			if code != 2 || !strings.Contains(text, "has ended ("+first.StoppedBy+") under --tol 0.3") {
				t.Errorf("%d, %s", code, text)
			}
			again := r.with(t, "--tol", "0.3", "--resume")
			first.compareEnd(t, again)
			holds(t, r.log)
		})
	}
}

// TestALogOfARunThatEndedByTimeAgain: both processes were ended by their limits of time; a refused resume in between
// leaves the log as it was.
func TestALogOfARunThatEndedByTimeAgain(t *testing.T) {
	for name, flags := range resumable(t) {
		if strings.HasPrefix(name, "kmeans") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newResumable(t, name, flags)
			r.with(t, "--tol", "1e-12", "--max-time", "1us")
			_, text, code := volley(t, slices.Concat([]string{"run", r.job}, r.flags, []string{"--tol", "0.5",
				"--max-time",
				"1us", "--resume"})...)
			if code != 2 || !strings.Contains(text, "has it go on") {
				t.Errorf("%d, %s", code, text)
			}
			holds(t, r.log)
			for _, limit := range []string{"20ms", "40ms"} {
				r.with(t, "--tol", "1e-12", "--max-time", limit, "--resume")
				holds(t, r.log)
			}
		})
	}
}

// TestLogsOfLargeResultsHold on the real clock: what is decided by the size of results follows from the log.
func TestLogsOfLargeResultsHold(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "wide.csv")
	volley(t, "generate", "logistic", "--rows", "6000", "--features", "100", "--out", data)
	for _, sync := range []string{"auto", "steal"} {
		for k := range 3 {
			log := filepath.Join(dir, sync+string(rune('0'+k)))
			runJob(t, "logistic", "--data", data, "--reg", "1e-3", "--executors", "4", "--sync", sync, "--event-log",
				log)
			holds(t, log)
		}
	}
}
