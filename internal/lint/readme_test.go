package lint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheProgramOfTheReadmeRuns as it stands there.
func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(rootPath, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), "```go\npackage main")
	code, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the README has no whole program")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte("package main"+code), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(rootPath)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "examples", "readme",
		"main.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	placed := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(placed, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("so be it\nbe it so\nso\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "words")
	build := exec.Command("go", "build", "-overlay", placed, "-o", program, "./examples/readme")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, "--data-dir", dir, "--", "--input", text).Output()
	if got := string(out); err != nil || !strings.Contains(got, "3 so\n") || !strings.Contains(got, "2 be\n") ||
		strings.Count(got, "\n") != 3 {
		t.Errorf("%v\n%s", err, got)
	}
}
