package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rawTable writes a table of numbers, some missing, of names and of text.
func rawTable(t *testing.T) string {
	t.Helper()
	cities, notes := []string{"Oslo", "Rome", "Lima", "Bern"}, []string{"good and fast", "slow", "fast, but dear", "never again"}
	var b strings.Builder
	b.WriteString("age,city,note,churned\n")
	for i := range 400 {
		age := fmt.Sprint(20 + i*7%50)
		if i%11 == 0 {
			age = "NA"
		}
		fmt.Fprintf(&b, "%s,%s,%q,%s\n", age, cities[i*i%4], notes[(i/3)%4], map[bool]string{true: "yes", false: "no"}[(i*i%4+i/3%4+i%3)%3 == 0])
	}
	path := filepath.Join(t.TempDir(), "raw.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRawColumns: a model has what takes raw rows to those that it was made from;
// the bytes are the same on a cluster; its log is verified and replayed.
func TestRawColumns(t *testing.T) {
	data := rawTable(t)
	prepare := []string{"--data", data, "--label", "churned", "--onehot", "city", "--text", "note", "--buckets", "128", "--missing", "mean", "--scale", "standard"}
	c := newCluster(t, "e1", "e2")
	for job, own := range map[string][]string{"logistic": {"--reg", "0.01"}, "softmax": {"--reg", "0.01"}, "mlp": {"--layers", "4", "--max-iterations", "20"}, "kmeans": {"--k", "3"}} {
		dir := t.TempDir()
		here, there, log := filepath.Join(dir, "here"), filepath.Join(dir, "there"), filepath.Join(dir, "log")
		flags := slices.Concat(prepare, own)
		got := runJob(t, job, slices.Concat(flags, []string{"--out", here, "--event-log", log})...)
		if _, errs, code := volley(t, slices.Concat([]string{"submit", job, "--driver", c.addr, "--out", there}, flags)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", job, code, errs)
		}
		if modelBytes(t, here) != modelBytes(t, there) {
			t.Errorf("%s: the cluster's model has other bytes", job)
		}
		for _, check := range [][]string{{"verify", log}, {"replay", log}, {"inspect", here}, {"evaluate", here, "--data", data}} {
			if _, errs, code := volley(t, check...); code != 0 {
				t.Errorf("%s: %v: exit %d: %s", job, check, code, errs)
			}
		}
		if job == "logistic" && got.Metrics["accuracy"] < 0.7 {
			t.Errorf("accuracy %v", got.Metrics["accuracy"])
		}
		want, _, _ := volley(t, "predict", here, "--data", data, "--out", "-")
		if strings.Count(want, "\n") != 401 {
			t.Errorf("%s: %d lines of predictions", job, strings.Count(want, "\n"))
		}
	}
}

// TestADamagedPreparationIsRefused by name.
func TestADamagedPreparationIsRefused(t *testing.T) {
	data, model := rawTable(t), filepath.Join(t.TempDir(), "model")
	runJob(t, "logistic", "--data", data, "--label", "churned", "--onehot", "city,note", "--missing", "zero", "--out", model)
	path := filepath.Join(model, "model.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), `"Oslo",`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := volley(t, "predict", model, "--data", data, "--out", "-"); code != 1 || !strings.Contains(errs, "city") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for says, flags := range map[string][]string{"--missing": {"--missing", "guess"}, "--scale": {"--scale", "log"}, "--buckets": {"--buckets", "1"}} {
		if _, errs, code := volley(t, slices.Concat([]string{"run", "logistic", "--data", "/nowhere"}, flags)...); code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d: %s", flags, code, errs)
		}
	}
}
