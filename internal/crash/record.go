package crash

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/volley-engine/volley/internal/disk"
)

// Recording is what was done to a directory, from what it held at first.
type Recording struct {
	root string
	base *inode
	stop func()

	mu      sync.Mutex
	ops     []disk.Op
	promise []int // how many operations had been done at each promise
}

// Record begins to record what is done to a directory and everything below it. One
// recording at a time.
func Record(t testing.TB, root string) *Recording {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recording{root: root}
	if r.base, err = read(root); err != nil {
		t.Fatal(err)
	}
	r.stop = disk.Record(r.tell)
	t.Cleanup(r.stop)
	return r
}

func (r *Recording) tell(op disk.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Promise notes that a caller was assured that the operations so far are durable:
// from here on no state may be without it. The first promise is number 1.
func (r *Recording) Promise() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promise = append(r.promise, len(r.ops))
}

// End ends the recording. What was recorded has to account for all that the directory
// holds: else something was done past internal/disk, and no state can be believed.
func (r *Recording) End(t testing.TB) {
	t.Helper()
	r.stop()
	base, effects, err := r.compile()
	if err != nil {
		t.Fatal(err)
	}
	now, err := read(r.root)
	if err != nil {
		t.Fatal(err)
	}
	told := r.state(base, effects, make([]fate, len(effects)), len(r.ops)).tree
	if other := differing(told, now, ""); len(other) > 0 {
		t.Fatalf("done past internal/disk, so that what a loss of power leaves is unknown: %s",
			strings.Join(other, " "))
	}
}

// differing returns the paths where two states differ.
func differing(a, b *inode, path string) (out []string) {
	if a == nil || b == nil || (a.kids == nil) != (b.kids == nil) || a.kids == nil && !bytes.Equal(a.data, b.data) {
		return []string{path}
	}
	names := maps.Clone(a.kids)
	maps.Copy(names, b.kids)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, differing(a.kids[name], b.kids[name], path+"/"+name)...)
	}
	return out
}

// Ops returns the operations, for messages.
func (r *Recording) Ops() []disk.Op { return r.ops }

// inside reports whether a path is below the recorded directory.
func (r *Recording) inside(path string) bool {
	return path == r.root || strings.HasPrefix(path, r.root+string(filepath.Separator))
}

// read returns what lies at a path.
func read(path string) (*inode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		raw, err := os.ReadFile(path)
		return &inode{data: raw}, err
	}
	d := newDir()
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if d.kids[e.Name()], err = read(filepath.Join(path, e.Name())); err != nil {
			return nil, err
		}
	}
	return d, nil
}
