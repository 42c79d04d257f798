package main

import (
	"os"
	"path/filepath"
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
