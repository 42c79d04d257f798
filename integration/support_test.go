package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/integration/lab"
)

// TestASupportBundle has what is needed to find out what is wrong, and no secret of the cluster.
func TestASupportBundle(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	bad := filepath.Join(t.TempDir(), "bad.libsvm")
	if err := os.WriteFile(bad, []byte("1 1:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := c.submit("--data", bad)
	runs := c.submit("--data", generated(t), "--solver", "gd", "--tol", "0", "--max-iterations", "1000000")
	if err := lab.Await("a job that has failed, and one that runs", func() (bool, error) {
		a, err := c.job(failed)
		b, err2 := c.job(runs)
		return a.State == "failed" && b.Step > 0, errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if said, errs, code := volley(t, "support-bundle", "--driver", c.Addr, "--out", out); code != 0 ||
		strings.TrimSpace(said) != out {
		t.Fatalf("%d: %s%s", code, said, errs)
	}
	files := unpacked(t, out)
	for name, want := range map[string]string{"client.json": "volley/", "driver.json": `"free_bytes"`,
		"drivers.json": "leads", "executors.json": `"a"`, "jobs.json": failed, "metrics.txt": "volley_build_info{",
		"stacks.txt": "goroutine ", "heap.pprof": "", "jobs/" + failed + "/log.0": "bad.libsvm"} {
		if !strings.Contains(files["bundle/"+name], want) {
			t.Errorf("%s has no %q: %.300s", name, want, files["bundle/"+name])
		}
	}
	if len(files["bundle/heap.pprof"]) == 0 {
		t.Error("there is no profile of the memory")
	}
	for _, token := range tokensOf(t, filepath.Join(c.Dir, "driver", "journal")) {
		for name, text := range files {
			if strings.Contains(text, token) {
				t.Errorf("%s has a job's token", name)
			}
		}
	}
	if _, errs, code := volley(t, "support-bundle", "--driver", c.Addr, "--out", out); code == 0 ||
		!strings.Contains(errs, "file exists") {
		t.Errorf("%d: %s", code, errs)
	}
	out = filepath.Join(t.TempDir(), "of-one.tar.gz")
	if _, errs, code := volley(t, "support-bundle", "--driver", c.Addr, "--out", out, "--job", runs); code != 0 {
		t.Fatal(errs)
	}
	files = unpacked(t, out)
	if !strings.Contains(files["of-one/jobs/"+runs+"/stacks.txt"], "goroutine ") {
		t.Errorf("the stacks of a job that runs: %.300s", files["of-one/jobs/"+runs+"/stacks.txt"])
	}
	if _, errs, code := volley(t, "support-bundle", "--driver", c.Addr, "--job", "job-000099"); code == 0 ||
		!strings.Contains(errs, `there is no job "job-000099"`) {
		t.Errorf("%d: %s", code, errs)
	}
	if _, errs, code := volley(t, "cancel", runs, "--driver", c.Addr); code != 0 {
		t.Error(errs)
	}
}

// unpacked has the files of an archive, which only its owner may read.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// tokensOf are the tokens of the jobs in a journal, as its file has them.
func tokensOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "journal.log"))
	if err != nil {
		t.Fatal(err)
	}
	const key = `"token":`
	for rest := string(raw); ; {
		_, after, found := strings.Cut(rest, key)
		if !found {
			break
		}
		var token string
		if err := json.NewDecoder(strings.NewReader(after)).Decode(&token); err == nil && len(token) > 20 {
			out = append(out, token)
		}
		rest = after
	}
	if len(out) == 0 {
		t.Fatal(fmt.Sprint("no token is found in the journal, of ", len(raw), " bytes"))
	}
	return out
}
