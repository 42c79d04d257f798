package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// example runs a lesson, with arguments.
func example(t *testing.T, pkg string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t, pkg), args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", pkg, args, err, out)
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
	counts := filepath.Join(dir, "counts")
	if out := example(t, "./examples/01-wordcount", "--executors", "3", "--", "--input", text, "--output",
		counts); !strings.Contains(out, "5 different words") {
		t.Error(out)
	}
	if got := wordCounts(t, counts); !maps.Equal(got,
		map[string]string{"one": "1", "step": "1", "two": "1", "three": "1", "steps": "1"}) {
		t.Error(got)
	}
	out := example(t, "./examples/08-mean", "--sync", "absp", "--clock", "virtual", "--pace", "static:4,1", "--",
		"--input", numbers)
	var mean float64
	last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	if _, err := fmt.Sscanf(last, "step 8: share %f, mean so far %f", new(float64), &mean); err != nil || mean < 1950 ||
		mean > 2050 {
		t.Errorf("%v in %q", err, out)
	}
	if out := example(t, "./examples/09-compare", "--input", generated(t)); !strings.Contains(out, "A-BSP") {
		t.Error(out)
	}
	if out := example(t, "./examples/01-wordcount", "--help"); !strings.Contains(out, "--output") ||
		!strings.Contains(out, "--sync-ratio") {
		t.Error(out)
	}
}

// TestTheLessonWithAModel: customers who come often come back, and the model says so.
func TestTheLessonWithAModel(t *testing.T) {
	t.Parallel()
	visits := filepath.Join(t.TempDir(), "visits.csv")
	var b strings.Builder
	b.WriteString("customer,day,amount\n")
	for i := range 600 {
		often := i%2 == 0
		for day := i % 5; day < 90; day += 1 + map[bool]int{true: 7, false: 31}[often] + i%3 {
			if day <= 60 || often || i%7 == 0 {
				fmt.Fprintf(&b, "c%d,%d,%d.5\n", i, day, (i*31+day*7)%40)
			}
		}
	}
	if err := os.WriteFile(visits, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := example(t, "./examples/11-churn", "-input", visits)
	var auc, accuracy, brier float64
	at := strings.Index(out, "of the others: ")
	if !strings.HasPrefix(out, "600 customers\n") || at < 0 || !strings.Contains(out, "±") {
		t.Fatal(out)
	}
	_, err := fmt.Sscanf(out[at:], "of the others: auc %f, accuracy %f, brier %f", &auc, &accuracy, &brier)
	if err != nil || auc < 0.8 || accuracy < 0.8 || brier > 0.15 {
		t.Errorf("%v: %s", err, out)
	}
}

// wordCounts reads what word count has saved.
func wordCounts(t *testing.T, dir string) map[string]string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	out := map[string]string{}
	parts, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	for _, p := range parts {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			word, n, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if out[word] != "" {
				t.Errorf("%q is counted twice", word)
			}
			out[word] = n
		}
	}
	return out
}

// TestWordCountOfShakespeare is what the machine's own tools count.
func TestWordCountOfShakespeare(t *testing.T) {
	text, err := filepath.Abs(shared(t, "shakespeare/shakespeare.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "counts")
	example(t, "./examples/01-wordcount", "--executors", "2", "--", "--input", text, "--output", dir)
	count := exec.Command("sh", "-c", `gzip -dc "$0" | LC_ALL=C tr -s '[:space:]' '\n' | grep -v '^$' | LC_ALL=C sort | uniq -c`, text)
	out, err := count.Output()
	if err != nil {
		t.Skipf("the machine cannot count words: %v", err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		want[f[1]] = f[0]
	}
	if got := wordCounts(t, dir); !maps.Equal(got, want) {
		t.Errorf("%d words, want %d, or other counts", len(got), len(want))
	}
}
