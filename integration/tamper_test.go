package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tampering is a log that was made false: edits of a run's log, and what the refusal
// has to name.
type tampering struct {
	name, log, edit, names string
}

// virtualRuns are runs whose logs are tampered with, all in virtual time.
func virtualRuns(t *testing.T) map[string][]string {
	data, ratings := generatedRows(t, 3000), ratingsFile(t)
	sampled := generatedRows(t, 40000) // enough that k-means begins with samples of them, whose steps are cut
	logistic := []string{"logistic", "--data", data, "--reg", "0.01", "--tol", "0", "--clock", "virtual", "--pace-rate",
		"20000"}
	with := func(flags ...string) []string { return append(slices.Clone(logistic), flags...) }
	six := []string{"--pace", "static:4,1,1,1,1,1"}
	many := []string{"--clock", "virtual", "--pace", "physical", "--pace-rate", "20000", "--splits", "24", "--sync",
		"absp"}
	return map[string][]string{
		"absp": with(append(six, "--solver", "nesterov", "--sync", "absp", "--exchange", "off", "--splits", "6",
			"--max-iterations", "16")...),
		"floor": with("--solver", "nesterov", "--sync", "absp", "--pace", "physical", "--splits", "24",
			"--max-iterations", "8"),
		"moves": with("--solver", "nesterov", "--sync", "absp", "--pace", "static:4,1,1", "--splits", "6",
			"--exchange", "paper-literal", "--exchange-threshold", "1", "--max-iterations", "12"),
		"newton": with("--solver", "newton", "--sync", "bsp", "--pace", "static:2,1,1", "--splits", "6",
			"--max-iterations", "6"),
		"bsp": with(append(six, "--solver", "nesterov", "--sync", "bsp", "--splits", "12", "--tol", "1e-6",
			"--max-iterations", "200")...),
		"steal": with("--solver", "svrg", "--sync", "steal", "--pace", "static:3,1,1", "--splits", "6",
			"--max-iterations", "8"),
		"deadline": with("--solver", "sdca", "--sync", "deadline", "--pace", "static:3,1,1", "--splits", "6",
			"--max-iterations", "12"),
		"auto": with("--solver", "nesterov", "--sync", "auto", "--pace", "physical", "--splits", "24",
			"--max-iterations", "12"),
		"missing": with("--solver", "nesterov", "--sync", "absp", "--pace", "static:4,4,4,4,4,0.05", "--splits", "12",
			"--max-iterations", "8"),
		"copies": {"logistic", "--data", sampled, "--solver", "sdca", "--sync", "steal", "--tol", "0", "--clock",
			"virtual", "--pace", "multi-tenant:1", "--pace-rate", "20000", "--max-iterations", "3"},
		"kmeans": append([]string{"kmeans", "--data", sampled, "--k", "4", "--max-iterations", "6"}, many...),
		"als": append([]string{"als", "--data", ratings, "--header", "true", "--rank", "4", "--max-iterations", "4"},
			many...),
	}
}

// generatedRows is a small data set made by the program itself.
func generatedRows(t *testing.T, rows int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.libsvm")
	if _, errs, code := volley(t, "generate", "logistic", "--rows", fmt.Sprint(rows), "--features", "6", "--eps", "0.3",
		"--out", path); code != 0 {
		t.Fatal(errs)
	}
	return path
}

func ratingsFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("user,item,rating\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "%d,%d,%d\n", i%271, i*i%83, 1+(i*7+i/13)%5)
	}
	path := filepath.Join(t.TempDir(), "ratings.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// virtualLogs runs everything that tamperings are of.
func virtualLogs(t *testing.T) map[string]string {
	t.Helper()
	logs := map[string]string{}
	for name, flags := range virtualRuns(t) {
		logs[name] = filepath.Join(t.TempDir(), "log")
		runJob(t, flags[0], append(flags[1:], "--event-log", logs[name])...)
	}
	logs["resumed"] = resumedLog(t)
	return logs
}

// resumedLog is that of a run which goes on from its second checkpoint.
func resumedLog(t *testing.T) string {
	t.Helper()
	log, kept := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "kept")
	flags := []string{"--data", generatedRows(t, 3000), "--solver", "nesterov", "--reg", "0.01", "--tol", "0",
		"--max-iterations", "9", "--sync", "absp", "--exchange", "off",
		"--clock", "virtual", "--pace", "static:4,1,1,1,1,1", "--pace-rate", "20000", "--splits", "6",
		"--checkpoint-dir", kept, "--checkpoint-every", "3", "--event-log", log}
	runJob(t, "logistic", flags...)
	removeNewest(t, kept)
	runJob(t, "logistic", append(flags, "--resume")...)
	return log
}

// refusal is what verify, or else replay, says against a log, without the log's own
// path; empty where both take it for true.
func refusal(t *testing.T, log string) string {
	t.Helper()
	for _, check := range []string{"verify", "replay"} {
		out, errs, code := volley(t, check, log)
		if code != 0 && code != 1 {
			t.Fatalf("%s: exit %d: %s%s", check, code, out, errs)
		}
		if code == 1 {
			return strings.ReplaceAll(out+errs, log, "LOG")
		}
	}
	return ""
}

// refuse tampers with logs and wants each refused by name.
func refuse(t *testing.T, logs map[string]string, all []tampering) {
	for _, c := range all {
		t.Run(c.log+", "+c.name, func(t *testing.T) {
			l := readLog(t, logs[c.log])
			l.edit(c.edit)
			path := filepath.Join(t.TempDir(), "false")
			l.write(path)
			said := refusal(t, path)
			if said == "" {
				t.Fatalf("%q is taken for true", c.edit)
			}
			if !regexp.MustCompile("(?i)" + c.names).MatchString(said) {
				t.Errorf("it does not name %q:\n%s", c.names, said)
			}
		})
	}
}

// TestLogsThatAreTrueAreTaken, written anew by the editor too: else every refusal below
// would mean nothing.
func TestLogsThatAreTrueAreTaken(t *testing.T) {
	for name, log := range virtualLogs(t) {
		again := filepath.Join(t.TempDir(), "again")
		readLog(t, log).write(again)
		for _, path := range []string{log, again} {
			if said := refusal(t, path); said != "" {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
}

// TestEveryTamperingIsRefused by name, without an anchor.
func TestEveryTamperingIsRefused(t *testing.T) {
	logs := virtualLogs(t)
	refuse(t, logs, falseObjectives)
	refuse(t, logs, falseStops)
	refuse(t, logs, falseOptions)
	refuse(t, logs, emptyOptions)
	refuse(t, logs, falseMoves)
	refuse(t, logs, falseWaits)
	refuse(t, logs, falseRatios)
	refuse(t, logs, falseAccounts)
	refuse(t, logs, falseEnds)
}

// TestACutOffEndIsRefusedByTheAnchor: a log made shorter in every respect is that of a
// shorter run; the digest that the run has printed says that it is not.
func TestACutOffEndIsRefusedByTheAnchor(t *testing.T) {
	data, dir := generatedRows(t, 3000), t.TempDir()
	digest := func(log string, iterations int) string {
		out, errs, code := volley(t, "run", "logistic", "--json", "--data", data, "--solver", "nesterov", "--tol", "0",
			"--clock", "virtual",
			"--pace", "static:4,1", "--max-iterations", fmt.Sprint(iterations), "--event-log", log)
		var r struct {
			Digest string `json:"log_digest"`
		}
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Digest) != 64 {
			t.Fatalf("exit %d, %v: no digest of the log in %s%s", code, err, out, errs)
		}
		return r.Digest
	}
	whole, short := filepath.Join(dir, "whole"), filepath.Join(dir, "short")
	anchor := digest(whole, 12)
	digest(short, 6)
	if _, errs, code := volley(t, "verify", whole, "--digest", anchor); code != 0 {
		t.Error(errs)
	}
	if _, errs, code := volley(t, "verify", short, "--digest", anchor); code != 1 || !strings.Contains(errs, "digest") {
		t.Errorf("exit %d: %s", code, errs)
	}
	l := readLog(t, whole)
	l.edit(`footer: stopped_by = "interrupted"`)
	l.write(whole)
	if _, errs, code := volley(t, "verify", whole, "--digest", anchor); code != 1 || !strings.Contains(errs, "digest") {
		t.Errorf("another footer: exit %d: %s", code, errs)
	}
}

// removeNewest removes the newest checkpoint of a directory.
func removeNewest(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	if len(files) == 0 {
		t.Fatal("there are no checkpoints")
	}
	if err := os.Remove(slices.Max(files)); err != nil {
		t.Fatal(err)
	}
}
