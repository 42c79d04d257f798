package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatHasJustArrivedStays, whatever the times of the files before it are: a clock
// that was set back, or a copy of the directory, makes them later than now.
func TestWhatHasJustArrivedStays(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(24 * time.Hour)
	for i := range keep {
		if err := os.Chtimes(filepath.Join(dir, put(t, s, fmt.Sprint("old ", i))), later, later); err != nil {
			t.Fatal(err)
		}
	}
	if fresh := put(t, s, "new"); !has(s, fresh) {
		t.Error("a program was dropped as soon as it had arrived")
	}
	if n := count(t, dir); n > keep {
		t.Errorf("%d programs are kept", n)
	}
}

// TestTheLongestUnusedGoes, by the order of their uses: times that are all the same,
// as on a disk that keeps whole seconds, do not tell.
func TestTheLongestUnusedGoes(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range keep {
		all = append(all, put(t, s, fmt.Sprint("program ", i)))
	}
	for _, used := range []int{0, 3, 5} {
		if !has(s, all[used]) {
			t.Fatal("a program is gone")
		}
	}
	same := time.Now().Truncate(time.Second)
	for _, digest := range all {
		_ = os.Chtimes(filepath.Join(dir, digest), same, same)
	}
	for i := range keep - 3 {
		put(t, s, fmt.Sprint("another ", i))
	}
	for _, used := range []int{0, 3, 5} {
		if !has(s, all[used]) {
			t.Errorf("program %d was used after all others and is dropped before them", used)
		}
	}
}

func has(s *Store, digest string) bool {
	_, ok := s.Path(digest)
	return ok
}

func count(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if valid(e.Name()) {
			n++
		}
	}
	return n
}

// TestWhatNobodyNeedsIsDropped, but not while somebody is about to submit it; nor anything
// that is no program.
func TestWhatNobodyNeedsIsDropped(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest := put(t, s, "a program")
	if s.Drop(digest); !has(s, digest) {
		t.Error("a program that has just arrived was dropped")
	}
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	s.Drop("../" + filepath.Base(dir))
	s.Drop(orderName)
	if _, err := os.Stat(filepath.Join(dir, orderName)); err != nil {
		t.Error(err)
	}
	if s.Drop(digest); has(s, digest) {
		t.Error("a program that nobody needs was not dropped")
	}
}
