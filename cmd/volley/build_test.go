package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAPlaceIsOfOneProcess at a time: another builds elsewhere meanwhile, and what was not submitted for long is gone.
func TestAPlaceIsOfOneProcess(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	old := filepath.Join(cache, "volley", "programs", "old")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * keptPrograms)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	place := func(target string) (string, func()) {
		t.Helper()
		dir, done, err := placeOf(target)
		if err != nil {
			t.Fatal(err)
		}
		return dir, done
	}
	first, done := place("./a")
	other, otherDone := place("./b")
	defer otherDone()
	meanwhile, away := place("./a")
	if first == other || first == meanwhile {
		t.Errorf("%s, %s and %s", first, other, meanwhile)
	}
	away()
	if _, err := os.Stat(meanwhile); err == nil {
		t.Error("what was built elsewhere has stayed")
	}
	done()
	again, done := place("./a")
	defer done()
	if again != first {
		t.Errorf("built in %s, and then in %s", first, again)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what was not submitted for long has stayed")
	}
}

// TestAProgramThatWasCutShortIsBuiltAgain: what a killed go build has left looks whole to the next one.
func TestAProgramThatWasCutShortIsBuiltAgain(t *testing.T) {
	for name, value := range map[string]string{"GOCACHE": goEnv(t, "GOCACHE"), "XDG_CACHE_HOME": t.TempDir()} {
		t.Setenv(name, value)
	}
	pkg := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/short\n", "main.go": "package main\n\n" +
		"func main() {}\n"} {
		if err := os.WriteFile(filepath.Join(pkg, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	size := func() (string, int64) {
		t.Helper()
		path, done, err := build(t.Context(), pkg)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return path, info.Size()
	}
	path, want := size()
	if err := os.Truncate(path, want/2); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), whole)); err != nil {
		t.Fatal(err)
	}
	if again, got := size(); again != path || got != want {
		t.Errorf("%s has %d bytes, %s had %d", again, got, path, want)
	}
}

// goEnv returns a setting of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
