package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestANewProgramIsTestedAndRuns: what volley new writes, by the commands that it names.
func TestANewProgramIsTestedAndRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "words")
	out, errs, code := volley(t, "new", dir, "--module", "example.org/words", "--replace", "..")
	if code != 0 || !strings.Contains(out, "go mod tidy && make test run") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	do := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		raw, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, raw)
		}
		return string(raw)
	}
	do("go", "mod", "tidy")
	do("go", "vet", "./...")
	do("go", "test", "./...")
	said := do("go", "run", ".", "--executors", "2", "--", "--input", "go.mod", "--output", "counts")
	if !strings.Contains(said, "different words in counts") || !strings.Contains(said, "indirect") {
		t.Error(said)
	}
	if _, err := os.Stat(filepath.Join(dir, "counts", "_SUCCESS")); err != nil {
		t.Error(err)
	}
	for name, says := range map[string]string{dir: "it exists and is not empty", "Words": "is no name of a program",
		"1st": "is no name of a program"} {
		if _, errs, code := volley(t, "new", name); code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
	if _, errs, code := volley(t, "new", filepath.Join(t.TempDir(), "x"), "--replace", t.TempDir()); code != 2 ||
		!strings.Contains(errs, "there is no go.mod") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
