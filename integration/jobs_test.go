package integration

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// reference is a job on real data whose result is known.
type reference struct {
	name, job string
	flags     []string
	want      float64 // objective, or rmse of the test
	within    float64 // relatively
	cut       float64 // the same under A-BSP on uneven executors
	nonzeros  float64 // 0: not known
	test      bool
}

// TestReferenceValues holds every job against a published or computed value, whole
// and cut, and prints the table.
func TestReferenceValues(t *testing.T) {
	diabetes, blog := diabetesData(t), blogData(t)
	a9a, iris := shared(t, "a9a/a9a.gz"), shared(t, "sklearn/iris.csv")
	const perRow = "3.071158748195694e-05" // 1/n
	all := []reference{
		{"a9a, logistic", "logistic", []string{"--data", a9a, "--intercept=false", "--reg", perRow}, 0.3233795825, 1e-6, 1e-3, 0, false},
		// ½‖w‖² + 0.1·Σ over 0.1·n is the mean hinge + (λ/2)‖w‖² with λ = 1/(0.1·n).
		{"a9a, hinge", "svm", []string{"--data", a9a, "--intercept=false", "--reg", "3.071158748195694e-04"}, 1149.904 / (0.1 * 32561), 1e-3, 3e-2, 0, false},
		{"a9a, squared hinge", "svm", []string{"--data", a9a, "--intercept=false", "--loss", "squared-hinge", "--reg", perRow}, 0.4220508370, 1e-6, 1e-3, 0, false},
		{"diabetes, lasso 0.1", "lasso", []string{"--data", diabetes, "--reg", "0.1"}, 1629.054543, 1e-7, 1e-3, 7, false},
		{"diabetes, lasso 1", "lasso", []string{"--data", diabetes, "--reg", "1"}, 2586.943193, 1e-7, 1e-3, 3, false},
		{"diabetes, linear", "linear", []string{"--data", diabetes}, 0.51775, 1e-4, 1e-2, 0, true},
		{"blogfeedback, lasso 1", "lasso", []string{"--data", blog, "--standardize", "--reg", "1"}, 493.14494, 1e-7, 1e-3, 8, false},
		{"iris, k-means", "kmeans", []string{"--data", iris, "--label", "virginica", "--k", "3", "--restarts", "10"}, 78.85144, 1e-6, 1e-2, 0, false},
		{"s1, k-means", "kmeans", []string{"--data", shared(t, "sipu/s1.data.gz"), "--k", "15", "--restarts", "10"}, 8.9176157e12, 1e-2, 1e-2, 0, false},
		{"s2, k-means", "kmeans", []string{"--data", shared(t, "sipu/s2.data.gz"), "--k", "15", "--restarts", "10"}, 1.32791622e13, 1e-2, 1e-2, 0, false},
		{"s3, k-means", "kmeans", []string{"--data", shared(t, "sipu/s3.data.gz"), "--k", "15", "--restarts", "10"}, 1.68898369e13, 1e-2, 1e-2, 0, false},
		{"s4, k-means", "kmeans", []string{"--data", shared(t, "sipu/s4.data.gz"), "--k", "15", "--restarts", "10"}, 1.57037871e13, 1e-2, 1e-2, 0, false},
	}
	t.Logf("%-24s %14s | %14s %7s %4s | %14s %7s %4s", "", "reference", "bsp", "s", "it.", "absp, uneven", "s", "it.")
	for _, r := range all {
		bsp := runJob(t, r.job, r.flags...)
		absp := runJob(t, r.job, append(r.flags, append(uneven, "--splits", "24", "--max-iterations", "5000")...)...)
		t.Logf("%-24s %14.8g | %14.8g %7.3f %4d | %14.8g %7.3f %4d", r.name, r.want, r.of(bsp), bsp.TrainSeconds, bsp.Iterations, r.of(absp), absp.TrainSeconds, absp.Iterations)
		if got := r.of(bsp); got > r.want*(1+r.within) || !strings.Contains(r.name, "k-means") && got < r.want*(1-r.within) {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
		if got := r.of(absp); math.Abs(got-r.want) > r.want*r.cut {
			t.Errorf("%s, cut: %v, want %v", r.name, got, r.want)
		}
		if n := bsp.Metrics["nonzeros"]; r.nonzeros > 0 && n != r.nonzeros {
			t.Errorf("%s: %v weights are not zero, want %v", r.name, n, r.nonzeros)
		}
	}
}

func (r *reference) of(got result) float64 {
	if r.test {
		return got.Metrics["r2"]
	}
	return got.Objective
}

// TestMovieLens is the published split u1.
func TestMovieLens(t *testing.T) {
	flags := []string{"--data", shared(t, "ml-100k/u1.base.gz"), "--test", shared(t, "ml-100k/u1.test"), "--rank", "10", "--reg", "0.1", "--max-iterations", "15", "--tol", "0"}
	for name, sync := range map[string][]string{"bsp": nil, "absp": uneven} {
		r := runJob(t, "als", append(flags, sync...)...)
		t.Logf("%s: rmse %.4f of the test", name, r.Metrics["rmse"])
		if r.Metrics["rmse"] > 0.942 || r.Metrics["cold_rows"] != 32 {
			t.Errorf("%s: %v", name, r.Metrics)
		}
	}
}

// TestDigits holds multinomial regressions against the accuracies of the same ones.
func TestDigits(t *testing.T) {
	var parts [2]strings.Builder
	raw, err := os.ReadFile(shared(t, "pendigits/pendigits"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		to := &parts[min(1, n/7494)]
		for i, f := range strings.Fields(line) {
			if at, v, ok := strings.Cut(f, ":"); ok {
				x, _ := strconv.ParseFloat(v, 64)
				fmt.Fprintf(to, " %s:%v", at, x/100)
			} else if i == 0 {
				to.WriteString(f)
			}
		}
		to.WriteByte('\n')
		n++
	}
	var files [2]string
	for i := range parts {
		files[i] = filepath.Join(t.TempDir(), "pendigits.libsvm")
		if err := os.WriteFile(files[i], []byte(parts[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := []string{"--data", files[0], "--test", files[1], "--reg", strconv.FormatFloat(1.0/7494, 'g', -1, 64), "--max-iterations", "3000"}
	for name, sync := range map[string][]string{"bsp": nil, "absp": uneven} {
		net := slices.Concat(flags, sync, []string{"--reg", "1e-5", "--layers", "64", "--step-size", "0.01", "--max-iterations", "800"})
		hidden, linear := runJob(t, "mlp", net...).Metrics["accuracy"], runJob(t, "softmax", slices.Concat(flags, sync)...).Metrics["accuracy"]
		t.Logf("%s: mlp %.4f (0.971), softmax %.4f (0.8991)", name, hidden, linear)
		if hidden < 0.955 || math.Abs(linear-0.8991) > 0.003 {
			t.Errorf("%s: accuracies %v and %v, want 0.971 and 0.8991", name, hidden, linear)
		}
	}
}

// diabetesData is the data as its reference values have it: columns centred and
// brought to length 1, the target in front.
func diabetesData(t *testing.T) string {
	x, y := numbersOf(t, shared(t, "sklearn/diabetes_data_raw.csv.gz")), numbersOf(t, shared(t, "sklearn/diabetes_target.csv.gz"))
	var b strings.Builder
	d := len(x[0])
	mean, length := make([]float64, d), make([]float64, d)
	for j := range d {
		for i := range x {
			mean[j] += x[i][j] / float64(len(x))
		}
		for i := range x {
			length[j] += (x[i][j] - mean[j]) * (x[i][j] - mean[j])
		}
	}
	for i := range x {
		fmt.Fprint(&b, y[i][0])
		for j := range d {
			fmt.Fprintf(&b, ",%v", (x[i][j]-mean[j])/math.Sqrt(length[j]))
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "diabetes.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func numbersOf(t *testing.T, path string) (rows [][]float64) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var row []float64
		for _, f := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' }) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// blogData unpacks the training table; its target comes last.
func blogData(t *testing.T) string {
	z, err := zip.OpenReader(shared(t, "blogfeedback/BlogFeedback.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "blogData_train.csv") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for line := range strings.Lines(string(raw)) { // the target to the front
			line = strings.TrimSpace(line)
			at := strings.LastIndexByte(line, ',')
			b.WriteString(line[at+1:] + "," + line[:at] + "\n")
		}
		path := filepath.Join(t.TempDir(), "blog.csv")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatal("the archive has no training table")
	return ""
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
	return map[string][]string{"logistic": linear, "svm": linear, "linear": linear, "ridge": linear, "lasso": linear, "elasticnet": linear, "softmax": linear,
		"kmeans": {"--data", points, "--k", "4", "--max-iterations", "8", "--restarts", "2"},
		"mlp":    {"--data", points, "--layers", "6,5", "--max-iterations", "8"},
		"als":    {"--data", ratings, "--header", "true", "--rank", "4", "--max-iterations", "4"}}
}

// TestEveryJobIsVerifiedAndReplayed, whole and cut, and its model is inspected, used
// and measured.
func TestEveryJobIsVerifiedAndReplayed(t *testing.T) {
	for job, flags := range jobsData(t) {
		t.Run(job, func(t *testing.T) {
			for _, sync := range [][]string{{"--executors", "3"}, {"--executors", "3", "--sync", "steal"}, append(uneven, "--splits", "24")} {
				log, model := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "model")
				runJob(t, job, append(flags, append(sync, "--event-log", log, "--out", model)...)...)
				for _, check := range [][]string{{"verify", log}, {"replay", log}, {"inspect", model}, {"evaluate", model, "--data", flags[1]},
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
	if testing.Short() {
		t.Skip("starts many processes")
	}
	c := newCluster(t)
	for _, name := range []string{"e1", "e2", "e3"} {
		c.join(name)
	}
	for job, flags := range jobsData(t) {
		alone, there := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "model")
		runJob(t, job, append(flags, "--executors", "1", "--out", alone)...)
		if _, errs, code := volley(t, append([]string{"submit", job, "--driver", c.addr, "--out", there}, flags...)...); code != 0 {
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
	runJob(t, "logistic", "--data", data, "--max-iterations", "3", "--init", model, "--out", model, "--overwrite", "--event-log", log)
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
		{[]string{"logistic", "--solver", "lbfgs", "--sync", "absp"}, "--sync steal"},
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
// of a run that was not interrupted, whole or cut.
func TestEveryJobIsResumed(t *testing.T) {
	data := jobsData(t)
	points := []string{"--data", data["logistic"][1], "--reg", "1e-3", "--max-iterations", "11", "--tol", "0"}
	for _, c := range []struct {
		job   string
		flags []string
	}{
		{"logistic", append(points, "--solver", "lbfgs")}, {"logistic", append(points, "--solver", "owlqn", "--alpha", "0.5")},
		{"logistic", append(points, "--solver", "adam")}, {"svm", append(points, "--solver", "newton", "--reg", "0.1")}, {"svm", append(points, "--solver", "lbfgs", "--reg", "0.1")},
		{"lasso", append(points, "--solver", "nesterov", "--sync", "absp")},
		{"lasso", append(points, "--solver", "nesterov", "--sync", "adaptive")}, {"softmax", append(points, "--sync", "adaptive")},
		{"svm", append(points, "--solver", "sdca")}, {"svm", append(points, "--solver", "sdca", "--sync", "absp")}, {"lasso", append(points, "--solver", "sdca", "--sync", "steal")},
		{"logistic", append(points, "--solver", "svrg", "--sync", "absp")}, {"logistic", append(points, "--solver", "svrg", "--batch-fraction", "0.2")},
		{"softmax", append(points, "--solver", "lbfgs")}, {"softmax", append(points, "--sync", "absp")},
		{"kmeans", append(data["kmeans"], "--tol", "0")}, {"kmeans", append(data["kmeans"], "--tol", "0", "--sync", "absp")},
		{"mlp", append(data["mlp"], "--tol", "0", "--batch-fraction", "0.2")}, {"mlp", append(data["mlp"], "--tol", "0", "--solver", "constant", "--sync", "absp")},
		{"als", append(data["als"], "--tol", "0")}, {"als", append(data["als"], "--tol", "0", "--sync", "absp", "--max-iterations", "8")},
	} {
		t.Run(c.job+strings.Join(c.flags[6:], ""), func(t *testing.T) {
			dir := t.TempDir()
			whole, resumed, ck := filepath.Join(dir, "whole"), filepath.Join(dir, "resumed"), filepath.Join(dir, "ck")
			flags := slices.Concat(c.flags, []string{"--clock", "virtual", "--pace", "static:3,1,1", "--splits", "6", "--exchange", "off"})
			keep := slices.Concat(flags, []string{"--checkpoint-dir", ck, "--checkpoint-every", "3"})
			if c.job == "als" && !strings.Contains(strings.Join(c.flags, " "), "absp") {
				flags = append(flags, "--max-iterations", "1")
				keep = append(keep, "--max-iterations", "1", "--checkpoint-every", "1") // before items are known
			}
			runJob(t, c.job, slices.Concat(flags, []string{"--out", whole})...)
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
		})
	}
}
