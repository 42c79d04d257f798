package storage

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

// Store is what one executor holds: splits of packs, taken from the cache of
// its machine or received from a peer into files of its own.
type Store struct {
	dir string
	mu  struct {
		sync.Mutex
		held     map[SplitKey]*heldSplit
		shuffles map[ShuffleKey]*MapOutput
		small    int // bytes of those in memory
	}
}

// SplitKey names a split within a job: the node that made its pack, and its
// index.
type SplitKey struct{ Node, Split int }

type heldSplit struct {
	path  string
	meta  *PackMeta
	split *Split // mapped at first use
}

// NewStore makes a store that keeps received files under dir.
func NewStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, disk.WriteError("use the executor's directory", dir, err)
	}
	s := &Store{dir: dir}
	s.mu.held, s.mu.shuffles = map[SplitKey]*heldSplit{}, map[ShuffleKey]*MapOutput{}
	return s, nil
}

// Adopt takes a split from a pack on this machine, as it is. Its hash is
// the one recorded when the pack was built.
func (s *Store) Adopt(key SplitKey, dir string, meta *PackMeta) (plan.Digest, error) {
	path := filepath.Join(dir, splitFile(key.Split))
	if _, err := os.Stat(path); err != nil {
		return plan.Digest{}, disk.OpenError(path, err)
	}
	s.hold(key, &heldSplit{path: path, meta: meta})
	return meta.Splits[key.Split].SHA256, nil
}

// Receive writes a split that a peer sends, by fill, to a file of its own in the store and
// returns the hash of what lies on the disk then. The split is held only if that is the
// hash that was announced; of two that arrive at once, the first is kept.
func (s *Store) Receive(key SplitKey, meta *PackMeta, fill func(io.Writer) error) (plan.Digest, error) {
	want := meta.Splits[key.Split]
	f, err := os.CreateTemp(s.dir, fmt.Sprintf("node-%d-%s.*", key.Node, splitFile(key.Split)))
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

// hashOf is the hash of a whole file, read from its beginning.
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

// receiver writes to a file what is expected, and counts all of it.
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

// hold reports whether the split is held from now on as h says; it is not where it
// was held before.
func (s *Store) hold(key SplitKey, h *heldSplit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.held[key] != nil {
		return false
	}
	s.mu.held[key] = h
	return true
}

// OpenSplit maps a split that is held; it stays mapped until Close.
func (s *Store) OpenSplit(node, split int) (*Split, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.mu.held[SplitKey{node, split}]
	if h == nil {
		return nil, fault.Newf(fault.FetchFailed, "open", fmt.Sprintf("split %d", split), "this executor does not hold it")
	}
	if h.split == nil {
		opened, err := OpenSplit(h.path, h.meta, split)
		if err != nil {
			return nil, err
		}
		h.split = opened
	}
	return h.split, nil
}

// Path is the file of a split that is held; empty where it is not.
func (s *Store) Path(key SplitKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.mu.held[key]; h != nil {
		return h.path
	}
	return ""
}

// Send writes a held split's bytes to a peer.
func (s *Store) Send(key SplitKey, w io.Writer) error {
	path := s.Path(key)
	if path == "" {
		return fault.Newf(fault.FetchFailed, "send", fmt.Sprintf("split %d", key.Split), "this executor does not hold it")
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
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, h := range s.mu.held {
		if h.split != nil {
			errs = append(errs, h.split.Close())
		}
	}
	s.mu.held = map[SplitKey]*heldSplit{}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
