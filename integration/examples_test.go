package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// example runs a lesson as its first comment says.
func example(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"run"}, args...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestLessons(t *testing.T) {
	dir := t.TempDir()
	text, numbers := filepath.Join(dir, "text"), filepath.Join(dir, "numbers")
	if err := os.WriteFile(text, []byte("one step\ntwo\nthree steps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintln(&b, i)
	}
	if err := os.WriteFile(numbers, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := example(t, "./examples/01-lines", "--executors", "3", "--", "--input", text, "--word", "step"); !strings.Contains(out, `2 lines contain "step"`) {
		t.Error(out)
	}
	out := example(t, "./examples/02-mean", "--sync", "absp", "--clock", "virtual", "--pace", "static:4,1", "--", "--input", numbers)
	var mean float64
	last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	if _, err := fmt.Sscanf(last, "step 8: share %f, mean so far %f", new(float64), &mean); err != nil || mean < 1950 || mean > 2050 {
		t.Errorf("%v in %q", err, out)
	}
	if out := example(t, "./examples/03-compare", "--input", generated(t)); !strings.Contains(out, "A-BSP") {
		t.Error(out)
	}
	if out := example(t, "./examples/01-lines", "--help"); !strings.Contains(out, "--word") || !strings.Contains(out, "--sync-ratio") {
		t.Error(out)
	}
}
