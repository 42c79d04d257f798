package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/wire"
)

// cluster is a driver and executors in processes of their own, all of which must end with it.
type cluster struct {
	*lab.Cluster
	t *testing.T
}

const suspicion = time.Second

func newCluster(t *testing.T, executors ...string) *cluster {
	t.Helper()
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String()), t}
	t.Cleanup(c.stop)
	c.startDriver()
	for _, name := range executors {
		c.join(name)
	}
	return c
}

func (c *cluster) startDriver() {
	c.t.Helper()
	if err := c.StartDriver(); err != nil {
		c.t.Fatal(err)
	}
}

// join starts an executor and waits until it has registered.
func (c *cluster) join(name string, flags ...string) {
	c.t.Helper()
	if err := c.Join(name, name, flags...); err != nil {
		c.t.Fatal(err)
	}
}

// stop ends the driver, with which everything else has to end.
func (c *cluster) stop() {
	if c.Driver == nil {
		return
	}
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
	if c.t.Failed() {
		c.t.Logf("driver:\n%s", c.Driver.Log)
		logs, _ := filepath.Glob(filepath.Join(c.Dir, "driver", "jobs", "*", "*log.*"))
		for _, l := range logs {
			raw, _ := os.ReadFile(l)
			c.t.Logf("%s:\n%s", filepath.Base(l), raw)
		}
	}
	if left := processesOf(c.Dir); len(left) > 0 {
		c.t.Errorf("processes are left: %v", left)
	}
}

// processesOf are the processes whose arguments or environment name a
// directory.
func processesOf(dir string) []string {
	var out []string
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		args, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		if filepath.Base(p) != strconv.Itoa(os.Getpid()) &&
			(bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte("VOLLEY_DATA_DIR="+dir))) {
			out = append(out, filepath.Base(p)+": "+strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return out
}

// submit submits a job and returns what it waits for.
func (c *cluster) submit(args ...string) (id string) {
	c.t.Helper()
	out, errs, code := volley(c.t, append([]string{"submit", "logistic", "--driver", c.Addr, "--detach"}, args...)...)
	if code != 0 {
		c.t.Fatalf("submit: exit %d: %s", code, errs)
	}
	return strings.TrimSpace(out)
}

// job is how a job stands.
type job struct {
	ID, State, Why string
	Step           int
	Restarts       int
	Result         result
}

// job asks the driver as "volley job --json" does, without starting a process: tests that must catch a job at a step
// ask often, and a busy machine takes a second to start one.
func (c *cluster) job(id string) (j job, err error) {
	client, done, err := c.Client()
	if err != nil {
		return j, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := client.Jobs(ctx, &wire.JobsRequest{Id: id})
	if err != nil {
		return j, err
	}
	raw, err := json.Marshal(daemon.ViewJob(reply.Jobs[0]))
	if err != nil {
		return j, err
	}
	return j, json.Unmarshal(raw, &j)
}

// await polls a job until something holds of it.
func (c *cluster) await(id, what string, holds func(job) bool) job {
	c.t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := c.job(id)
		if err == nil && holds(j) {
			return j
		}
		if err == nil && j.State == "failed" && what != "the failure" {
			c.t.Fatalf("%s failed: %s", id, j.Why)
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("%s: %s does not come: %+v %v", id, what, j, err)
		}
	}
}

func (c *cluster) ended(id string) job {
	c.t.Helper()
	return c.await(id, "the end", func(j job) bool { return j.State == "done" })
}

func (c *cluster) atStep(id string, n int) {
	c.t.Helper()
	c.await(id, fmt.Sprintf("step %d", n), func(j job) bool { return j.Step >= n })
}

// jobDir is where the driver keeps what a job makes.
func (c *cluster) jobDir(id string) string { return filepath.Join(c.Dir, "driver", "jobs", id) }

// gives compares a job's model with the one wanted.
func (c *cluster) gives(id, want string) {
	c.t.Helper()
	if modelBytes(c.t, filepath.Join(c.jobDir(id), "out")) != want {
		c.t.Errorf("%s: another model", id)
	}
}

// verified checks a job's event log.
func (c *cluster) verified(id string, replay bool) {
	c.t.Helper()
	log := filepath.Join(c.jobDir(id), "events.jsonl")
	if out, errs, code := volley(c.t, "verify", log); code != 0 {
		c.t.Errorf("verify: %s%s", out, errs)
	}
	if !replay {
		return
	}
	if out, errs, code := volley(c.t, "replay", log); code != 0 {
		c.t.Errorf("replay: %s%s", out, errs)
	}
}

// undisturbed is the model of a job without a cluster.
func undisturbed(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	run(t, append(args, "--out", dir)...)
	return modelBytes(t, dir)
}

func jobFlags(data string) []string {
	return []string{"--data", data, "--solver", "nesterov", "--sync", "bsp", "--reg", "1e-3", "--max-iterations", "40",
		"--tol", "0"}
}

func TestACluster(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1", "e2", "e3", "e4")
	want := undisturbed(t, jobFlags(data)...)
	out, log := filepath.Join(c.Dir, "model"), filepath.Join(c.Dir, "log")
	stdout, errs, code := volley(t, append([]string{"submit", "logistic", "--driver", c.Addr, "--out", out,
		"--event-log", log, "--json"}, jobFlags(data)...)...)
	if code != 0 {
		t.Fatalf("submit: exit %d: %s", code, errs)
	}
	var r struct{ Executors int }
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Executors != 4 {
		t.Errorf("%v %s", err, stdout)
	}
	if modelBytes(t, out) != want {
		t.Error("the cluster gives another model")
	}
	id := c.submit(append(jobFlags(data), "--sync", "absp")...)
	c.ended(id)
	c.verified(id, true)
	for _, args := range [][]string{{"jobs"}, {"executors"}, {"logs", id}} {
		if out, errs, code := volley(t, append(args, "--driver", c.Addr)...); code != 0 || out == "" {
			t.Errorf("%v: exit %d %s", args, code, errs)
		}
	}
	if _, errs, code := volley(t, "job", "job-999999", "--driver", c.Addr); code == 0 ||
		!strings.Contains(errs, "job-999999") {
		t.Errorf("a job that is not there: exit %d: %s", code, errs)
	}
}

func TestACancelledJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.join("e1", "--pace", "rate:20000")
	id := c.submit(append(jobFlags(generated(t)), "--max-iterations", "100000")...)
	c.atStep(id, 1)
	if _, errs, code := volley(t, "cancel", id, "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	c.await(id, "the cancellation", func(j job) bool { return j.State == "cancelled" })
}

// TestExecutorsDieHangAndJoin kills one executor, stops another and has a
// third join while a job runs.
func TestExecutorsDieHangAndJoin(t *testing.T) {
	t.Parallel()
	data := generated(t)
	for _, mode := range [][]string{{"bsp", "nesterov"}, {"absp", "nesterov"}, {"bsp", "sdca"}, {"absp", "sdca"}} {
		sync, solver := mode[0], mode[1]
		t.Run(sync+" "+solver, func(t *testing.T) {
			flags := append(jobFlags(data), "--max-iterations", "60", "--solver", solver)
			want := undisturbed(t, flags...)
			c := newCluster(t)
			for _, name := range []string{"e1", "e2", "e3", "e4"} {
				c.join(name, "--pace", "rate:40000")
			}
			id := c.submit(append(flags, "--sync", sync)...)
			c.atStep(id, 3)
			c.Executors["e1"].Kill()
			_ = c.Executors["e2"].Process.Signal(syscall.SIGSTOP)
			c.join("e5", "--pace", "rate:40000")
			c.atStep(id, 30)
			_ = c.Executors["e2"].Process.Signal(syscall.SIGCONT)
			if drift := c.ended(id).Result.DualDrift; drift > 1e-9 {
				t.Errorf("w is %v from what the dual variables stand for", drift)
			}
			if sync == "bsp" {
				c.gives(id, want)
			}
			c.verified(id, true)
		})
	}
}

// TestTheJobProcessIsKilled: the job goes on from its last committed step.
func TestTheJobProcessIsKilled(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	c.join("e2", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 10)
	for _, p := range lab.Children(c.Driver.Process.Pid) {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	if j := c.ended(id); j.Restarts < 1 {
		t.Errorf("%d restarts", j.Restarts)
	}
	c.verified(id, true)
	c.gives(id, want)
}

// TestTheDriverIsKilled: started again on its data directory, it goes on.
func TestTheDriverIsKilled(t *testing.T) {
	t.Parallel()
	data := generated(t)
	flags := append(jobFlags(data), "--max-iterations", "60")
	want := undisturbed(t, flags...)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:80000")
	c.join("e2", "--pace", "rate:80000")
	id := c.submit(flags...)
	c.atStep(id, 10)
	c.Driver.Kill()
	c.startDriver()
	c.ended(id)
	c.verified(id, true)
	c.gives(id, want)
}
