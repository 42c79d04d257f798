package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slowLinks is a cluster whose executors get splits from one another over links of so
// many bytes a second: far longer than a pass over them takes.
var slowLinks = []string{"--executors", "4", "--pace", "link:4MB/s"}

// TestSlowLinksChangeNoAnswer: passes that are leased ask for splits that others hold,
// and are over before these arrive; the bytes are those of bsp all the same.
func TestSlowLinksChangeNoAnswer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "train.libsvm")
	if _, errs, code := volley(t, "generate", "logistic", "--rows", "40000", "--features", "60", "--eps", "0.3",
		"--out", data); code != 0 {
		t.Fatal(errs)
	}
	flags := []string{"--data", data, "--reg", "1e-3", "--solver", "nesterov", "--max-iterations", "150", "--tol", "0"}
	want := filepath.Join(t.TempDir(), "bsp")
	runJob(t, "logistic", slices.Concat(flags, []string{"--executors", "1", "--sync", "bsp", "--out", want})...)
	for range 3 {
		dir := t.TempDir()
		got, log := filepath.Join(dir, "steal"), filepath.Join(dir, "log")
		_, errs, code := volley(t, slices.Concat([]string{"run", "logistic"}, flags, slowLinks,
			[]string{"--sync", "steal", "--out", got, "--event-log", log})...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, strings.TrimSpace(errs))
		}
		if modelBytes(t, want) != modelBytes(t, got) {
			t.Error("over slow links the model is another one")
		}
		if _, errs, code := volley(t, "replay", log); code != 0 {
			t.Errorf("its log is not replayed: %s", errs)
		}
	}
}
