package storage

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/volley-engine/volley/internal/fault"
)

// ShuffleKey names one output of a map task. Two attempts have two names, so
// that what one has made is never mixed with what another has.
type ShuffleKey struct {
	Node    int // of the plan
	Map     int // partition of its input
	Attempt uint64
}

// shuffled is an output that is kept.
type shuffled struct {
	path    string
	buckets *Buckets
}

// NewSorter makes a sorter whose files are the store's.
func (s *Store) NewSorter(partitions, budget int) *Sorter {
	return NewSorter(s.dir, partitions, budget)
}

// KeepShuffle writes what a sorter has to a file, and keeps it.
func (s *Store) KeepShuffle(key ShuffleKey, sorter *Sorter) (*Buckets, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("shuffle-%d-%d-%d", key.Node, key.Map, key.Attempt))
	b, err := sorter.Finish(path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, o := range s.mu.shuffles { // it is made again because nobody reads it any more
		if old.Node == key.Node && old.Map == key.Map && old.Attempt < key.Attempt {
			os.Remove(o.path)
			delete(s.mu.shuffles, old)
		}
	}
	s.mu.shuffles[key] = shuffled{path, b}
	return b, nil
}

// OpenBucket reads a partition of an output that is kept here.
func (s *Store) OpenBucket(key ShuffleKey, partition int) (io.ReadCloser, error) {
	s.mu.Lock()
	o, ok := s.mu.shuffles[key]
	s.mu.Unlock()
	if !ok || partition < 0 || partition+1 >= len(o.buckets.Offsets) {
		return nil, fault.Newf(fault.LostInput, "read", fmt.Sprintf("the output of map task %d", key.Map), "it is not here")
	}
	f, err := os.Open(o.path)
	if err != nil {
		return nil, fault.New(fault.LostInput, "read", fmt.Sprintf("the output of map task %d", key.Map), err)
	}
	from, to := o.buckets.Offsets[partition], o.buckets.Offsets[partition+1]
	if info, err := f.Stat(); err != nil || info.Size() < to {
		f.Close()
		return nil, fault.Newf(fault.LostInput, "read", fmt.Sprintf("the output of map task %d", key.Map), "its file is cut off")
	}
	return bucket{io.NewSectionReader(f, from, to-from), f}, nil
}

type bucket struct {
	io.Reader
	io.Closer
}

// Spool takes a bucket from somewhere else into a file of the store's own, and
// reads that; it is gone once it is closed.
func (s *Store) Spool(fill func(io.Writer) error) (io.ReadCloser, error) {
	f, err := os.CreateTemp(s.dir, "bucket-*")
	if err != nil {
		return nil, diskError("receive shuffled rows into", s.dir, err)
	}
	os.Remove(f.Name()) // it lives as long as it is open
	if err = fill(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
