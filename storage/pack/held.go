package pack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
)

// Held is the splits that an executor holds: those of packs on its machine in place, and
// those received from peers in its own files.
type Held struct {
	dir string
	mu  struct {
		sync.Mutex
		splits map[SplitKey]*heldSplit
	}
}

// SplitKey names a split within a job: the node that made its pack, and its
// index.
type SplitKey struct{ Node, Split int }

type heldSplit struct {
	path  string
	meta  *Meta
	split *Split // mapped at first use
}

// NewHeld holds no splits; those that are received are kept under dir.
func NewHeld(dir string) (*Held, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, disk.WriteError("use the executor's directory", dir, err)
	}
	s := &Held{dir: dir}
	s.mu.splits = map[SplitKey]*heldSplit{}
	return s, nil
}

// Adopt takes a split from a pack on this machine, in place. Its hash is the
// one recorded when the pack was built.
func (s *Held) Adopt(key SplitKey, dir string, meta *Meta) (plan.Digest, error) {
	path := filepath.Join(dir, SplitFile(key.Split))
	if _, err := os.Stat(path); err != nil {
		return plan.Digest{}, disk.OpenError(path, err)
	}
	s.hold(key, &heldSplit{path: path, meta: meta})
	return meta.Splits[key.Split].SHA256, nil
}

// Receive writes a split that a peer sends, by fill, to a new file and returns the hash
// of the file. The split is held only if that is the announced hash; of two that arrive
// at once, the first is kept.
func (s *Held) Receive(key SplitKey, meta *Meta, fill func(io.Writer) error) (plan.Digest, error) {
	want := meta.Splits[key.Split]
	f, err := os.CreateTemp(s.dir, fmt.Sprintf("node-%d-%s.*", key.Node, SplitFile(key.Split)))
	if err != nil {
		return plan.Digest{}, disk.WriteError("receive a split into", s.dir, err)
	}
	defer f.Close()
	got, err := fillFile(f, want.Bytes, fill)
	if err == nil && got == want.SHA256 && s.hold(key, &heldSplit{path: f.Name(), meta: meta}) {
		return got, nil
	}
	return got, errors.Join(err, os.Remove(f.Name()))
}

// fillFile fills a file with at most n bytes, and returns the hash of what it has.
func fillFile(f *os.File, most int64, fill func(io.Writer) error) (plan.Digest, error) {
	in := &receiver{f: f, most: most}
	if err := fill(in); err != nil {
		if in.err != nil {
			err = disk.WriteError("receive a split into", filepath.Dir(f.Name()), in.err)
		}
		return plan.Digest{}, err
	}
	if in.n != most {
		return plan.Digest{}, nil // no split has the hash of nothing
	}
	return hashOf(f)
}

// hashOf returns the hash of a whole file, read from its beginning.
func hashOf(f *os.File) (plan.Digest, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return plan.Digest{}, disk.WriteError("read again", f.Name(), err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return plan.Digest{}, disk.WriteError("read again", f.Name(), err)
	}
	return plan.DigestFromBytes(sum.Sum(nil)), nil
}

// receiver writes the expected bytes to a file, and counts all that arrive.
type receiver struct {
	f       io.Writer
	n, most int64
	err     error // of the disk
}

func (r *receiver) Write(p []byte) (int, error) {
	if r.n += int64(len(p)); r.n > r.most {
		return len(p), nil // it is refused for its length
	}
	n, err := r.f.Write(p)
	r.err = err
	return n, err
}

// hold reports whether the split is held from now on as h describes; false where
// it was held before.
func (s *Held) hold(key SplitKey, h *heldSplit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.mu.splits[key]; had != nil && had.digest(key) == h.digest(key) {
		return false
	}
	s.mu.splits[key] = h // in the place of another pack's, which is still mapped where it is in use
	return true
}

func (h *heldSplit) digest(key SplitKey) plan.Digest { return h.meta.Splits[key.Split].SHA256 }

// Holds reports whether the split of a pack is held.
func (s *Held) Holds(key SplitKey, meta *Meta) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.mu.splits[key]
	return h != nil && h.digest(key) == meta.Splits[key.Split].SHA256
}

// Open maps a split that is held; it stays mapped until Close.
func (s *Held) Open(key SplitKey) (*Split, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.mu.splits[key]
	if h == nil {
		return nil, fault.Newf(fault.FetchFailed, "open", fmt.Sprintf("split %d", key.Split),
			"this executor does not hold it")
	}
	if h.split == nil {
		opened, err := OpenSplit(h.path, h.meta, key.Split)
		if err != nil {
			return nil, err
		}
		h.split = opened
	}
	return h.split, nil
}

// Path returns the file of a split that is held; empty where it is not.
func (s *Held) Path(key SplitKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.mu.splits[key]; h != nil {
		return h.path
	}
	return ""
}

// Send writes a held split's bytes to a peer.
func (s *Held) Send(key SplitKey, w io.Writer) error {
	path := s.Path(key)
	if path == "" {
		return fault.Newf(fault.FetchFailed, "send", fmt.Sprintf("split %d", key.Split),
			"this executor does not hold it")
	}
	f, err := os.Open(path)
	if err != nil {
		return disk.OpenError(path, err)
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Close unmaps all splits and removes received files.
func (s *Held) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, h := range s.mu.splits {
		if h.split != nil {
			errs = append(errs, h.split.Close())
		}
	}
	s.mu.splits = map[SplitKey]*heldSplit{}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
