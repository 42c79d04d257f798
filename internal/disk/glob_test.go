package disk_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volley-engine/volley/internal/disk"
)

// TestADirectoryIsNoPattern: names with what patterns are made of find what is in them, and nothing beside.
func TestADirectoryIsNoPattern(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"data[1]", "data1", "a*", "ab", "q?", `b\s`} {
		dir := filepath.Join(root, name, "part")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"x-2", "x-1", "y-1"} {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{filepath.Join(dir, "x-1"), filepath.Join(dir, "x-2")}
		if got := disk.Glob(filepath.Join(root, name), "*/x-*"); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
		if got := disk.Glob(dir, "x-*"); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := disk.Glob(filepath.Join(root, "none"), "x-*"); got != nil {
		t.Errorf("%v in a directory that is not there", got)
	}
}
