package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/seeds"
)

// programs are those of this repository that tests have built, by their packages.
var programs sync.Map

// built returns a program of this repository, which all tests share.
func built(t *testing.T, pkg string) string {
	t.Helper()
	once, _ := programs.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		path := filepath.Join(filepath.Dir(binary), "program-"+strings.ReplaceAll(pkg, "/", "-"))
		return path, build("..", path, pkg)
	}))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds a package in a directory.
func build(dir, path, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", path, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// parts are the contents of a saved dataset's files, one after the other.
func parts(t *testing.T, dir string) []byte {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	var all []byte
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return all
}

// TestASortOfMoreThanFitsIntoMemory is that of the machine's own tool, byte for
// byte, and takes no more memory than it may.
func TestASortOfMoreThanFitsIntoMemory(t *testing.T) {
	dir := t.TempDir()
	const (
		lines  = 500_000
		budget = 1 << 20 // of a task, of which there are two
		most   = 2*budget + 150<<20
	)
	r := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "%08x%0*d\n", r.Uint32()>>(r.IntN(3)*8), 40+r.IntN(100), i)
	}
	if text.Len() < 20*2*budget {
		t.Fatalf("%d bytes are too few to tell", text.Len())
	}
	in, out := filepath.Join(dir, "sort.txt"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built(t, "./integration/bench/dataflow"), "--memory", fmt.Sprint(8*budget), "--executors",
		"2", "--data-dir", filepath.Join(dir, "data"),
		"--", "--job", "sort", "--data", dir, "--output", out)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var result struct {
		Peak int64 `json:"peak_bytes"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(said), []byte("RESULT ")), &result); err != nil ||
		result.Peak < 1<<20 || result.Peak > most {
		t.Errorf("it took %d MiB, may take %d: %v", result.Peak>>20, most>>20, err)
	}
	sort := exec.Command("sort", in)
	sort.Env = append(os.Environ(), "LC_ALL=C")
	want, err := sort.Output()
	if err != nil {
		t.Skipf("the machine cannot sort: %v", err)
	}
	if !bytes.Equal(parts(t, out), want) {
		t.Error("it is not what sort makes of it")
	}
}

// TestASaveThatIsKilledIsNotComplete, whenever that is: where the marker is, all
// parts are.
func TestASaveThatIsKilledIsNotComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program fifty times")
	}
	dir := ownModule(t)
	program := filepath.Join(dir, "program")
	if err := build(dir, program, "."); err != nil {
		t.Fatal(err)
	}
	complete, killed := 0, 0
	r := rand.New(rand.NewPCG(3, 4))
	save := func(ctx context.Context, out string) *exec.Cmd {
		return exec.CommandContext(ctx, program, "--data-dir", filepath.Join(dir, "data"), "--", "--input",
			filepath.Join(dir, "offset.txt"), "--output", out)
	}
	began := time.Now()
	if said, err := save(context.Background(), filepath.Join(dir, "out")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	whole := time.Since(began) // kills come at all times of a run
	for i := range 50 {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1.5*r.Float64()*float64(whole)))
		cmd := save(ctx, out)
		cmd.Cancel = func() error { killed++; return cmd.Process.Kill() }
		_ = cmd.Run() // what it says does not matter
		cancel()
		if _, err := os.Stat(filepath.Join(out, "_SUCCESS")); err != nil {
			continue
		}
		complete++
		if got := wordCounts(t, out); len(got) != len(sums()) {
			t.Errorf("try %d: the marker is there, and %d of %d rows", i, len(got), len(sums()))
		}
	}
	if killed < 5 || complete < 5 {
		t.Errorf("%d were killed and %d complete: too few to tell", killed, complete)
	}
	t.Logf("%d killed, %d complete", killed, complete)
}

// lesson is a lesson with what it must print, on the data that it is about.
type lesson struct {
	dir   string
	args  []string
	saves bool
	want  []string
	same  bool // a cluster prints the same
}

func dataLessons(t *testing.T) []lesson {
	data := func(name string) string {
		path, err := filepath.Abs(shared(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	numbers := filepath.Join(t.TempDir(), "numbers")
	var text bytes.Buffer
	for i := range 4000 {
		fmt.Fprintln(&text, i)
	}
	if err := os.WriteFile(numbers, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return []lesson{
		{"01-wordcount", []string{"--input", data("shakespeare/tinyshakespeare.txt.gz")}, true,
			[]string{"different words"}, false},
		{"02-logs", []string{"--input", data("gharchive/2015-01-01-0.masked.json.gz")}, true,
			[]string{"kinds     4280  PushEvent", "kinds      815  CreateEvent", "kinds      650  IssueCommentEvent",
				"kinds      642  WatchEvent", "of 4280 pushes", "0 lines could not be read"}, false},
		{"03-joins", []string{"--flights", data("nycflights13/flights_sample100k.parquet"), "--airlines",
			data("nycflights13/airlines.csv"), "--weather", data("nycflights13/weather.csv.gz")}, false,
			[]string{"19.69 minutes late of  15271 flights: ExpressJet Airlines Inc.",
				"12.43 minutes late of  17348 flights: United Air Lines Inc.", "minutes late of   6006 flights: windy"},
			true},
		{"04-pagerank", []string{"--input", data("wiki-Vote/Wiki-Vote.txt.gz"), "--rounds", "200", "--tolerance",
			"1e-9"}, false,
			[]string{"4037  0.00460717", "15  0.00367986", "6634  0.00358685", "ranks sum to 1.000000000"}, true},
		{"04-pagerank", []string{"--input", data("web-Stanford/web-Stanford.relabelled.txt.gz"), "--rounds", "200",
			"--tolerance", "1e-9"}, false,
			[]string{"281  0.01130285", "67  0.00926783", "1352  0.00829727", "4898  0.003023117", "3367  0.003001279",
				"341  0.00257173", "443  0.00243079"}, true},
		{"05-components", []string{"--input", data("ca-GrQc/CA-GrQc.txt")}, false,
			[]string{"355 components", "4158 nodes with node"}, true},
		{"06-kmeans", []string{"--input", data("sipu/s1.data.gz"), "--k", "15", "--steps", "8"}, false,
			[]string{"step 8: share 1.00"}, true},
		{"07-etl", []string{"--input", data("nycflights13/weather.csv.gz")}, true, []string{"26114 rows"}, false},
		{"08-mean", []string{"--input", numbers}, false, []string{"mean so far 1999.5"}, true},
	}
}

// TestLessonsOnTheirData print what was computed independently, alone and on a
// cluster of three executors.
func TestLessonsOnTheirData(t *testing.T) {
	t.Parallel()
	lessons := dataLessons(t)
	c := newCluster(t, "e1", "e2", "e3")
	for _, l := range lessons {
		t.Run(l.dir, func(t *testing.T) {
			if !seeds.Soaking() && strings.Contains(strings.Join(l.args, " "), "web-Stanford") {
				t.Skip("takes a hundred rounds")
			}
			program := built(t, "./examples/"+l.dir)
			outs, said := map[string]string{}, map[string]string{}
			for _, where := range []string{"alone", "cluster"} {
				args := append([]string{"--sync", "bsp", "--"}, l.args...)
				saved := filepath.Join(t.TempDir(), where)
				if l.saves {
					args = append(args, "--output", saved)
				}
				var out string
				if where == "alone" {
					var errs strings.Builder
					cmd := exec.Command(program, args...)
					cmd.Stderr = &errs
					raw, err := cmd.Output()
					if err != nil {
						t.Fatalf("%v: %s", err, errs.String())
					}
					out = string(raw)
				} else {
					printed, errs, code := volley(t, append([]string{"submit", "--driver", c.Addr, "--binary", program},
						args...)...)
					if code != 0 {
						t.Fatalf("exit %d: %s", code, errs)
					}
					out = printed
				}
				for _, w := range l.want {
					if !strings.Contains(out, w) {
						t.Errorf("%s does not print %q:\n%s", where, w, out)
					}
				}
				said[where] = out
				if l.saves {
					outs[where] = string(parts(t, saved))
				}
			}
			if l.same && said["alone"] != said["cluster"] {
				t.Errorf("a cluster prints something else:\n%s%s", said["alone"], said["cluster"])
			}
			if l.saves && outs["alone"] != outs["cluster"] {
				t.Errorf("a cluster saves other bytes: %d and %d", len(outs["alone"]), len(outs["cluster"]))
			}
		})
	}
}
