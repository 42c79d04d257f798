package integration

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAJobIsLookedInto while it runs: stacks and profiles of its process and of its runners, and of no job that has
// ended.
func TestAJobIsLookedInto(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.join("e1", "--pace", "rate:20000")
	c.join("e2")
	id := c.submit(append(jobFlags(generated(t)), "--max-iterations", "2000")...)
	c.atStep(id, 3)
	out, errs, code := volley(t, "job", id, "--driver", c.Addr, "--stacks")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"=== the job's process", "=== the runner on e1", "=== the runner on e2", "RunStep",
		"runRunner"} {
		if !strings.Contains(out, want) {
			t.Errorf("the stacks lack %q", want)
		}
	}
	dir := t.TempDir()
	if out, errs, code = volley(t, "job", id, "--driver", c.Addr, "--profile", "300ms", "--out", dir); code != 0 {
		t.Fatal(errs)
	}
	for _, name := range []string{id, id + "-e1", id + "-e2"} {
		raw, err := os.ReadFile(filepath.Join(dir, name+".pprof"))
		if err != nil || !strings.Contains(out, name+".pprof") {
			t.Fatalf("%v, %s", err, out)
		}
		z, err := gzip.NewReader(bytes.NewReader(raw)) // as pprof has it
		if err == nil {
			raw, err = io.ReadAll(z)
		}
		if err != nil || !bytes.Contains(raw, []byte("samples")) {
			t.Errorf("%s is no profile: %v", name, err)
		}
	}
	if _, errs, code := volley(t, "cancel", id, "--driver", c.Addr); code != 0 {
		t.Fatal(errs)
	}
	c.await(id, "the cancellation", func(j job) bool { return j.State == "cancelled" })
	if _, errs, code := volley(t, "job", id, "--driver", c.Addr, "--stacks"); code == 0 ||
		!strings.Contains(errs, "only one that runs") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, code := volley(t, "job", "rm", id, "--driver", c.Addr); code != 0 {
		t.Error(errs)
	}
	if _, errs, code := volley(t, "job", id, "--driver", c.Addr); code == 0 || !strings.Contains(errs,
		"no longer kept") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
