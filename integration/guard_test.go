package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/integration/lab"
)

func TestADriverNeedsCertificatesOffItsSocket(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		_, errs, code := volley(t, "driver", "--listen", listen, "--data-dir", t.TempDir())
		if code != 2 || !strings.Contains(errs, "volley init") {
			t.Errorf("%s: exit %d: %s", listen, code, errs)
		}
	}
}

func TestCommandsWithoutADriver(t *testing.T) {
	t.Setenv("VOLLEY_HOME", t.TempDir())
	for addr, want := range map[string]string{"127.0.0.1:1": "no certificate", "": "is a driver running there",
		"unix:/nowhere/s": "/nowhere/s", "nobody": "nobody"} {
		if _, errs, code := volley(t, "jobs", "--driver", addr); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d: %s", addr, code, errs)
		}
	}
}

// TestNoExecutorIsLeft: a job waits for executors, and goes on with new ones.
func TestNoExecutorIsLeft(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	c.Executors["e1"].Kill()
	c.await(id, "a reason", func(j job) bool { return strings.Contains(j.Why, "executor") })
	c.join("e2")
	if j := c.ended(id); j.Why != "" {
		t.Errorf("%+v", j)
	}
	c.gives(id, want)
	c.verified(id, true)
}

// TestNobodyComes: a wait for executors is bounded, and says for what it was.
func TestNobodyComes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.submit(append(jobFlags(generated(t)), "--max-wait", "300ms")...)
	j := c.await(id, "the failure", func(j job) bool { return j.State == "failed" })
	if !strings.Contains(j.Why, "executors") {
		t.Errorf("%q", j.Why)
	}
}

// TestAnInputThatIsNotThere is an error of the job that names the path.
func TestAnInputThatIsNotThere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "e1")
	out, errs, code := volley(t, "submit", "logistic", "--driver", c.Addr, "--data", "/nowhere/train.libsvm")
	if code != 1 || !strings.Contains(errs, "/nowhere/train.libsvm") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestRunnersDieWithTheirExecutor: none outlives it by more than two seconds.
func TestRunnersDieWithTheirExecutor(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.join("e1", "--pace", "rate:2000")
	id := c.submit(append(jobFlags(generated(t)), "--max-iterations", "100000")...)
	c.atStep(id, 1)
	runners := lab.Children(c.Executors["e1"].Process.Pid)
	if len(runners) != 1 {
		t.Fatalf("%d runners", len(runners))
	}
	c.Executors["e1"].Kill()
	deadline := time.After(2 * time.Second)
	for alive(runners[0]) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatal("the runner lives on")
		}
	}
}

// alive reports whether a process runs: one that has ended and that nobody has
// asked for yet does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, after, ok := strings.Cut(string(raw), ") ")
	return err == nil && ok && !strings.HasPrefix(after, "Z")
}

// TestTwoJobsAtOnce: neither changes the other's answer.
func TestTwoJobsAtOnce(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1", "e2")
	want := undisturbed(t, jobFlags(data)...)
	a, b := c.submit(jobFlags(data)...), c.submit(jobFlags(data)...)
	for _, id := range []string{a, b} {
		c.ended(id)
		c.gives(id, want)
	}
}

// TestAnExecutorIsDrained: its splits move off it, and the job does not notice.
func TestAnExecutorIsDrained(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	c.join("e2", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	if _, errs, code := volley(t, "executors", "drain", "e1", "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	c.ended(id)
	out, _, _ := volley(t, "executors", "--driver", c.Addr)
	if !strings.Contains(out, "drained") {
		t.Errorf("%s", out)
	}
	c.gives(id, want)
	c.verified(id, true)
	if _, errs, code := volley(t, "executors", "drain", "nobody", "--driver", c.Addr); code == 0 ||
		!strings.Contains(errs, "nobody") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestAPoolRunsItsJobsInTurn: the second job of a pool waits, and says for
// what; one without a pool does not.
func TestAPoolRunsItsJobsInTurn(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:40000")
	long := append(jobFlags(data), "--max-iterations", "100000")
	a := c.submit(append(long, "--pool", "nightly")...)
	c.atStep(a, 1)
	b := c.submit(append(jobFlags(data), "--pool", "nightly", "--max-iterations", "3")...)
	beside := c.submit(append(jobFlags(data), "--max-iterations", "3")...)
	c.ended(beside)
	if j, err := c.job(b); err != nil || j.State != "waiting" || !strings.Contains(j.Why, a) {
		t.Errorf("%+v %v", j, err)
	}
	if _, errs, code := volley(t, "cancel", a, "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	c.ended(b)
}

// TestDisksFailUnderExecutors: one executor's disk is too small for the pack,
// and another's data directory is deleted while a job runs. Others do the
// work, and the answer stays.
func TestDisksFailUnderExecutors(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	small := filepath.Join(c.Dir, "e1")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	c.join("e1")
	c.join("e2", "--pace", "rate:80000")
	c.join("e3", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 5)
	if err := os.RemoveAll(filepath.Join(c.Dir, "e2")); err != nil {
		t.Fatal(err)
	}
	c.ended(id)
	c.gives(id, want)
	c.verified(id, true)
}

// TestAJobBesideADrainedExecutor: it does not wait for one that takes no work;
// its model can be had later.
func TestAJobBesideADrainedExecutor(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1", "e2")
	if _, errs, code := volley(t, "executors", "drain", "e1", "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	if out, _, _ := volley(t, "executors", "--driver", c.Addr); !strings.Contains(out, "drained") {
		t.Errorf("%s", out)
	}
	id := c.submit(jobFlags(data)...)
	c.ended(id)
	dir := filepath.Join(c.Dir, "later")
	if _, errs, code := volley(t, "job", id, "--driver", c.Addr, "--out", dir); code != 0 {
		t.Fatal(errs)
	}
	if modelBytes(t, dir) != undisturbed(t, jobFlags(data)...) {
		t.Error("another model")
	}
}

// TestWhatAClusterRefuses: each with one message, before anything runs.
func TestWhatAClusterRefuses(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1")
	submit := func(flags ...string) []string {
		return append([]string{"submit", "logistic", "--driver", c.Addr, "--data", data}, flags...)
	}
	for what, try := range map[string]struct {
		args []string
		code int
		want string
	}{
		"an executor's name twice": {[]string{"executor", "--driver", c.Addr, "--name", "e1", "--data-dir",
			t.TempDir()}, 1, "named e1"},
		"a name that is a path": {[]string{"executor", "--driver", c.Addr, "--name", "../e1", "--data-dir",
			t.TempDir()}, 2, "no name"},
		"a suspicion of nothing": {[]string{"driver", "--suspicion", "-1s", "--data-dir",
			t.TempDir()}, 2, "--suspicion"},
		"a second driver of its data": {[]string{"driver", "--listen", "unix:" + filepath.Join(t.TempDir(), "s"),
			"--data-dir",
			filepath.Join(c.Dir, "driver")}, 1, "another driver"},
		"a second driver at its socket": {[]string{"driver", "--listen", c.Addr, "--data-dir", t.TempDir()}, 1, c.Addr},
		"flags of another place":        {submit("--executors", "3"), 2, "--executors"},
		"no weight":                     {submit("--weight", "0"), 2, "--weight"},
		"a model nobody waits for":      {submit("--detach", "--out", "m"), 2, "--detach"},
		"a model nowhere":               {submit("--out", "/nowhere/m"), 2, "--out"},
		"an unknown executor": {[]string{"logs", "job-000001", "--task", "nobody", "--driver", c.Addr}, 2,
			""},
	} {
		_, errs, code := volley(t, try.args...)
		if code != try.code || !strings.Contains(errs, try.want) || strings.Count(errs, "volley: ") != 1 {
			t.Errorf("%s: exit %d: %s", what, code, errs)
		}
	}
}
