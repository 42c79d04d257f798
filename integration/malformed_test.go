package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerateWritesTheFormatOfTheName reports whether a file is what its name says.
func TestGenerateWritesTheFormatOfTheName(t *testing.T) {
	for name, magic := range map[string]string{"x.parquet": "PAR1", "x.arrow": "ARROW1", "x.csv": "label,",
		"x.libsvm": "0 1:"} {
		path := filepath.Join(t.TempDir(), name)
		if _, errs, code := volley(t, "generate", "logistic", "--rows", "20", "--features", "3", "--out",
			path); code != 0 {
			t.Fatalf("%s: exit %d: %s", name, code, errs)
		}
		if raw, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(raw), magic) {
			t.Errorf("%s begins with %.20q, want %q: %v", name, raw, magic, err)
		}
	}
}

// TestMalformedRowsAreLeftOutWhereRowsHaveNoOrder: of training and evaluation, which
// say how many; not of predictions, whose lines are those of the input.
func TestMalformedRowsAreLeftOutWhereRowsHaveNoOrder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rows := "label,a,b\n" + strings.Repeat("1,2,3\n0,1,5\n1,3,2\n", 20)
	good, bad := write("good.csv", rows), write("bad.csv", rows+"1,x,3\n0,1\n1,2,3,4\n1,\"2\"3,4\n")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	runJob(t, "logistic", "--data", good, "--reg", "0.1", "--out", a)
	if _, errs, code := volley(t, "run", "logistic", "--data", bad, "--reg", "0.1", "--out", b); code != 1 ||
		!strings.Contains(errs, "bad.csv line 62") {
		t.Errorf("by itself: exit %d: %s", code, errs)
	}
	out, errs, code := volley(t, "run", "logistic", "--data", bad, "--reg", "0.1", "--malformed", "drop", "--out", b)
	if code != 0 || !strings.Contains(out, "4 malformed") {
		t.Fatalf("left out: exit %d: %s", code, errs)
	}
	if modelBytes(t, a) != modelBytes(t, b) {
		t.Error("the model is not that of the good rows")
	}
	if _, errs, code := volley(t, "predict", a, "--data", bad, "--malformed", "drop", "--out", "-"); code != 2 ||
		!strings.Contains(errs, "malformed") || strings.Contains(errs, "unknown flag") {
		t.Errorf("predictions: exit %d: %s", code, errs)
	}
}
