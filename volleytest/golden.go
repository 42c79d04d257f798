package volleytest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// updated are the files that this process has written anew.
var updated sync.Map

// Golden compares bytes with a file, such as testdata/words.txt. With the environment variable UPDATE=1 the file is
// written anew, once: what comes after that is compared with it.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	full, _ := filepath.Abs(path)
	if _, before := updated.LoadOrStore(full, true); os.Getenv("UPDATE") == "1" && !before {
		if err := writeGolden(path, got); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 writes the file)", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	line, a, b := difference(string(got), string(want))
	t.Errorf("%s, line %d: got %q, want %q (UPDATE=1 writes the file anew)", path, line, a, b)
}

// GoldenRows compares rows, as JSON, one a line, with a file.
func GoldenRows[T any](t testing.TB, path string, rows []T) {
	t.Helper()
	var out bytes.Buffer
	for i := range rows {
		raw, err := json.Marshal(rows[i])
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	Golden(t, path, out.Bytes())
}

// GoldenDir compares the parts of a directory that a program has saved, one after the other, with a file.
func GoldenDir(t testing.TB, path, dir string) {
	t.Helper()
	parts, err := fs.Glob(os.DirFS(dir), "part-*") // in order
	if err != nil || len(parts) == 0 {
		t.Fatalf("%s has no parts: %v", dir, err)
	}
	var all []byte
	for _, p := range parts {
		raw, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	Golden(t, path, all)
}

func writeGolden(path string, got []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, got, 0o644)
}

// difference returns the first line, from 1, in which two texts differ, and the line in each.
func difference(got, want string) (line int, a, b string) {
	left, right := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(left), len(right)) {
		a, b = "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		if a != b {
			return i + 1, a, b
		}
	}
	return 0, "", ""
}
