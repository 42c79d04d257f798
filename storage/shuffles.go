package storage

import (
	"fmt"
	"io"
	"os"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// ShuffleKey names one output of a map task. Two attempts have two names, so
// that what one has made is never mixed with what another has.
type ShuffleKey struct {
	Node    int // of the plan
	Map     int // partition of its input
	Attempt uint64
}

// Small outputs stay in memory: each up to smallOutput, all of a store up to
// smallOutputs, or to what a task may gather if that is less.
const (
	smallOutput  = 8 << 20
	smallOutputs = 64 << 20
)

// NewMapOutputWriter makes a writer whose file is the store's. It may gather
// budget bytes of rows.
func (s *Store) NewMapOutputWriter(partitions, budget int) *MapOutputWriter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return NewMapOutputWriter(s.dir, partitions, budget, min(smallOutput, max(0, min(smallOutputs, 2*budget)-s.mu.small)))
}

// KeepShuffle keeps an output for those who ask for it.
func (s *Store) KeepShuffle(key ShuffleKey, b *MapOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
	s.mu.shuffles[key] = b
	s.mu.small += len(b.mem)
}

// drop gives up an output; s.mu is held.
func (s *Store) drop(key ShuffleKey) {
	if b := s.mu.shuffles[key]; b != nil {
		s.mu.small -= len(b.mem)
		b.Remove()
		delete(s.mu.shuffles, key)
	}
}

// DropShuffle gives up the outputs of a node up to an attempt.
func (s *Store) DropShuffle(node int, through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.mu.shuffles {
		if key.Node == node && key.Attempt <= through {
			s.drop(key)
		}
	}
}

// OpenMapOutput reads partitions of an output that is kept here.
func (s *Store) OpenMapOutput(key ShuffleKey, span Span) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // what is opened outlives its being dropped
	b, ok := s.mu.shuffles[key]
	what := fmt.Sprintf("the output of map task %d", key.Map)
	if !ok || span.From < 0 || span.Through > b.Len() || span.From > span.Through {
		return nil, fault.Newf(fault.LostInput, "read", what, "it is not here")
	}
	r, err := b.Open(span)
	if err != nil {
		return nil, fault.New(fault.LostInput, "read", what, err)
	}
	return r, nil
}

// Spool takes a map output from somewhere else into a file of the store's own, and
// reads that; it is gone once it is closed.
func (s *Store) Spool(fill func(io.Writer) error) (io.ReadCloser, error) {
	f, err := os.CreateTemp(s.dir, "output-*")
	if err != nil {
		return nil, disk.WriteError("receive shuffled rows into", s.dir, err)
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
