package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// labelled writes points with labels, as examples/13-tables reads them.
func labelled(t *testing.T, rows int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	var b bytes.Buffer
	for range rows {
		x, y := rng.NormFloat64(), rng.NormFloat64()
		label := 0
		if x-2*y+rng.NormFloat64() > 0 {
			label = 1
		}
		fmt.Fprintf(&b, "%d,%.4f,%.4f\n", label, x, y)
	}
	path := filepath.Join(t.TempDir(), "points.csv")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTablesOutliveTheirProcesses kills an executor, a runner and the job's process under a program whose workers are
// on all executors: an exact table comes to the bytes of one process, others to a loss like it.
func TestTablesOutliveTheirProcesses(t *testing.T) {
	t.Parallel()
	points := labelled(t, 3000)
	own := func(sync string) []string {
		return []string{"--", "--input", points, "--clocks", "300", "--sync", sync, "--rate", "0.001"}
	}
	want := example(t, "./examples/13-tables", own("bsp")...)
	for _, sync := range []string{"bsp", "ssp", "cap"} {
		t.Run(sync, func(t *testing.T) {
			c := newCluster(t)
			for _, name := range []string{"e1", "e2", "e3"} {
				c.join(name, "--pace", "rate:40000")
			}
			out, errs, code := volley(t, append([]string{"submit", "--binary", built(t, "./examples/13-tables"),
				"--driver", c.Addr, "--detach"}, own(sync)...)...)
			if code != 0 {
				t.Fatalf("submit: exit %d: %s", code, errs)
			}
			id := strings.TrimSpace(out)
			c.atStep(id, 20)
			c.Executors["e2"].Kill()
			c.atStep(id, 60)
			c.join("e4", "--pace", "rate:40000")
			_ = syscall.Kill(c.jobProcess(), syscall.SIGKILL)
			c.atStep(id, 100)
			c.Executors["e1"].Kill()
			if j := c.ended(id); j.State != "done" {
				t.Fatalf("%+v", j)
			}
			said, err := os.ReadFile(filepath.Join(c.jobDir(id), "log.0"))
			if err != nil || !strings.Contains(string(said), "begin again from the last tick") {
				t.Errorf("no member was lost: %v\n%s", err, said)
			}
			if !bytes.Contains(said, []byte("after 300 clocks of 3000 rows")) {
				t.Errorf("it has not ended:\n%s", said)
			}
			if last := said[bytes.LastIndex(said, []byte("loss ")):]; sync == "bsp" && string(last) != want {
				t.Errorf("it comes to\n%s\nand one process to\n%s", last, want)
			}
			c.verified(id, false)
		})
	}
}

// TestWorkersOfExecutorsHelpEachOther: on a cluster of which one executor has a fifth of the speed workers do parts of
// one another's clocks, and k-means comes to where it does without, as each row counts once.
func TestWorkersOfExecutorsHelpEachOther(t *testing.T) {
	t.Parallel()
	points := labelled(t, 4000)
	c := newCluster(t)
	for _, name := range []string{"a", "b", "c"} {
		c.join(name, "--pace", "rate:20000")
	}
	c.join("slow", "--pace", "rate:4000")
	kmeans := []string{"kmeans", "--data", points, "--k", "5", "--label", "0", "--splits", "4", "--slack", "0",
		"--batch", "5", "--json"}
	var alone, helped struct {
		Objective float64
		Sync      string
		Helped    float64 `json:"helped_share"`
	}
	out, errs, code := volley(t, append([]string{"run", "--sync", "ssp"}, kmeans...)...)
	if err := json.Unmarshal([]byte(out), &alone); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	out, errs, code = volley(t, append([]string{"submit", "--sync", "flexrr", "--driver", c.Addr}, kmeans...)...)
	if err := json.Unmarshal([]byte(out), &helped); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if helped.Sync != "flexrr(0)" || helped.Helped == 0 || math.Abs(helped.Objective/alone.Objective-1) > 1e-9 {
		t.Errorf("%+v with help, %+v without", helped, alone)
	}
}

// TestBundledJobsOnTablesRunOnClusters has their results as one process has them.
func TestBundledJobsOnTablesRunOnClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	edges, docs := filepath.Join(dir, "edges.txt"), filepath.Join(dir, "docs.dat")
	bags, texts := filepath.Join(dir, "bags.txt"), filepath.Join(dir, "texts.txt")
	var e, d, b, x bytes.Buffer
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		fmt.Fprintln(&e, rng.IntN(500), rng.IntN(500))
	}
	fmt.Fprint(&b, "200\n100\n1\n")
	for doc := range 200 {
		about := rng.IntN(2) * 50
		words := map[int]int{}
		for range 40 {
			words[about+rng.IntN(50)]++
		}
		fmt.Fprint(&d, len(words))
		for w := range 100 {
			if words[w] > 0 {
				fmt.Fprintf(&d, " %d:%d", w, words[w])
				fmt.Fprintln(&b, doc+1, w+1, words[w])
				fmt.Fprint(&x, strings.Repeat(fmt.Sprintf("w%d ", w), words[w]))
			}
		}
		fmt.Fprintln(&d)
		fmt.Fprintln(&x)
	}
	for path, raw := range map[string][]byte{edges: e.Bytes(), docs: d.Bytes(), bags: b.Bytes(), texts: x.Bytes()} {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	points := labelled(t, 2000)
	c := newCluster(t)
	for _, name := range []string{"a", "b", "c"} {
		c.join(name)
	}
	for i, job := range [][]string{
		{"pagerank", "--data", edges, "--tol", "1e-12"},
		{"components", "--data", edges},
		{"lda", "--data", docs, "--topics", "4", "--max-iterations", "30"},
		{"lda", "--data", texts, "--format", "text", "--topics", "4", "--max-iterations", "10"},
		{"lda", "--data", bags, "--format", "uci", "--topics", "4", "--max-iterations", "10"},
		{"mf", "--data", ratingsOf(t, dir), "--rank", "4", "--max-iterations", "10"},
		{"logistic", "--data", points, "--sync", "ssp", "--slack", "0"},
		{"softmax", "--data", points, "--sync", "ssp", "--slack", "0", "--max-iterations", "20"},
		{"mlp", "--data", points, "--sync", "ssp", "--slack", "0", "--max-iterations", "5", "--layers", "4"},
		{"kmeans", "--data", points, "--sync", "ssp", "--slack", "0", "--k", "5", "--label", "0"},
	} {
		ours, theirs := filepath.Join(dir, fmt.Sprint(job[0], i, "-ours")), filepath.Join(dir, fmt.Sprint(job[0], i))
		if _, errs, code := volley(t, append([]string{"run"}, append(job, "--out", ours)...)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", job[0], code, errs)
		}
		out, errs, code := volley(t, append([]string{"submit"}, append(job, "--driver", c.Addr, "--json", "--out",
			theirs)...)...)
		var r struct{ Job, Out, Model string }
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || r.Job != job[0] ||
			r.Out+r.Model != theirs {
			t.Fatalf("%s: exit %d, %v: %s%s", job[0], code, err, out, errs)
		}
		sameFiles(t, ours, theirs)
	}
}

// ratingsOf writes ratings of a few users and items.
func ratingsOf(t *testing.T, dir string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(9, 9))
	var b bytes.Buffer
	fmt.Fprintln(&b, "user,item,rating")
	for user := range 60 {
		for range 12 {
			fmt.Fprintf(&b, "%d,%d,%d\n", user, rng.IntN(40), 1+rng.IntN(5))
		}
	}
	path := filepath.Join(dir, "ratings.csv")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sameFiles fails where two files, or directories, differ.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	if info, err := os.Stat(a); err == nil && !info.IsDir() {
		one, err1 := os.ReadFile(a)
		other, err2 := os.ReadFile(b)
		if err1 != nil || err2 != nil || !bytes.Equal(one, other) {
			t.Errorf("%s and %s differ: %v %v", a, b, err1, err2)
		}
		return
	}
	names, err := os.ReadDir(a)
	others, err2 := os.ReadDir(b)
	if err != nil || err2 != nil || len(names) == 0 || len(names) != len(others) {
		t.Fatalf("%d files and %d: %v %v", len(names), len(others), err, err2)
	}
	for _, f := range names {
		sameFiles(t, filepath.Join(a, f.Name()), filepath.Join(b, f.Name()))
	}
}

// TestRunsOfWorkersAreMadeAgain: replay makes runs of workers again where they are exact or in virtual time, compares
// what they commit, and refuses others; a log of another run, or with other arguments, is found out.
func TestRunsOfWorkersAreMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	points, data := labelled(t, 1500), filepath.Join(dir, "data")
	virtual := []string{"--clock", "virtual", "--pace", "static:1,2,0.5", "--pace-rate", "3000"}
	logged := func(log string, job ...string) string {
		path := filepath.Join(dir, log)
		if _, errs, code := volley(t, append(append([]string{"run"}, job...), "--event-log", path, "--data-dir",
			data)...); code != 0 {
			t.Fatalf("%v: exit %d: %s", job, code, errs)
		}
		return path
	}
	logistic := []string{"logistic", "--data", points, "--sync", "asp", "--max-iterations", "12"}
	for name, job := range map[string][]string{
		"exact": {"svm", "--data", points, "--sync", "ssp", "--slack", "0", "--max-iterations", "12"},
		"asp":   append(logistic, virtual...),
		"kmeans": append([]string{"kmeans", "--data", points, "--label", "0", "--k", "4", "--sync", "cap"},
			virtual...),
		"mlp": append([]string{"mlp", "--data", points, "--layers", "4", "--sync", "asp", "--max-iterations", "5"},
			virtual...),
		"mf": append([]string{"mf", "--data", ratingsOf(t, dir), "--rank", "3", "--sync", "ssp"}, virtual...),
		"mf helped": append([]string{"mf", "--data", ratingsOf(t, dir), "--rank", "3", "--sync", "flexrr",
			"--max-iterations", "20"}, virtual...),
		"clocks of several passes": append([]string{"linear", "--data", points, "--sync", "cap", "--wpc", "2",
			"--max-iterations", "15"}, virtual...),
		"pagerank": {"pagerank", "--data", pairsOf(t, dir), "--tol", "1e-3"},
	} {
		log := logged(name, job...)
		out, errs, code := volley(t, "replay", log, "--data-dir", data)
		if code != 0 || !strings.Contains(out, "made again, the digests of") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
		if _, errs, code := volley(t, "verify", log); code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "asp"))
	if err != nil {
		t.Fatal(err)
	}
	for old, other := range map[string]string{`"Batch":0`: `"Batch":7`, `static:1,2,0.5+`: `static:1,2,0.6+`,
		`"clock":"virtual"`: `"clock":"real"`} {
		changed := bytes.Replace(raw, []byte(old), []byte(other), 1)
		path := filepath.Join(dir, "changed")
		if err := os.WriteFile(path, changed, 0o600); err != nil || bytes.Equal(raw, changed) {
			t.Fatalf("%s is not in the log: %v", old, err)
		}
		if out, _, code := volley(t, "replay", path, "--data-dir", data); code == 0 {
			t.Errorf("with %s for %s it is taken: %s", other, old, out)
		}
	}
	if _, errs, code := volley(t, "replay", logged("real", logistic...), "--data-dir", data); code == 0 ||
		!strings.Contains(errs, "on the real clock is not in the log") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// pairsOf writes edges of a small graph.
func pairsOf(t *testing.T, dir string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	var b bytes.Buffer
	for range 400 {
		fmt.Fprintln(&b, rng.IntN(80), rng.IntN(80))
	}
	path := filepath.Join(dir, "pairs.txt")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
