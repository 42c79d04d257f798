package shuffle

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Outputs holds the map outputs that an executor keeps for their readers.
type Outputs struct {
	dir string
	mu  struct {
		sync.Mutex
		kept  map[Key]*Output
		small int // bytes of those in memory
	}
}

// Key names one output of a map task. Two attempts have two names, so that
// their outputs are never mixed.
type Key struct {
	Node    int // of the plan
	Map     int // partition of its input
	Attempt uint64
}

// Small outputs stay in memory: each up to smallOutput, all of an executor up to
// smallOutputs, or to the memory of a task if that is less.
const (
	smallOutput  = 8 << 20
	smallOutputs = 64 << 20
)

// NewOutputs returns an empty store; outputs too large for memory are kept under dir.
func NewOutputs(dir string) (*Outputs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, disk.WriteError("use the executor's directory", dir, err)
	}
	s := &Outputs{dir: dir}
	s.mu.kept = map[Key]*Output{}
	return s, nil
}

// NewWriter makes a writer whose file is in the executor's directory. It may buffer
// budget bytes of rows.
func (s *Outputs) NewWriter(partitions, budget int) *Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return NewWriter(s.dir, partitions, budget, min(smallOutput, max(0, min(smallOutputs, 2*budget)-s.mu.small)))
}

// Keep keeps an output for its readers.
func (s *Outputs) Keep(key Key, b *Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(key)
	s.mu.kept[key] = b
	s.mu.small += len(b.mem)
}

// forget drops an output; s.mu is held.
func (s *Outputs) forget(key Key) {
	if b := s.mu.kept[key]; b != nil {
		s.mu.small -= len(b.mem)
		b.Remove()
		delete(s.mu.kept, key)
	}
}

// Drop drops the outputs of a node up to an attempt.
func (s *Outputs) Drop(node int, through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.mu.kept {
		if key.Node == node && key.Attempt <= through {
			s.forget(key)
		}
	}
}

// DropAll drops all outputs.
func (s *Outputs) DropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.mu.kept {
		s.forget(key)
	}
}

// Open reads partitions of an output that is kept here.
func (s *Outputs) Open(key Key, span Span) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // what is opened outlives its being dropped
	b, ok := s.mu.kept[key]
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

// Spool copies a map output from another executor into a temporary file, and
// reads that; closing it removes the file.
func (s *Outputs) Spool(fill func(io.Writer) error) (io.ReadCloser, error) {
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

// Close removes all outputs.
func (s *Outputs) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.mu.kept)
	return os.RemoveAll(s.dir)
}
