package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func put(t *testing.T, s *Store, text string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	w, err := s.Create(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestProgramsAreKeptByDigest, whole or not at all, the latest used of them.
func TestProgramsAreKeptByDigest(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := put(t, s, "first")
	path, ok := s.Path(first)
	if info, err := os.Stat(path); !ok || err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v %v", ok, info, err)
	}
	w, err := s.Create(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("something else"))
	if err := w.Commit(); err == nil {
		t.Error("another program is taken for the one announced")
	}
	w.Close()
	for _, digest := range []string{"", "../../etc/passwd", "00", strings.Repeat("g", 64)} {
		if _, err := s.Create(digest); err == nil {
			t.Errorf("%q is a digest", digest)
		}
		if _, ok := s.Path(digest); ok {
			t.Errorf("%q is there", digest)
		}
	}
	old := time.Now().Add(-time.Hour)
	var others []string
	for i := range keep - 1 {
		d := put(t, s, fmt.Sprint(i))
		_ = os.Chtimes(filepath.Join(dir, d), old, old)
		others = append(others, d)
	}
	s.Path(first)
	put(t, s, "later")
	put(t, s, "latest")
	if _, ok := s.Path(first); !ok {
		t.Error("the program that was used last is gone")
	}
	left := 0
	for _, d := range others {
		if _, ok := s.Path(d); ok {
			left++
		}
	}
	if left != keep-3 {
		t.Errorf("%d of %d old programs are left", left, keep)
	}
	if n := count(t, dir); n != keep {
		t.Errorf("%d programs", n)
	}
}

// TestWhatIsNoProgram of the cluster is refused before it travels.
func TestWhatIsNoProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Digest(self, runtime.GOARCH); err != nil || len(d) != 64 {
		t.Errorf("%q %v", d, err)
	}
	other := map[string]string{"amd64": "arm64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	if _, err := Digest(self, other); err == nil || !strings.Contains(err.Error(), "GOARCH="+other) {
		t.Errorf("%v", err)
	}
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(text, runtime.GOARCH); err == nil {
		t.Error("a script is a program")
	}
}

// TestAProgramThatAnotherDriverHasSentIsRun although it came as any other file does.
func TestAProgramThatAnotherDriverHasSentIsRun(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest := put(t, s, "sent")
	if err := os.Chmod(filepath.Join(dir, digest), 0o600); err != nil {
		t.Fatal(err)
	}
	path, ok := s.Path(digest)
	if info, err := os.Stat(path); !ok || err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v %v", ok, info, err)
	}
}
