package integration

import (
	"os"
	"strings"
	"testing"
	"time"
)

// executorsOf is what volley executors says.
func (c *cluster) executorsOf() string {
	c.t.Helper()
	out, errs, code := volley(c.t, "executors", "--driver", c.Addr)
	if code != 0 {
		c.t.Fatal(errs)
	}
	return out
}

// says waits until volley executors has a text.
func (c *cluster) says(text string) {
	c.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(c.executorsOf(), text) {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("volley executors never says %q:\n%s", text, c.executorsOf())
		}
	}
}

// TestAnExecutorLosesItsDirectory: it is shown as unfit, and why. A job that has no other
// executor waits for it and is done when the directory is back; one that has goes on there.
func TestAnExecutorLosesItsDirectory(t *testing.T) {
	t.Parallel()
	data := generated(t)
	c := newCluster(t, "e1")
	want := undisturbed(t, jobFlags(data)...)
	dir := c.Dir + "/e1"
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	id := c.submit(jobFlags(data)...)
	c.await(id, "the wait", func(j job) bool {
		return strings.Contains(j.Why, "e1") &&
			strings.Contains(j.Why, "no such file")
	})
	c.says("unfit")
	c.join("e2")
	c.ended(id)
	c.gives(id, want)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for strings.Contains(c.executorsOf(), "unfit") {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(c.executorsOf())
		}
	}
	c.Executors["e2"].Kill()
	id = c.submit(jobFlags(data)...)
	c.ended(id)
	c.gives(id, want)
}
