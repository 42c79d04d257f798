package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// upload puts a file into a store.
func upload(t *testing.T, path, name string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = objects.Put(t.Context(), name, raw)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ran runs a command that succeeds.
func ran(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := volley(t, args...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	return out
}

// TestAJobOverObjects: on a cluster and on one machine a job reads its data from a store, keeps its model and its
// predictions there, and has the bytes that files give.
func TestAJobOverObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	roots := storetest.Roots(t) // before the daemons: their environment has the credentials
	c := newCluster(t, "e1", "e2")
	data := generated(t)
	flags := []string{"--sync", "bsp", "--max-iterations", "8", "--tol", "0", "--splits", "6"}
	want := filepath.Join(t.TempDir(), "want")
	ran(t, append([]string{"run", "logistic", "--data", data, "--out", want}, flags...)...)
	predictions := ran(t, "predict", want, "--data", data, "--out", "-")
	for _, root := range roots {
		upload(t, data, root+"/data/train.libsvm")
		for _, how := range [][]string{{"run", "logistic"}, {"submit", "logistic", "--driver", c.Addr}} {
			out := root + "/models/" + how[0]
			args := append(append(how, "--data", root+"/data", "--out", out), flags...)
			ran(t, args...)
			storedModel(t, out, want)
			if _, errs, code := volley(t, args...); code == 0 || !strings.Contains(errs, "exists already") {
				t.Errorf("the model is replaced: exit %d: %s", code, errs)
			}
			ran(t, append(args, "--overwrite")...)
			storedModel(t, out, want)
			if got := ran(t, "predict", out, "--data", root+"/data/*.libsvm", "--out", "-"); got != predictions {
				t.Errorf("%s predicts %.100q, and a file %.100q", out, got, predictions)
			}
			if got := ran(t, "inspect", out); !strings.Contains(got, "logistic") {
				t.Error(got)
			}
		}
		to := root + "/predictions"
		ran(t, "submit", "predict", root+"/models/submit", "--driver", c.Addr, "--data", root+"/data", "--output",
			to)
		if got := storedTable(t, to); got != predictions {
			t.Errorf("in %s are %.100q, not %.100q", to, got, predictions)
		}
	}
}

// storedModel compares the model of a store with that of a directory.
func storedModel(t *testing.T, stored, dir string) {
	t.Helper()
	for _, name := range []string{"model.json", "weights.arrow"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var found bool
		err = objects.List(t.Context(), stored+"/", func(i objects.Info) bool {
			raw, err := objects.Get(t.Context(), i.Name, 1<<20)
			found = found || err == nil && bytes.Equal(raw, want)
			return true
		})
		if err != nil || !found {
			t.Errorf("%s has no %s with the bytes of %s: %v", stored, name, dir, err)
		}
	}
}

// storedTable returns the lines of a place's tables as one table.
func storedTable(t *testing.T, dir string) string {
	t.Helper()
	local := t.TempDir()
	err := objects.List(t.Context(), dir+"/part-", func(i objects.Info) bool {
		raw, err := objects.Get(t.Context(), i.Name, 1<<24)
		if err == nil {
			err = os.WriteFile(filepath.Join(local, objects.Base(i.Name)), raw, 0o600)
		}
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tableOf(t, local)
}

// TestARunGoesOnFromAStore: from the checkpoints that it keeps there, to the bytes of a run without a break.
func TestARunGoesOnFromAStore(t *testing.T) {
	dir := storetest.S3(t)
	data := generated(t)
	flags := []string{"--data", data, "--sync", "bsp", "--tol", "0", "--splits", "6"}
	want := filepath.Join(t.TempDir(), "want")
	ran(t, append([]string{"run", "logistic", "--max-iterations", "12", "--out", want}, flags...)...)
	kept := append(flags, "--checkpoint-dir", dir+"/checkpoints", "--checkpoint-every", "2")
	half := append([]string{"run", "logistic", "--max-iterations", "6"}, kept...)
	ran(t, half...)
	_, errs, code := volley(t, half...)
	if code == 0 || !strings.Contains(errs, "another run") {
		t.Errorf("exit %d: %s", code, errs)
	}
	args := append([]string{"run", "logistic", "--max-iterations", "12", "--resume", "--out", dir + "/model"}, kept...)
	_, errs, code = volley(t, append(args, "--reg", "0.5")...)
	if code == 0 || !strings.Contains(errs, "other options") {
		t.Errorf("with other options: exit %d: %s", code, errs)
	}
	var names []string
	if err := objects.List(t.Context(), dir+"/checkpoints/", func(i objects.Info) bool {
		names = append(names, i.Name)
		return true
	}); err != nil || len(names) != 2 {
		t.Fatalf("%q %v", names, err)
	}
	if err := objects.Put(t.Context(), names[1], []byte("{}")); err != nil { // the newest is damaged
		t.Fatal(err)
	}
	_, errs, code = volley(t, args...)
	if code != 0 || strings.Contains(errs, "iteration 1 ") || strings.Contains(errs, "iteration 4 ") ||
		!strings.Contains(errs, "iteration 5 ") {
		t.Errorf("exit %d: it goes on from another iteration than the fourth: %s", code, errs)
	}
	storedModel(t, dir+"/model", want)
}

// TestWhatAStoreLacks: mistakes in names are named, and nothing is left behind.
func TestWhatAStoreLacks(t *testing.T) {
	root := storetest.S3(t)
	data := generated(t)
	for name, test := range map[string]struct {
		says string
		args []string
	}{
		"no object":    {root + "/none", []string{"run", "logistic", "--data", root + "/none"}},
		"no match":     {"no object matches", []string{"run", "logistic", "--data", root + "/*.csv"}},
		"no bucket":    {"no such bucket", []string{"run", "logistic", "--data", "s3://volley-none/x"}},
		"another kind": {"ftp://host/x", []string{"run", "logistic", "--data", "ftp://host/x"}},
		"a web server": {"web server", []string{"run", "logistic", "--data", data, "--out", "https://127.0.0.1:1/m"}},
		"no model":     {root + "/model", []string{"predict", root + "/model", "--data", data, "--out", "-"}},
		"an event log": {"event-log", []string{"run", "logistic", "--data", data, "--event-log", root + "/log"}},
		"no checkpoint": {"web server", []string{"run", "logistic", "--data", data, "--checkpoint-dir",
			"https://127.0.0.1:1/c", "--checkpoint-every", "1"}},
	} {
		_, errs, code := volley(t, test.args...)
		if code == 0 || !strings.Contains(errs, test.says) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
}
