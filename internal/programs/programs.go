// Package programs owns the programs of users on a driver's or an executor's
// disk: by their SHA-256, checked when they arrive, the longest unused dropped
// first.
//
// It must not run them, and knows no network.
package programs

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Most is the size of the largest program that is taken, in bytes.
const Most = 1 << 30

// mode is that of a program's file: its owner runs it.
const mode = 0o700

// keep is how many programs are kept.
const keep = 16

// Store keeps programs under a directory.
type Store struct {
	dir string
	// InUse reports whether a digest must not be dropped; may be nil.
	InUse func(digest string) bool
	mu    sync.Mutex
	used  []string             // digests in the order of their last uses, as the file orderName has it
	last  map[string]time.Time // uses since the store was opened
}

// settling is how long a program stays after it was used: a job that needs it may be about to be
// submitted.
const settling = 10 * time.Minute

// orderName is the file that has the order in which programs were last used: file
// times do not suffice, where a clock was set or a disk keeps whole seconds.
const orderName = "used"

// Open opens a store.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.NoResources, "keep programs in", dir, err)
	}
	for _, f := range disk.Glob(dir, ".arriving-*") { // of one that was killed
		os.Remove(f)
	}
	s := &Store{dir: dir, last: map[string]time.Time{}}
	raw, _ := os.ReadFile(filepath.Join(dir, orderName)) // a missing file counts as empty
	for digest := range strings.FieldsSeq(string(raw)) {
		if valid(digest) {
			s.used = append(s.used, digest)
		}
	}
	return s, nil
}

// use notes that a program was used just now.
func (s *Store) use(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[digest] = time.Now()
	if n := len(s.used); n > 0 && s.used[n-1] == digest {
		return
	}
	s.used = append(slices.DeleteFunc(s.used, func(d string) bool { return d == digest }), digest)
	tmp := filepath.Join(s.dir, ".arriving-"+orderName)
	if os.WriteFile(tmp, []byte(strings.Join(s.used, "\n")+"\n"), 0o600) == nil {
		_ = os.Rename(tmp, filepath.Join(s.dir, orderName)) // it is only about what is kept
	}
}

// valid reports whether a string can be a digest.
func valid(digest string) bool {
	raw, err := hex.DecodeString(digest)
	return err == nil && len(raw) == sha256.Size
}

// Path returns the path of a program; false where it is not there.
func (s *Store) Path(digest string) (string, bool) {
	if !valid(digest) {
		return "", false
	}
	path := filepath.Join(s.dir, digest)
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.Mode().Perm() != mode { // another driver has sent it, as it sends all files
		if err := os.Chmod(path, mode); err != nil {
			return "", false
		}
	}
	s.use(digest)
	return path, true
}

// Writer receives a program.
type Writer struct {
	s      *Store
	f      *os.File
	sum    hash.Hash
	n      int64
	digest string
}

// Create begins to receive the program of a digest.
func (s *Store) Create(digest string) (*Writer, error) {
	if !valid(digest) {
		return nil, fault.Newf(fault.Usage, "take in", "a program", "%q is no digest", digest)
	}
	f, err := os.CreateTemp(s.dir, ".arriving-*")
	if err != nil {
		return nil, fault.New(fault.NoResources, "keep a program in", s.dir, err)
	}
	return &Writer{s: s, f: f, sum: sha256.New(), digest: digest}, nil
}

// Write writes a part.
func (w *Writer) Write(p []byte) (int, error) {
	if w.n += int64(len(p)); w.n > Most {
		return 0, fault.Newf(fault.NoResources, "take in", "a program", "it has more than %d MiB", Most>>20)
	}
	w.sum.Write(p)
	return w.f.Write(p)
}

// Commit keeps the program, if its digest is the announced one.
func (w *Writer) Commit() error {
	if got := hex.EncodeToString(w.sum.Sum(nil)); got != w.digest {
		return fault.Newf(fault.Corrupt, "take in", "a program", "its digest is %s, %s was announced", got[:12],
			w.digest[:12])
	}
	if err := errors.Join(w.f.Chmod(mode), w.f.Sync()); err != nil {
		return fault.New(fault.NoResources, "keep a program in", w.s.dir, err)
	}
	if err := w.f.Close(); err != nil { // it cannot be run while it is open for writing
		return fault.New(fault.NoResources, "keep a program in", w.s.dir, err)
	}
	if err := os.Rename(w.f.Name(), filepath.Join(w.s.dir, w.digest)); err != nil {
		return fault.New(fault.NoResources, "keep a program in", w.s.dir, err)
	}
	w.s.use(w.digest)
	w.s.dropOld()
	return nil
}

// Close drops what was not committed.
func (w *Writer) Close() {
	w.f.Close()
	os.Remove(w.f.Name())
}

// dropOld removes the programs that were not used for longest, beyond those that are kept.
func (s *Store) dropOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, _ := os.ReadDir(s.dir)
	var all []string
	for _, e := range entries {
		if valid(e.Name()) {
			all = append(all, e.Name())
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return slices.Index(s.used, b) - slices.Index(s.used, a) })
	for _, old := range all[min(keep, len(all)):] {
		if s.InUse != nil && s.InUse(old) {
			continue
		}
		s.remove(old)
	}
}

// remove removes a program; s.mu is held.
func (s *Store) remove(digest string) {
	os.Remove(filepath.Join(s.dir, digest))
	delete(s.last, digest)
	s.used = slices.DeleteFunc(s.used, func(d string) bool { return d == digest })
}

// Drop removes a program that no job needs any more, unless it was used just now.
func (s *Store) Drop(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[digest]; valid(digest) && (!ok || time.Since(last) > settling) {
		s.remove(digest)
	}
}

// machines are the ELF machines by Go's names of architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}

// Digest reads a program and returns its digest. One that cannot run on an
// architecture is refused.
func Digest(path, arch string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fault.New(fault.Usage, "submit", path, err)
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return "", fault.Newf(fault.Usage, "submit", path,
			"it is no Linux program").WithHint("build it with GOOS=linux")
	}
	if want, ok := machines[arch]; ok && e.Machine != want {
		return "", fault.Newf(fault.Usage, "submit", path, "it is built for %v, the cluster is %s", e.Machine, arch).
			WithHint(fmt.Sprintf("build it with GOARCH=%s", arch))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", fault.New(fault.Usage, "submit", path, err)
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err != nil || n > Most {
		return "", fault.Newf(fault.Usage, "submit", path, "it cannot be read, or has more than %d MiB", Most>>20)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
