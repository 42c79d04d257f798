package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestStealHasTheBytesOfBSP, whatever job, however uneven the executors, and with
// batches too.
func TestStealHasTheBytesOfBSP(t *testing.T) {
	data := jobsData(t)
	data["logistic, batches"] = append(slices.Clone(data["logistic"]), "--solver", "sqrt", "--batch-fraction", "0.3")
	data["svm, sdca"] = append(slices.Clone(data["svm"]), "--solver", "sdca")
	data["logistic, lbfgs"] = append(slices.Clone(data["logistic"]), "--solver", "lbfgs")
	for name, flags := range data {
		job, _, _ := strings.Cut(name, ",")
		want := filepath.Join(t.TempDir(), "bsp")
		runJob(t, job, slices.Concat(flags, []string{"--executors", "1", "--sync", "bsp", "--out", want})...)
		for _, cluster := range [][]string{{"--executors", "5"}, {"--clock", "virtual", "--pace", "physical"},
			{"--clock", "virtual", "--pace", "multi-tenant:3", "--splits", "72"}} {
			got := filepath.Join(t.TempDir(), "steal")
			if slices.Contains(cluster, "72") { // other splits are another problem
				want = filepath.Join(t.TempDir(), "bsp")
				runJob(t, job, slices.Concat(flags, []string{"--executors", "1", "--sync", "bsp", "--splits", "72",
					"--out",
					want})...)
			}
			runJob(t, job, slices.Concat(flags, cluster, []string{"--sync", "steal", "--out", got})...)
			if modelBytes(t, want) != modelBytes(t, got) {
				t.Errorf("%s on %v has other bytes", name, cluster)
			}
		}
	}
}

// TestEmptySplitsAreLeased: where rows are few, splits may have none.
func TestEmptySplitsAreLeased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "few.libsvm")
	if err := os.WriteFile(path, []byte(strings.Repeat("1 1:2 2:1\n-1 1:1 2:3\n", 15)), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--data", path, "--splits", "40", "--assign", "random", "--executors", "3", "--max-iterations",
		"20", "--reg", "0.1", "--solver", "nesterov", "--max-wait", "20s"}
	bsp, steal := runJob(t, "logistic", append(flags, "--sync", "bsp")...), runJob(t, "logistic", append(flags,
		"--sync", "steal")...)
	if bsp.Objective != steal.Objective {
		t.Errorf("%v, bsp %v", steal.Objective, bsp.Objective)
	}
	runJob(t, "logistic", append(flags, "--sync", "absp")...)
}

// TestAResumedRunIsReplayed though its method begins with a pass over all rows.
func TestAResumedRunIsReplayed(t *testing.T) {
	dir := t.TempDir()
	log, ck := filepath.Join(dir, "log"), filepath.Join(dir, "ck")
	flags := []string{"--data", generated(t), "--solver", "svrg", "--reg", "0.01", "--tol", "0", "--max-iterations",
		"9", "--checkpoint-dir", ck, "--checkpoint-every", "3", "--event-log", log}
	runJob(t, "logistic", flags...)
	removeNewest(t, ck)
	runJob(t, "logistic", append(flags, "--resume")...)
	for _, check := range []string{"verify", "replay"} {
		if _, errs, code := volley(t, check, log); code != 0 {
			t.Errorf("%s: exit %d: %s", check, code, errs)
		}
	}
}

// TestStealComesNearTheIdealPass, at which every executor works until the end, in
// virtual time.
func TestStealComesNearTheIdealPass(t *testing.T) {
	flags := []string{"--data", generated(t), "--sync", "steal", "--clock", "virtual", "--pace-rate", "1000",
		"--solver", "lbfgs", "--max-iterations", "8", "--tol", "0"}
	for pace, speeds := range map[string]float64{"physical": 3 + 9*2.2, "static:2.2,1,1,2.2,1": 7.4,
		"one-straggler": 5.5} {
		r := runJob(t, "logistic", append(flags, "--pace", pace)...)
		ideal := float64(6000) / (speeds * 1000)
		whole := runJob(t, "logistic", append(flags, "--pace", pace, "--sync", "bsp", "--exchange", "off")...)
		t.Logf("%s: %.3f of the ideal pass, bsp %.3f", pace, r.SecondsPerIteration/ideal,
			whole.SecondsPerIteration/ideal)
		if r.SecondsPerIteration > 1.15*ideal {
			t.Errorf("%s: a step takes %v s, at best %v", pace, r.SecondsPerIteration, ideal)
		}
	}
}
