package integration

import (
	"strings"
	"syscall"
	"testing"

	"github.com/volley-engine/volley/integration/lab"
)

// TestAJobThatWritesTooMuchFails by name, and the others go on; one that says so is not started again.
func TestAJobThatWritesTooMuchFails(t *testing.T) {
	t.Parallel()
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--job-disk", "300KiB",
		"--job-log", "64KiB"), t}
	t.Cleanup(c.stop)
	c.startDriver()
	c.join("a")
	flags := []string{"--data", generated(t), "--solver", "gd", "--sync", "bsp", "--tol", "0", "--max-iterations"}
	large := c.submit(append(flags, "1000000")...)
	ended := func(id string) job {
		t.Helper()
		var j job
		if err := lab.Await("the end of "+id, func() (ended bool, err error) {
			j, err = c.job(id)
			return j.State != "running" && j.State != "waiting", err
		}); err != nil {
			t.Fatal(err)
		}
		return j
	}
	if j := ended(large); j.State != "failed" || !strings.Contains(j.Why, "--job-disk") {
		t.Errorf("%+v", j)
	}
	if j := ended(c.submit(append(flags, "5")...)); j.State != "done" {
		t.Errorf("%+v", j)
	}
	once := c.submit(append(flags, "1000000", "--max-restarts", "0")...)
	if err := lab.Await("its process", func() (bool, error) {
		j, err := c.job(once)
		return j.Step > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.jobProcess(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if j := ended(once); j.State != "failed" || j.Restarts != 0 || strings.Contains(j.Why, "--job-disk") {
		t.Errorf("%+v", j)
	}
}

// TestAnEventLogThatGrowsTooMuchFailsItsJob by name; the job's files are within its share of the disk.
func TestAnEventLogThatGrowsTooMuchFailsItsJob(t *testing.T) {
	t.Parallel()
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--job-disk", "1GiB",
		"--job-events", "100KiB"), t}
	t.Cleanup(c.stop)
	c.startDriver()
	c.join("a")
	id := c.submit("--data", generated(t), "--solver", "gd", "--sync", "bsp", "--tol", "0", "--max-iterations",
		"1000000")
	var j job
	if err := lab.Await("the end of "+id, func() (ended bool, err error) {
		j, err = c.job(id)
		return j.State != "running" && j.State != "waiting", err
	}); err != nil {
		t.Fatal(err)
	}
	if j.State != "failed" || !strings.Contains(j.Why, "--job-events") || !strings.Contains(j.Why, "event log") {
		t.Errorf("%+v", j)
	}
}
