package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/internal/plan"
)

// jobProcess is the process of the only job that runs.
func (c *cluster) jobProcess() int {
	c.t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		if all := lab.Children(c.Driver.Process.Pid); len(all) == 1 {
			return all[0]
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			c.t.Fatal("no job process comes")
		}
	}
}

// steps are those of a job's event log.
func (c *cluster) steps(id string) map[int]driver.LogStep {
	c.t.Helper()
	steps, err := lab.ReadSteps(wholeLines(c.t, filepath.Join(c.jobDir(id), "events.jsonl")))
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[int]driver.LogStep{}
	for _, s := range steps {
		if _, twice := all[s.Step]; twice {
			c.t.Errorf("step %d is in the log twice", s.Step)
		}
		all[s.Step] = s
	}
	return all
}

// wholeLines is a copy of a log that is being written, without the line that has
// only been begun.
func wholeLines(t *testing.T, log string) string {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for len(raw) > 0 && raw[len(raw)-1] != '\n' {
		raw = raw[:len(raw)-1]
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// killCommitted kills a job's process between two instructions, and returns the digests
// of the steps that the driver had called committed.
func (c *cluster) killCommitted(id string) map[int]plan.Digest {
	c.t.Helper()
	p := c.jobProcess()
	_ = syscall.Kill(p, syscall.SIGSTOP)
	j, err := c.job(id)
	if err != nil {
		c.t.Fatal(err)
	}
	told := map[int]plan.Digest{}
	for n, s := range c.steps(id) {
		if n <= j.Step {
			told[n] = s.Params
		}
	}
	_ = syscall.Kill(p, syscall.SIGKILL)
	return told
}

// TestACommittedStepStays: what the driver has said is committed is part of the answer,
// whenever the job's process is killed: under absp too, where another run of the
// step would see other rows.
func TestACommittedStepStays(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:200000")
	c.join("e2", "--pace", "rate:150000")
	id := c.submit(append(jobFlags(data), "--max-iterations", "240", "--sync", "absp")...)
	told := map[int]plan.Digest{}
	for kills := range 4 {
		c.await(id, "more steps", func(j job) bool { return j.Restarts == kills && j.Step > 20+20*kills })
		for n, digest := range c.killCommitted(id) {
			if was, known := told[n]; known && was != digest {
				t.Errorf("step %d, which was committed as %s, has become %s", n, was.Short(), digest.Short())
			}
			told[n] = digest
		}
	}
	c.ended(id)
	final := c.steps(id)
	for n, digest := range told {
		if final[n].Params != digest {
			t.Errorf("step %d, which was committed as %s, is %s in the end", n, digest.Short(), final[n].Params.Short())
		}
	}
	c.verified(id, true)
}

// TestTheStepOfAJobDoesNotGoBack: what the driver has called committed it calls committed
// ever after.
func TestTheStepOfAJobDoesNotGoBack(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t)
	c.join("e1", "--pace", "rate:400000")
	id := c.submit(append(jobFlags(data), "--max-iterations", "150")...)
	c.atStep(id, 40)
	p := c.jobProcess()
	_ = syscall.Kill(p, syscall.SIGSTOP)
	before, err := c.job(id)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(p, syscall.SIGKILL)
	last := before.Step
	after := c.await(id, "the end", func(j job) bool {
		if j.Step < last {
			t.Errorf("step %d was committed, and now the job is at step %d", last, j.Step)
		}
		last = max(last, j.Step)
		return j.State == "done"
	})
	if after.Restarts == before.Restarts {
		t.Error("the job had ended before it could be killed")
	}
}

// TestNoTermComesTwice: every process of a job has a later term than all before it,
// whether they left a checkpoint or not, and whichever process died.
func TestNoTermComesTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.submit(append(jobFlags(generated(t)), "--max-iterations", "5")...)
	for n := range 2 {
		c.await(id, "its process", func(j job) bool { return j.State == "running" && j.Restarts == n })
		_ = syscall.Kill(c.jobProcess(), syscall.SIGKILL)
	}
	c.await(id, "its third process", func(j job) bool { return j.State == "running" && j.Restarts == 2 })
	c.jobProcess()
	c.Driver.Kill()
	c.startDriver()
	c.join("e1")
	c.ended(id)
	for n, s := range c.steps(id) {
		if term := s.Epoch[0] >> 32; term < 3 {
			t.Errorf("step %d has term %d, and the job had three processes before this one", n, term)
		}
	}
}
