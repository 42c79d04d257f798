package integration

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ownProgram is a program in a module of its own, which sums numbers by their
// remainder, slowly where asked to, and misbehaves where asked to.
const ownProgram = `package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Input  string
	Output string
	Mode   string
	Millis int
}

type pair = rdd.Pair[int64, int64]

var marked sync.Map

// mark says that this process has come to a phase.
func mark(a args, phase string) {
	if _, done := marked.LoadOrStore(phase, true); !done {
		os.WriteFile(fmt.Sprintf("%s.%s.%d", a.Output, phase, os.Getpid()), nil, 0o600)
	}
}

func build(g *rdd.Graph, a args) rdd.Action[int64] {
	lines := rdd.TextFile(g, a.Input)
	offset := rdd.Map(lines, func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n })
	rows := rdd.Map(rdd.Union(rdd.Range(g, 0, 320, 16), offset), func(i int64) pair {
		mark(a, "map")
		<-time.After(time.Duration(a.Millis) * time.Millisecond)
		switch {
		case a.Mode == "allocate" && i == 7:
			for all := [][]byte{}; ; {
				all = append(all, make([]byte, 64<<20))
				for k := 0; k < 64<<20; k += 4096 {
					all[len(all)-1][k] = 1
				}
			}
		case a.Mode == "panic" && i == 7:
			panic("row seven is not to my taste")
		case a.Mode == "exit" && i == 7:
			os.Exit(3)
		}
		return pair{Key: i % 37, Value: i}
	})
	if a.Mode == "clock" {
		rdd.Parallelize(g, 1, time.Now().UnixNano())
	}
	sums := rdd.ReduceByKey(rows, func(a, b int64) int64 { return a + b }, rdd.Partitions(9))
	slow := rdd.MapValues(sums, func(n int64) int64 {
		mark(a, "reduce")
		<-time.After(time.Duration(a.Millis) * time.Millisecond)
		return n
	})
	merged := rdd.MapValues(rdd.SortByKey(slow, rdd.Partitions(6)), func(n int64) int64 {
		mark(a, "save")
		<-time.After(2 * time.Duration(a.Millis) * time.Millisecond)
		return n
	})
	return rdd.SaveText(merged, a.Output)
}

func run(ctx context.Context, s *rdd.Session, _ args, save rdd.Action[int64]) error {
	_, err := save.Run(ctx, s)
	return err
}

func main() { volley.Main("sums", build, run) }
`

// ownModule writes the program outside the repository.
func ownModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/volley-engine/volley", "module example.org/sums", 1) +
		"\nrequire github.com/volley-engine/volley v0.0.0\nreplace github.com/volley-engine/volley => " + repo + "\n"
	for name, body := range map[string]string{"go.mod": text, "go.sum": string(sum), "main.go": ownProgram,
		"offset.txt": "1000\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tidy := exec.Command("go", "mod", "edit", "-droptool=honnef.co/go/tools/cmd/staticcheck")
	tidy.Dir = dir
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// sums are what the program comes to.
func sums() map[string]string {
	total := map[int]int{}
	for i := range 320 {
		total[i%37] += i
	}
	total[1000%37] += 1000
	out := map[string]string{}
	for k, n := range total {
		out[fmt.Sprint(k)] = fmt.Sprint(n)
	}
	return out
}

// TestAProgramOfOnesOwn in a module outside the repository runs on a cluster as
// it does alone, with relative paths; and while executors die.
func TestAProgramOfOnesOwn(t *testing.T) {
	dir := ownModule(t)
	t.Chdir(dir)
	c := newCluster(t, "e1", "e2", "e3")
	submit := func(flags ...string) (string, string, int) {
		return volley(t, append([]string{"submit", ".", "--driver", c.Addr}, flags...)...)
	}
	if _, errs, code := submit("--", "--input", "offset.txt", "--output", "out"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if got := wordCounts(t, filepath.Join(dir, "out")); !maps.Equal(got, sums()) {
		t.Errorf("%v", got)
	}
	for at, victim := range map[string]string{"map": "e1", "reduce": "e2", "save": "e3"} {
		id, errs, code := submit("--detach", "--", "--input", "offset.txt", "--output", "out-"+at, "--millis", "20")
		if code != 0 {
			t.Fatal(errs)
		}
		id = strings.TrimSpace(id)
		c.await(id, "its beginning", func(j job) bool { return j.State == "running" })
		c.await(id, "all runners at the "+at+" side", func(job) bool {
			marks, _ := filepath.Glob(filepath.Join(dir, "out-"+at+"."+at+".*"))
			return len(marks) >= 3
		})
		c.Executors[victim].Kill()
		c.ended(id)
		if got := wordCounts(t, filepath.Join(dir, "out-"+at)); !maps.Equal(got, sums()) {
			t.Errorf("killed at the %s side: %v", at, got)
		}
		c.join(victim)
	}
	for mode, want := range map[string]string{"panic": "row seven is not to my taste",
		"clock": "Build must depend on its arguments only", "exit": "exit status 3"} {
		_, errs, code := submit("--max-wait", "30s", "--", "--input", "offset.txt", "--output", "never", "--mode", mode)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", mode, code, errs)
		}
		if _, err := os.Stat(filepath.Join(dir, "never", "_SUCCESS")); err == nil {
			t.Errorf("%s: the save looks complete", mode)
		}
		os.RemoveAll(filepath.Join(dir, "never"))
	}
}

// TestAProgramThatTakesAllMemory is ended, with a reason, and nothing else is: the
// executors go on.
func TestAProgramThatTakesAllMemory(t *testing.T) {
	dir := ownModule(t)
	t.Chdir(dir)
	c := newCluster(t)
	c.join("e1", "--memory", "64MiB")
	c.join("e2", "--memory", "64MiB")
	submit := func(out, mode string) (string, int) {
		_, errs, code := volley(t, "submit", ".", "--driver", c.Addr, "--max-wait", "1m", "--", "--input", "offset.txt",
			"--output", out, "--mode", mode)
		return errs, code
	}
	if errs, code := submit("never", "allocate"); code != 1 ||
		!strings.Contains(errs, "took more memory than the 1088 MiB that it may") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if errs, code := submit("out", ""); code != 0 {
		t.Errorf("the next one: exit %d: %s", code, errs)
	}
	if got := wordCounts(t, filepath.Join(dir, "out")); !maps.Equal(got, sums()) {
		t.Errorf("%v", got)
	}
}

// TestWhatCannotBeSubmitted: each with one message, before anything travels.
func TestWhatCannotBeSubmitted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a script":         {[]string{"--binary", script}, 2, "no Linux program"},
		"no such file":     {[]string{"--binary", filepath.Join(dir, "nothing")}, 2, "nothing"},
		"no package":       {[]string{dir}, 1, "build"},
		"no job":           {[]string{"logistics"}, 2, "logistics"},
		"flags of another": {[]string{"--executors", "3", "--binary", binary}, 2, "--executors"},
	} {
		_, errs, code := volley(t, append([]string{"submit", "--driver", c.Addr}, try.args...)...)
		if code != try.code || !strings.Contains(errs, try.want) || strings.Count(errs, "volley: ") != 1 {
			t.Errorf("%s: exit %d: %s", what, code, errs)
		}
	}
}
