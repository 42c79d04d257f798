package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// endingProgram is a program that counts, and ends in a way of its own.
const endingProgram = `package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Output string
	Mode   string
}

func build(g *rdd.Graph, a args) rdd.Action[int64] {
	twice := func(i int64) string { return fmt.Sprintf("%d\t%d", i, i) }
	return rdd.SaveText(rdd.Map(rdd.Range(g, 0, 10, 2), twice), a.Output)
}

// starts notes that the program runs, and says how often it did.
func starts(a args) int {
	f, err := os.OpenFile(a.Output+".starts", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		f.WriteString("x")
		f.Close()
	}
	raw, _ := os.ReadFile(a.Output + ".starts")
	return len(raw)
}

func run(ctx context.Context, s *rdd.Session, a args, save rdd.Action[int64]) error {
	n := starts(a)
	switch {
	case a.Mode == "always", a.Mode == "once" && n == 1:
		fmt.Fprintln(os.Stderr, "this is as far as I go")
		os.Exit(0)
	case a.Mode == "error":
		return fmt.Errorf("I do not like it here")
	case a.Mode == "child":
		child := exec.Command("sleep", "40")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return err
		}
	}
	_, err := save.Run(ctx, s)
	return err
}

func main() { volley.Main("ending", build, run) }
`

// endings is a cluster for that program, and what submits it in a mode.
func endings(t *testing.T) (c *cluster, submit func(mode string) (out string, j job)) {
	t.Helper()
	dir := ownModule(t)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(endingProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	c = newCluster(t, "e1")
	return c, func(mode string) (string, job) {
		t.Helper()
		id, errs, code := volley(t, "submit", ".", "--driver", c.Addr, "--detach", "--", "--output", mode, "--mode",
			mode)
		if code != 0 {
			t.Fatal(errs)
		}
		j := c.await(strings.TrimSpace(id), "the failure",
			func(j job) bool { return j.State == "done" || j.State == "failed" })
		return filepath.Join(dir, mode), j
	}
}

// startsOf is how often the program's process was started.
func startsOf(out string) int {
	raw, _ := os.ReadFile(out + ".starts")
	return len(raw)
}

// TestAnEndIsWhatTheProcessSaid: a program that leaves its loop by os.Exit(0) has not done
// its job, and is started again; one that returns an error has failed, and is not.
func TestAnEndIsWhatTheProcessSaid(t *testing.T) {
	_, submit := endings(t)
	if out, j := submit("always"); j.State != "failed" || startsOf(out) != 6 ||
		!strings.Contains(j.Why, "this is as far as I go") || !strings.Contains(j.Why, "0") {
		t.Errorf("os.Exit(0): the job is %s, was started %d times: %q", j.State, startsOf(out), j.Why)
	}
	if out, j := submit("once"); j.State != "done" || startsOf(out) != 2 || len(wordCounts(t, out)) != 10 {
		t.Errorf("os.Exit(0) the first time: the job is %s, was started %d times: %q", j.State, startsOf(out), j.Why)
	}
	if out, j := submit("error"); j.State != "failed" || startsOf(out) != 1 ||
		!strings.Contains(j.Why, "I do not like it here") {
		t.Errorf("an error: the job is %s, was started %d times: %q", j.State, startsOf(out), j.Why)
	}
}

// TestAChildThatIsLeftOver does not make a good job a failed one, and does not outlive it.
func TestAChildThatIsLeftOver(t *testing.T) {
	c, submit := endings(t)
	out, j := submit("child")
	if j.State != "done" || startsOf(out) != 1 || len(wordCounts(t, out)) != 10 {
		t.Errorf("the job is %s, was started %d times: %q", j.State, startsOf(out), j.Why)
	}
	deadline := time.After(10 * time.Second)
	for len(sleepers(c.Dir)) > 0 {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("its child lives on: %v", sleepers(c.Dir))
		}
	}
}

// sleepers are the children that jobs of a cluster have left.
func sleepers(dir string) (out []string) {
	for _, p := range processesOf(dir) {
		if strings.Contains(p, "sleep") {
			out = append(out, p)
		}
	}
	return out
}

// TestAModelIsBroughtWholeOrNotAtAll: where the driver has not all of it, or not as it was,
// a client that asks for it is told, and gets nothing.
func TestAModelIsBroughtWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1")
	for name, damage := range map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"cut":   func(path string) error { return os.Truncate(path, 100) },
	} {
		id := c.submit(append(jobFlags(data), "--max-iterations", "3")...)
		c.ended(id)
		for _, file := range []string{"weights.arrow", "model.json"} {
			path, to := filepath.Join(c.jobDir(id), "out", file), filepath.Join(t.TempDir(), "model")
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			_, errs, code := volley(t, "job", id, "--driver", c.Addr, "--out", to)
			if _, err := os.Stat(to); code == 0 || err == nil || !strings.Contains(errs, file) {
				t.Errorf("%s is %s: exit %d: %q, and the directory: %v", file, name, code, errs, err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
