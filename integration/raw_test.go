package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rawTable writes a table of numbers, some missing, of names and of text.
func rawTable(t *testing.T) string {
	t.Helper()
	cities, notes := []string{"Oslo", "Rome", "Lima", "Bern"},
		[]string{"good and fast", "slow", "fast, but dear", "never again"}
	var b strings.Builder
	b.WriteString("age,city,note,churned\n")
	for i := range 400 {
		age := fmt.Sprint(20 + i*7%50)
		if i%11 == 0 {
			age = "NA"
		}
		fmt.Fprintf(&b, "%s,%s,%q,%s\n", age, cities[i*i%4], notes[(i/3)%4],
			map[bool]string{true: "yes", false: "no"}[(i*i%4+i/3%4+i%3)%3 == 0])
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
	t.Parallel()
	data := rawTable(t)
	prepare := []string{"--data", data, "--label", "churned", "--onehot", "city", "--text", "note", "--buckets", "128",
		"--missing", "mean", "--scale", "standard", "--sync", "bsp"}
	c := newCluster(t, "e1", "e2")
	for job, own := range map[string][]string{"logistic": {"--reg", "0.01"}, "softmax": {"--reg", "0.01"},
		"mlp": {"--layers", "4", "--max-iterations", "20"}, "kmeans": {"--k", "3"}} {
		dir := t.TempDir()
		here, there, log := filepath.Join(dir, "here"), filepath.Join(dir, "there"), filepath.Join(dir, "log")
		flags := slices.Concat(prepare, own)
		got := runJob(t, job, slices.Concat(flags, []string{"--out", here, "--event-log", log})...)
		if _, errs, code := volley(t, slices.Concat([]string{"submit", job, "--driver", c.Addr, "--out", there},
			flags)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", job, code, errs)
		}
		if modelBytes(t, here) != modelBytes(t, there) {
			t.Errorf("%s: the cluster's model has other bytes", job)
		}
		for _, check := range [][]string{{"verify", log}, {"replay", log}, {"inspect", here},
			{"evaluate", here, "--data", data}} {
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
	runJob(t, "logistic", "--data", data, "--label", "churned", "--onehot", "city,note", "--missing", "zero", "--out",
		model)
	path := filepath.Join(model, "model.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), `"Oslo",`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := volley(t, "predict", model, "--data", data, "--out", "-"); code != 1 ||
		!strings.Contains(errs, "city") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for says, flags := range map[string][]string{"--missing": {"--missing", "guess"}, "--scale": {"--scale", "log"},
		"--buckets": {"--buckets", "1"}} {
		if _, errs, code := volley(t, slices.Concat([]string{"run", "logistic", "--data", "/nowhere"},
			flags)...); code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d: %s", flags, code, errs)
		}
	}
}

// TestHeadersOfWhatAModelKnows: a first line is a header where it has a name that the
// model knows, whatever its fields look like, and no row is taken for one.
func TestHeadersOfWhatAModelKnows(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := func(model, data string, flags ...string) []string {
		out, errs, code := volley(t, append([]string{"predict", model, "--data", data, "--out", "-"}, flags...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		return strings.Split(strings.TrimSpace(out), "\n")[1:]
	}
	names := filepath.Join(dir, "names")
	data := put("names.csv", "\xef\xbb\xbfcolor,shape,label\n"+
		strings.Repeat("red,round,yes\nblue,flat,no\nred,flat,yes\nblue,round,no\n", 5))
	runJob(t, "logistic", "--data", data, "--label", "label", "--onehot", "color,shape", "--reg", "0.1", "--out", names)
	same := lines(names, put("same.csv", "color,shape\nred,round\nblue,flat\n"))
	swapped := lines(names, put("swapped.csv", "shape,color\nround,red\nflat,blue\n"))
	if len(same) != 2 || !slices.Equal(same, swapped) || same[0] == same[1] {
		t.Errorf("predictions %v, of columns the other way round %v", same, swapped)
	}
	numbers := filepath.Join(dir, "numbers")
	runJob(t, "logistic", "--data", put("numbers.csv", ",2,0\n"+strings.Repeat("2,1,1\n3,5,0\n4,1,1\n", 5)), "--label",
		"2", "--missing", "mean", "--reg", "0.1", "--out", numbers)
	if got := lines(numbers, put("more.csv", ",2,0\n2,1,1\n3,5,0\n4,1,1\n")); len(got) != 4 {
		t.Errorf("%d predictions of 4 rows", len(got))
	}
	centres := filepath.Join(dir, "centres")
	runJob(t, "kmeans", "--data", put("points.csv", "label,a,b\n"+strings.Repeat("x,1,2\ny,5,6\n", 5)), "--label",
		"label", "--k", "2", "--out", centres)
	if got := lines(centres, put("unlabelled.csv", "a,b\n1,2\n5,6\n9,9\n")); len(got) != 3 {
		t.Errorf("%d clusters of 3 rows", len(got))
	}
	twice := put("twice.csv", "a,a,label\n1,2,0\n2,3,1\n")
	if _, errs, code := volley(t, "run", "logistic", "--data", twice, "--label", "label", "--scale",
		"standard"); code != 1 || !strings.Contains(errs, `two columns are called "a"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestRowWeights: jobs go by them in every model of synchronization; the bytes are the
// same on a cluster and under steal, logs are verified and replayed, and data to be
// predicted may be without them.
func TestRowWeights(t *testing.T) {
	t.Parallel()
	var b, plain strings.Builder
	b.WriteString("x,w,y,z\n")
	plain.WriteString("x,z\n")
	for i := range 6000 {
		x, z := float64(i*i%101)/101, float64(i*7%13)
		fmt.Fprintf(&b, "%v,%v,%d,%v\n", x, float64(i%5)/2, (i*i%101+i%29)/80, z)
		fmt.Fprintf(&plain, "%v,%v\n", x, z)
	}
	dir := t.TempDir()
	data, bare := filepath.Join(dir, "weighted.csv"), filepath.Join(dir, "plain.csv")
	for path, b := range map[string]*strings.Builder{data: &b, bare: &plain} {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newCluster(t, "e1", "e2")
	for job, own := range map[string][]string{"logistic": {"--label", "y", "--solver", "nesterov", "--max-iterations",
		"30"}, "kmeans": {"--label", "y", "--k", "3", "--max-iterations", "10"}} {
		flags := slices.Concat([]string{"--data", data, "--weight-column", "w", "--seed", "3"}, own)
		models, whole := map[string]string{}, []string{}
		if job == "logistic" {
			whole = []string{"--batch-fraction", "0.7"}
		}
		for _, sync := range []string{"bsp", "steal", "absp", "deadline"} {
			out, log := filepath.Join(dir, job+sync), filepath.Join(dir, job+sync+".log")
			batch := []string{"--sync-ratio", "0.5"}
			if sync == "bsp" || sync == "steal" {
				batch = whole
			}
			runJob(t, job, slices.Concat(flags, batch,
				[]string{"--sync", sync, "--executors", "3", "--pace", "static:4,1,1", "--clock", "virtual", "--out",
					out, "--event-log", log})...)
			models[sync] = modelBytes(t, out)
			for _, check := range [][]string{{"verify", log}, {"replay", log}} {
				if _, errs, code := volley(t, check...); code != 0 {
					t.Errorf("%s under %s: %v: exit %d: %s", job, sync, check, code, errs)
				}
			}
			if raw, err := os.ReadFile(log); err != nil || !strings.Contains(string(raw), `"weight":[`) {
				t.Errorf("%s under %s: its log says nothing of weights (%v)", job, sync, err)
			} else {
				damaged := filepath.Join(dir, "damaged.log")
				short := regexp.MustCompile(`"weight":\[[^]]*\]`).ReplaceAllString(string(raw), `"weight":[1,2]`)
				if err := os.WriteFile(damaged, []byte(short), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, check := range []string{"verify", "replay"} {
					if out, errs, code := volley(t, check, damaged); code == 0 ||
						strings.Contains(out+errs, "goroutine ") {
						t.Errorf("%s of a damaged log: exit %d: %.300s", check, code, out+errs)
					}
				}
			}
		}
		there := filepath.Join(dir, job+"there")
		if _, errs, code := volley(t, slices.Concat([]string{"submit", job, "--driver", c.Addr, "--out", there,
			"--sync", "bsp"}, flags, whole)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", job, code, errs)
		}
		if models["bsp"] != models["steal"] || models["bsp"] != modelBytes(t, there) {
			t.Errorf("%s: bsp, steal and a cluster come to other bytes", job)
		}
		for _, path := range []string{data, bare} {
			out, errs, code := volley(t, "predict", filepath.Join(dir, job+"bsp"), "--data", path, "--out", "-")
			if code != 0 || strings.Count(out, "\n") != 6001 {
				t.Errorf("%s: exit %d: %s%d lines of predictions", job, code, errs, strings.Count(out, "\n"))
			}
		}
	}
}

// TestProgressOfRatings: a half-sweep of als goes by ratings, not by rows, however
// uneven these are; its log says how many, and is verified and replayed.
func TestProgressOfRatings(t *testing.T) {
	var b strings.Builder
	b.WriteString("user,item,rating\n")
	for u := range 12000 {
		n := 3
		if u%50 == 0 {
			n = 300
		}
		for k := range n {
			fmt.Fprintf(&b, "%d,%d,%d\n", u, (u*7+k*k+k)%400, 1+(u+k)%5)
		}
	}
	dir := t.TempDir()
	data, log := filepath.Join(dir, "ratings.csv"), filepath.Join(dir, "log")
	if err := os.WriteFile(data, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runJob(t, "als", "--data", data, "--rank", "3", "--max-iterations", "6", "--tol", "0", "--sync", "absp",
		"--sync-ratio", "0.4", "--max-age", "50",
		"--executors", "4", "--pace", "static:5,1,1,1", "--clock", "virtual", "--exchange", "off", "--splits", "12",
		"--event-log", log)
	if got.MeanShare > 0.98 {
		t.Errorf("half-sweeps saw %v of the ratings: none was cut", got.MeanShare)
	}
	for _, check := range [][]string{{"verify", log}, {"replay", log}} {
		if _, errs, code := volley(t, check...); code != 0 {
			t.Errorf("%v: exit %d: %s", check, code, errs)
		}
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	cut := false
	for _, line := range strings.Split(string(raw), "\n") {
		var step struct {
			Event   string
			Cut     bool
			Share   float64
			C       []int64
			Entries []int64
		}
		if json.Unmarshal([]byte(line), &step) != nil || step.Event != "step" {
			continue
		}
		cut = cut || step.Cut
		var ratings int64
		for _, n := range step.Entries {
			ratings += n
		}
		if total := int64(11760*3 + 240*300); len(step.Entries) == 0 ||
			math.Abs(step.Share-float64(ratings)/float64(total)) > 1e-9 {
			t.Errorf("a step's share is %v, of %d of %d ratings", step.Share, ratings, total)
		}
	}
	if !cut {
		t.Error("no step was cut")
	}
}
