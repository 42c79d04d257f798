package crash

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/volley-engine/volley/internal/disk"
)

// must ends the test at an error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// content is a file's text; "none" where there is no file.
func content(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "none"
	}
	return string(raw)
}

// replacing are ways to put a new text in a file's place, and what each may leave of
// "old" and "new" beside these; a reader that waited for its end may find what it promised.
var replacing = map[string]struct {
	do      func(t *testing.T, path string)
	mixture bool // something else may be left
	keeps   bool // what is promised is there
}{
	"in place": {func(t *testing.T, path string) { must(t, disk.WriteSynced(path, []byte("new"), 0o600)) }, true, true},
	"renamed, its content not synced": {func(t *testing.T, path string) {
		must(t, disk.WriteFile(path+".part", []byte("new"), 0o600), disk.Rename(path+".part", path),
			disk.SyncDir(filepath.Dir(path)))
	}, true, false},
	"renamed, its name not synced": {func(t *testing.T, path string) {
		must(t, disk.WriteSynced(path+".part", []byte("new"), 0o600), disk.Rename(path+".part", path))
	}, false, false},
	"renamed, and all is synced": {func(t *testing.T, path string) {
		must(t, disk.WriteSynced(path+".part", []byte("new"), 0o600), disk.Rename(path+".part", path),
			disk.SyncDir(filepath.Dir(path)))
	}, false, true},
	"removed first": {func(t *testing.T, path string) {
		must(t, disk.WriteSynced(path+".part", []byte("new"), 0o600), disk.Remove(path),
			disk.Rename(path+".part", path), disk.SyncDir(filepath.Dir(path)))
	}, true, true},
	"swapped": {func(t *testing.T, path string) {
		must(t, disk.WriteSynced(path+".part", []byte("new"), 0o600), disk.Swap(path+".part", path),
			disk.SyncDir(filepath.Dir(path)), disk.Remove(path+".part"))
	}, false, true},
}

// TestWhatIsLeftOfAReplacedFile: the known ways, right and wrong.
func TestWhatIsLeftOfAReplacedFile(t *testing.T) {
	for name, way := range replacing {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.WriteFile(filepath.Join(root, "file"), []byte("old"), 0o600))
			r := Record(t, root)
			way.do(t, filepath.Join(root, "file"))
			r.Promise()
			r.End(t)
			mixture, broken, states := "", "", 0
			for s := range r.States(t) {
				states++
				switch got := content(filepath.Join(s.Put(t), "file")); {
				case got != "old" && got != "new":
					mixture = s.String()
				case s.Promised > 0 && got != "new":
					broken = s.String()
				}
			}
			if (mixture != "") != way.mixture || way.keeps && broken != "" || !way.keeps && !way.mixture &&
				broken == "" {
				t.Errorf("of %d states a mixture: %q, without what was promised: %q", states, mixture, broken)
			}
		})
	}
}

// TestADirectoryIsNamedLast: files that are in a directory are lost with its name, and
// those that are not synced may be empty.
func TestADirectoryIsNamedLast(t *testing.T) {
	for _, synced := range []bool{false, true} {
		root := t.TempDir()
		r := Record(t, root)
		dir := filepath.Join(root, "made")
		must(t, disk.MkdirAll(dir, 0o700), disk.WriteSynced(filepath.Join(dir, "a"), []byte("a"), 0o600),
			disk.WriteSynced(filepath.Join(dir, "b"), []byte("b"), 0o600))
		if synced {
			must(t, disk.SyncDir(dir))
		}
		must(t, disk.Rename(dir, filepath.Join(root, "there")), disk.SyncDir(root))
		r.Promise()
		r.End(t)
		half := false
		for s := range r.States(t) {
			there := filepath.Join(s.Put(t), "there")
			a, b := content(filepath.Join(there, "a")), content(filepath.Join(there, "b"))
			half = half || a != b && (a == "none" || b == "none") && exists(there)
			if synced && s.Promised > 0 && (a != "a" || b != "b") {
				t.Errorf("%v: %s %s", s, a, b)
			}
		}
		if half == synced {
			t.Errorf("names synced: %v; a half is there: %v", synced, half)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestALogIsTorn: of what is appended and not synced any part may be there, of what is
// synced all.
func TestALogIsTorn(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "log")
	must(t, os.WriteFile(path, []byte("zero\n"), 0o600))
	r := Record(t, root)
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.Seek(0, 2)
	must(t, err)
	for _, line := range []string{"one\n", "two\n"} {
		_, err := f.Write([]byte(line))
		must(t, err, f.Sync())
		r.Promise()
	}
	must(t, f.Close())
	r.End(t)
	want := map[string]bool{"zero\n": true, "zero\non": true, "zero\n\x00\x00\x00\x00": true, "zero\none\n": true,
		"zero\none\ntw": true, "zero\none\n\x00\x00\x00\x00": true, "zero\none\ntwo\n": true}
	for s := range r.States(t) {
		got := content(filepath.Join(s.Put(t), "log"))
		if _, known := want[got]; !known {
			t.Errorf("%v: %q", s, got)
		}
		want[got] = false
	}
	for missing, is := range want {
		if is {
			t.Errorf("nobody finds %q", missing)
		}
	}
}

// TestTheLastStateIsTheDirectory: what the recorder was told is what is there.
func TestTheLastStateIsTheDirectory(t *testing.T) {
	root := t.TempDir()
	r := Record(t, root)
	f, err := disk.CreateTemp(root, "x-*")
	must(t, err)
	_, err = f.Write([]byte("hello"))
	must(t, err, f.Truncate(3), f.Close())
	tmp, err := disk.MkdirTemp(root, "dir-*")
	must(t, err, disk.MkdirAll(filepath.Join(tmp, "a", "b"), 0o700),
		disk.WriteFile(filepath.Join(tmp, "a", "c"), []byte("c"), 0o600),
		disk.Rename(f.Name(), filepath.Join(tmp, "a", "b", "d")))
	must(t, disk.WriteFile(filepath.Join(tmp, "a", "c"), []byte("longer"), 0o600),
		disk.RemoveAll(filepath.Join(tmp, "a", "b")))
	r.End(t)
}

// TestWhatIsPromisedIsThereWhereNothingIsLost: also of a file that is written on and on.
func TestWhatIsPromisedIsThereWhereNothingIsLost(t *testing.T) {
	root := t.TempDir()
	r := Record(t, root)
	f, err := disk.Create(filepath.Join(root, "log"))
	must(t, err)
	for range 3 {
		_, err := f.Write([]byte("x"))
		must(t, err)
		r.Promise()
	}
	must(t, f.Close())
	r.End(t)
	for s := range r.States(t) {
		if got := content(filepath.Join(s.Put(t), "log")); len(s.Lost) == 0 && s.Promised > 0 && len(got) < s.Promised {
			t.Errorf("%v: %q after %d promises", s, got, s.Promised)
		}
	}
}
